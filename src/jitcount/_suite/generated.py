"""Cases of many small programs that are compiled as one, and what keeps their results short.

A class of programs has hundreds of members. Each is one output of a case, with operands of its own:
what is shared would keep a compiler from computing it together with what follows. A result that is
wrong is named, so that it can be tried by itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jitcount._numerics.expected import EXACT, Expected, exactly, within
from jitcount._numerics.rounding import Rounded
from jitcount._suite.case import Case
from jitcount._suite.jitted import made_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A ledger holds all results, so long ones are made shorter, outside of the compiled program.
_LONG = 256
_BLOCK = 512
_WEIGHTS = 2.0 * np.arange(_BLOCK) + 1
_INFINITY = 2.0**30 + 1


@dataclass(frozen=True, slots=True)
class Member:
    """One program of a class: what it is computed from, how, and what must come out."""

    name: str
    operands: Callable[[], Any]
    compute: Callable[..., Any]
    """In JAX, from the operands."""

    reference: Callable[..., Any]
    """In NumPy, from the same operands; a `Rounded` where the result is not exact."""

    numerics: str = EXACT
    outputs: Sequence[str] = ()
    """The names of its arrays, if it returns several."""

    def names(self) -> list[str]:
        """The name of each array that it returns."""
        return [f"{self.name}: {output}" for output in self.outputs] or [self.name]


def case_of_members(
    id: str,  # noqa: A002
    claim: str,
    members: Sequence[Member],
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    *,
    donated: bool = False,
) -> Case:
    """The case of programs that are compiled as one.

    With `donated` each of them may write over its first operand.
    """

    def operands() -> list[Any]:
        return [member.operands() for member in members]

    def program(firsts: list[Any], others: list[Any]) -> list[Any]:
        made = zip(members, firsts, others, strict=True)
        return [member.compute(first, *rest) for member, first, rest in made]

    def run() -> Sequence[Any]:
        with context():
            given = made_once(operands)
            # Without jit the function gets its arguments as they are, and NumPy would compute.
            if donated or jax.config.values["jax_disable_jit"]:
                given = jax.device_put(jax.tree.map(np.copy, given))
            firsts, others = [each[0] for each in given], [each[1:] for each in given]
            found = jax.jit(program, donate_argnums=(0,) if donated else ())(firsts, others)
            return [digest(np.asarray(each)) for each in jax.tree.leaves(found)]

    def expected() -> list[Expected]:
        pairs = zip(members, made_once(operands), strict=True)
        return [each for member, made in pairs for each in _expected(member, made)]

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=expected,
        compiles={"program": 1},
        names=tuple(name for member in members for name in member.names()),
    )


def _expected(member: Member, made: Sequence[Any]) -> list[Expected]:
    found = member.reference(*made)
    return [
        within(member.numerics, _digest_of_rounded(each))
        if isinstance(each, Rounded)
        else exactly(digest(np.asarray(each)))
        for each in (found if member.outputs else [found])
    ]


def digest(values: np.ndarray) -> np.ndarray:
    """An array as it is if it is short; else a weighted sum of each block of it, in float64.

    Each number counts, and so does its place within its block. Whole numbers stay exact; what is
    infinite counts as a large one.

    >>> digest(np.arange(3, dtype="int32")).tolist(), digest(np.arange(4096.0)).shape
    ([0, 1, 2], (8,))
    """
    if values.size <= _LONG:
        # Zeros have no sign here: that of a sum depends on what a backend begins with.
        return np.asarray(values + values.dtype.type(0)) if values.dtype.kind == "f" else values
    padded = np.zeros(-(-values.size // _BLOCK) * _BLOCK)
    with np.errstate(invalid="ignore"):  # a wrong result may be anything
        padded[: values.size] = values.ravel()
    # What is infinite would hide the rest of its block.
    finite = np.nan_to_num(padded, nan=np.nan, posinf=_INFINITY, neginf=-_INFINITY)
    sums: np.ndarray = finite.reshape(-1, _BLOCK) @ _WEIGHTS
    return sums


def _digest_of_rounded(values: Rounded) -> Rounded:
    if values.values.size <= _LONG:
        return values
    parts = (values.values, values.errors, values.likely, values.scale)
    sums, errors, likely, scale = (digest(np.broadcast_to(p, values.values.shape)) for p in parts)
    # The sums themselves are rounded, in float64.
    rounding = 2.0**-40 * digest(np.abs(values.values))
    return Rounded(sums, errors + rounding, likely + rounding, scale, "float64")
