"""What a profile costs while it is asked for: with it and without, in turns, on the CPU.

``python benchmarks/profile_costs.py [ROUNDS]`` prints the ratios, and their limits.
"""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp

import jitcount
from dear_lines import SQUARE, program

COMPILE_LIMIT = 1.25
TRACE_LIMIT = 1.1


def layers(x: jax.Array) -> jax.Array:
    """A training step's worth of operations."""

    def loss(x: jax.Array) -> jax.Array:
        for _ in range(12):
            x = x + jax.nn.softmax(x @ x.T) @ jax.nn.gelu(x)
        return x.sum()

    return jax.grad(loss)(x)


def small(x: jax.Array) -> jax.Array:
    """The worst case: what is compiled in no time."""
    return jnp.tanh(x) + 1


PROGRAMS = {
    "layers": layers,
    "attention": program("attention", is_dear=True),
    "unrolled": program("unrolled", is_dear=True),
    "small": small,
}


def seconds(function: object, *, profile: bool, is_compiled: bool) -> float:
    """Trace a program from nothing, and compile it."""
    jax.clear_caches()
    with jitcount.record(profile=profile):
        begin = time.process_time()
        traced = jax.jit(function).trace(SQUARE)  # type: ignore[call-overload]
        if is_compiled:
            traced.lower().compile()
        return time.process_time() - begin


def ratio(function: object, rounds: int, *, is_compiled: bool) -> float:
    """The least of each side: others on the machine only ever add."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    seconds(function, profile=True, is_compiled=is_compiled)
    for _ in range(rounds):
        for profile, found in sides.items():
            found.append(seconds(function, profile=profile, is_compiled=is_compiled))
    return min(sides[True]) / min(sides[False])


def main() -> int:
    """Gives 1 where a limit is passed."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    is_over = False
    for name, function in PROGRAMS.items():
        whole = ratio(function, rounds, is_compiled=True)
        traced = ratio(function, rounds, is_compiled=False)
        is_over |= whole > COMPILE_LIMIT or traced > TRACE_LIMIT
        limits = f"(at most {COMPILE_LIMIT} and {TRACE_LIMIT})"
        print(f"{name:12} compile {whole:.2f}, trace {traced:.2f} {limits}", flush=True)
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
