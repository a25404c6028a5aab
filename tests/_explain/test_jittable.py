"""What speaks against a jit of a function: each would fail under one, or compute something else."""

import linecache
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jitcount._explain.jittable import why_not_jit
from jitcount._observe.callers import ARRAY, STATIC, TREE

BEFORE = """
import functools, logging, math, queue, random, time
import random as python_random
import jax, jax.numpy as jnp, numpy as np
import numpy.random as npr
from numpy.random import rand
from random import random as draw
from typing import NamedTuple

WIDTH = 3
scale = 1.0
scale *= 2
history = []
history.append(0)
seen = {"n": 0}
seen["n"] = 1
inbox = queue.Queue()
logger = logging.getLogger("a test")
generator = np.random.default_rng(0)

class Pair(NamedTuple):
    a: object
    b: object

class Box:
    pass

def noisy(y):
    return y * draw()

def helper(y, train=False):
    return jnp.sin(y) if train else jnp.cos(y)

def prints(y):
    print(y)
    return y

@functools.lru_cache
def table(n):
    return jnp.arange(n)

step = jax.jit(lambda y: y + 1)

"""

Check = Callable[..., str]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    def check(body: str, **kinds: str) -> str:
        file, module = tmp_path / "model.py", ModuleType("a_model_of_a_test")
        arguments = ", ".join(kinds or ("x",))
        source = f"{BEFORE}def f({arguments}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        file.write_text(source)
        linecache.checkcache(str(file))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(source, str(file), "exec"), vars(module))  # noqa: S102
        function: Any = vars(module)["f"]
        return why_not_jit(function.__code__, module.__name__, kinds or {"x": ARRAY})

    return check


HARMLESS = [
    "return jnp.sin(x) * WIDTH",
    "return helper(x, train=True) + helper(x)",
    "return [jnp.sin(x) for _ in range(3)]",
    "out = {}\nout['y'] = jnp.sin(x)\nreturn out['y']",
    "parts = []\nfor n in (1, 2):\n    parts.append(x * n)\nreturn jnp.stack(parts)",
    "y = x.reshape(x.shape[0], -1)\nif y.shape[1] > 3:\n    y = y[:, :3]\nreturn y",
    "a, b = jax.random.split(x)\nreturn jax.random.normal(a, (WIDTH,)) + len(b.shape)",
    "return Pair(x, jnp.sin(x))",
    "return {'a': x, 'b': -x}",
    "return jax.vmap(lambda y: y * 2)(x)",
    "return jnp.log(x) + jnp.sort(x) + jnp.append(x, x)[: WIDTH]",
    "return x.at[0].set(1.0)",
    "return jnp.repeat(x, 2) * math.sqrt(x.shape[-1]) * np.sqrt(2.0)",
    "with jax.named_scope('here'):\n    return jnp.sin(x)",
    "return jnp.zeros(x.shape) if x is None or isinstance(x, tuple) else x",
    "return x + jnp.float32(0.5) if x.ndim == 1 else x",
]


@pytest.mark.parametrize("body", HARMLESS)
def test_what_only_computes_can_be_jitted(check: Check, body: str) -> None:
    assert check(body) == ""


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("for w, b in params:\n    x = x @ w + b\nreturn x", {"params": TREE, "x": ARRAY}),
        ("return x if mode == 'train' else -x", {"x": ARRAY, "mode": STATIC}),
        ("return jnp.zeros((n, 2)) + x", {"x": ARRAY, "n": STATIC}),
        ("return activation(x)", {"x": ARRAY, "activation": STATIC}),
    ],
)
def test_what_is_static_may_choose(check: Check, body: str, kinds: dict[str, str]) -> None:
    assert check(body, **kinds) == ""


