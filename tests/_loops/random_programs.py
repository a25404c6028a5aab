"""Random programs, as source: with a loop whose turns are known, and without any."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_UNARY = ("jnp.sin({})", "jnp.tanh({})", "-{}", "{} * 0.5", "jax.nn.relu({})", "jax.nn.softmax({})")
_BINARY = ("{} + {}", "{} * {}", "{} - {}", "jnp.maximum({}, {})", "jnp.where({} > 0, {}, 0.1)")
_OF_A_WEIGHT = ("{x} + {w}", "{x} * {w}", "jnp.minimum({x}, {w})")
SIZE = 6


@dataclass(frozen=True)
class Written:
    """A program."""

    source: str
    turns: tuple[int, ...] = ()
    """Of its loops, the outer ones first."""

    lines: tuple[int, ...] = ()
    """Where they begin."""

    def function(self) -> Callable[..., Any]:
        """The program itself: `f(x, ws)`, with the rows of one array, or with a list of arrays."""
        names: dict[str, Any] = {"jax": jax, "jnp": jnp}
        name = f"/random/{hash(self.source)}.py"
        linecache.cache[name] = (
            len(self.source),
            None,
            self.source.splitlines(keepends=True),
            name,
        )
        exec(compile(self.source, name, "exec"), names)  # noqa: S102 (our own text)
        return names["f"]


class Writer:
    """Writes a program line by line."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.turns: list[int] = []
        self.begins: list[int] = []
        self._new = 0

    def add(self, text: str, depth: int = 1) -> None:
        """One more line."""
        self.lines.append("    " * depth + text)

    def straight(self, values: list[str], depth: int, operations: int) -> None:
        """Operations by hand; all that they make ends up in the first value."""
        for _ in range(operations):
            target = self.random.choice(values)
            if self.random.random() < 0.5:
                text = self.random.choice(_UNARY).format(self.random.choice(values))
            else:
                text = self.random.choice(_BINARY)
                text = text.format(*self.random.choices(values, k=text.count("{}")))
            self.add(f"{target} = {target} + {text}", depth)

    def loop(self, values: list[str], depth: int, *, may_nest: bool = True) -> None:
        """A loop of a random body."""
        turns = self.random.randint(3, 9)
        self.turns.append(turns)
        index = f"i{depth}"
        self.begins.append(len(self.lines) + 1)
        self.add(f"for {index} in range({turns}):", depth)
        takes = self.random.choice(("weight", "number", "nothing"))
        first = values[0]
        self.straight(values, depth + 1, self.random.randint(0, 12))
        if takes == "weight":
            text = self.random.choice(_OF_A_WEIGHT).format(x=first, w=f"ws[{index}]")
            self.add(f"{first} = {text}", depth + 1)
        elif takes == "number":
            self.add(f"{first} = {first} * (0.5 + {index} / 16)", depth + 1)
        else:
            self.add(f"{first} = {first} * 0.75", depth + 1)
        if may_nest and self.random.random() < 0.25:
            self.loop(values, depth + 1, may_nest=False)
            self.straight(values, depth + 1, self.random.randint(1, 4))

    def written(self) -> Written:
        """All of it."""
        return Written("\n".join(self.lines) + "\n", tuple(self.turns), tuple(self.begins))


def random_program(random: random.Random, loops: int) -> Written:
    """A program with so many loops one after the other."""
    writer = Writer(random)
    writer.add("def f(x, ws):", 0)
    values = ["x", "y", "z"][: random.randint(1, 3)]
    for value in values[1:]:
        writer.add(f"{value} = jnp.cos(x)")
    writer.straight(values, 1, random.randint(0, 6))
    for _ in range(loops):
        writer.loop(values, 1)
        writer.straight(values, 1, random.randint(1, 6))
    if not loops:
        writer.straight(values, 1, random.randint(1, 30))
    writer.add(f"return ({' + '.join(values)}).sum()")
    return writer.written()


def transformed(random: random.Random, f: Callable[..., Any]) -> Callable[..., Any]:
    """The program under a random transformation."""
    return random.choice(
        (
            f,
            f,
            jax.value_and_grad(f),
            jax.value_and_grad(f, argnums=1),
            jax.jit(f),
            jax.checkpoint(f),
            jax.value_and_grad(jax.checkpoint(f)),
            jax.value_and_grad(jax.jit(f)),
            lambda x, ws: jax.vmap(f, (0, None))(jnp.stack([x, x]), ws),
        )
    )


def arguments(random: random.Random) -> tuple[Any, Any]:
    """An argument for each: numbers, and weights stacked or apart."""
    numbers = np.random.default_rng(random.getrandbits(32))
    x = numbers.uniform(0.1, 1, SIZE).astype(np.float32)
    ws = numbers.uniform(0.1, 1, (9, SIZE)).astype(np.float32)
    return x, ws if random.random() < 0.5 else list(ws)
