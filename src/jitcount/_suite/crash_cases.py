"""Programs that ended the process, or never ended, when a released compiler had compiled them.

Each runs in a process of its own: a compiler that crashes would take the suite with it.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import jax
import numpy as np

from jitcount._emulate.active_target import active_target
from jitcount._suite.case import Case, exactly_these

if TYPE_CHECKING:
    from collections.abc import Sequence

# It takes some seconds on a machine that has other things to do.
_PATIENCE_S = 60.0

_BEGIN = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
except ImportError:
    pass
"""

# Products summed along each axis, and along one axis where a factor is repeated along five.
_RANKS = """
shape = 3, 1, 2, 2, 8, 8, 8
a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 13
b = a[::-1] + 1
for axis in range(len(shape)):
    found = jax.jit(lambda a, b: jnp.sum(a * b, axis))(a, b)
    assert np.array_equal(found, (a.astype(np.float64) * b).sum(axis)), f"axis {axis}: {found}"
a = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1, 1, 1, 1, 1)
b = np.arange(9, dtype=np.float32) + np.ones((1, 4, 6, 9, 9, 9, 9, 9), np.float32)
found = jax.jit(lambda a, b: jnp.maximum(jnp.sum(a * b, 2), 1e-3))(a, b)
assert np.array_equal(found, np.maximum((a.astype(np.float64) * b).sum(2), 1e-3)), found
"""

# Windows of one element, in an array that loses its first row.
_CROPPED = """
x = np.arange(32, dtype=np.float32).reshape(8, 4)
crop = (-1, 0), (0, 0)
found = jax.jit(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (1, 1), crop))(x)
assert np.array_equal(found, x[1:]), found
"""


@functools.cache
def _failure(program: str, flags: str, no_jit: str) -> str:
    """How a program ended in a process of its own, with these flags; empty if it was right."""
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_DISABLE_JIT": no_jit}
    try:
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _BEGIN + program],
            timeout=_PATIENCE_S,
            capture_output=True,
            text=True,
            check=False,
            env=environment | {"JAX_PLATFORMS": "cpu"},
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_PATIENCE_S:g} s"
    if run.returncode < 0:
        return f"it was ended by {signal.Signals(-run.returncode).name}"
    # A process that ends well says nothing; one that an assertion ends says which.
    return run.stderr.strip().splitlines()[-1] if run.returncode else ""


def _only_as_on_a_cpu() -> str:
    platform = active_target() or jax.devices()[0].platform
    return "" if platform == "cpu" else f"it needs a second process, which is not {platform}'s"


def in_its_own_process(id: str, claim: str, program: str) -> Case:  # noqa: A002
    """The case of a program, as text, that must end without an error in another process."""

    def run() -> Sequence[jax.Array]:
        no_jit = str(int(jax.config.values["jax_disable_jit"]))
        if failure := _failure(program, os.environ.get("XLA_FLAGS", ""), no_jit):
            raise RuntimeError(failure)
        return [jax.device_put(np.int32(0))]

    return Case(
        id=id,
        claim=claim,
        program=run,
        expected=exactly_these(0),
        compiles={},
        unsupported=_only_as_on_a_cpu,
    )


CRASH_CASES = (
    in_its_own_process(
        "reductions-of-rank-8",
        "products summed along each of seven axes, and along one of eight",
        _RANKS,
    ),
    in_its_own_process(
        "window-of-one-cropped",
        "windows of one element in an array that a negative padding crops",
        _CROPPED,
    ),
)