DOUBTFUL = {
    "return x * draw()": "it draws random numbers on the host",
    "return noisy(x)": "it draws random numbers on the host",
    "return x * python_random.random()": "it draws random numbers on the host",
    "return x * npr.normal()": "it draws random numbers on the host",
    "return x * rand()": "it draws random numbers on the host",
    "return x * generator.random()": "it draws random numbers on the host",
    "x['w'] = x['w'] - 1\nreturn x": "it changes x",
    "x[0] = 5\nreturn x": "it changes x",
    "x.append(1)\nreturn x": "it changes x",
    "x += 1\nreturn x": "it changes x",
    "try:\n    return jnp.sin(x)\nexcept Exception:\n    return x": "it handles errors",
    "return x * len(history)": "it reads history, which changes",
    "return x * scale": "it reads scale, which changes",
    "return x * seen['n']": "it reads seen, which changes",
    "return x * inbox.get()": "it calls get, which does more than compute",
    "logger.info('here')\nreturn jnp.sin(x)": "it calls info, which does more than compute",
    "return prints(x)": "it prints",
    "return x * time.monotonic_ns()": "it takes the time",
    "return {'z': x, 'a': x}": "it returns a dict, which a jit sorts",
    "return x, x.shape[0]": "it returns no array",
    "return x, True": "it returns no array",
    "return {'name': 'run', 'z': x}": "it returns no array",
    "return Box()": "it returns an object",
    "if x > 0:\n    return x\nreturn -x": "it branches on a value",
    "assert x.mean() > 0\nreturn x": "it branches on a value",
    "return x > 3 and x or -x": "it branches on a value",
    "return [y for y in (x, x) if y.sum() > 0]": "it branches on a value",
    "return 0 < x < 3": "it branches on a value",
    "return x if jnp.any(x) else -x": "it branches on a value",
    "return max(x[0], x[1])": "it reads a value",
    "return jnp.sin(x) * int(x[0])": "it reads a value",
    "return float(x.sum())": "it reads a value",
    "return jnp.linalg.norm(x).item()": "it reads a value",
    "return np.sin(x)": "it makes a NumPy array",
    "return np.array(x)": "it makes a NumPy array",
    "return math.sqrt(x)": "it reads a value",
    "return jnp.arange(0, 1, x)": "its shapes depend on values",
    "return x[x > 1]": "its shapes depend on values",
    "return jnp.unique(x)": "its shapes depend on values",
    "return x.nonzero()": "its shapes depend on values",
    "return list(x.devices())": "it reads a value",
    "return table(3) + x": "table keeps what it returned",
    "return step(x)": "it runs a jitted function",
    "return jax.jit(jnp.sin)(x)": "it makes a jitted function",
    "global scale\nscale = 2\nreturn x": "it changes a global variable",
    "yield x\nreturn x": "it is a generator",
    "while True:\n    return x": "it loops",
    "for y in x:\n    x = x + y\nreturn x": "it loops",
    "return [x for _ in range(400)]": "it loops",
    "with open('f') as file:\n    return x": "it opens a context",
    "return unheard_of(x)": "it calls unheard_of, which is not known",
    "jnp.sin(x)": "it returns nothing",
}


@pytest.mark.parametrize("body", DOUBTFUL)
def test_what_does_more_or_needs_a_value_is_not_jitted(check: Check, body: str) -> None:
    assert check(body) == DOUBTFUL[body]


def test_a_method_of_the_users_own_class_may_read_what_changes(check: Check) -> None:
    reason = "it is a method, which may read what changes"
    assert check("return x * self.scale", self="other", x=ARRAY) == reason
    assert check("return x * self.scale", self="linen", x=ARRAY) == ""


def test_two_lambdas_in_one_line_cannot_be_told_apart(check: Check, tmp_path: Path) -> None:
    assert check("return x") == ""
    file = tmp_path / "lambdas.py"
    source = "pair = (lambda x: x, lambda x: print(x))\n"
    file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)  # noqa: S102
    reason = "its source is not to be had"
    assert [why_not_jit(each.__code__, "none", {}) for each in names["pair"]] == [reason] * 2
