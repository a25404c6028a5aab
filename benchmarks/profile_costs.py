"""What a profile costs while it is asked for: with it and without, in turns, on the CPU.

``python benchmarks/profile_costs.py [ROUNDS]`` prints the ratios and their limits. The time is the
processor's, in all threads: it includes the thread that reads a program while XLA compiles it, and
the sampler, and no other process on the machine.
"""

from __future__ import annotations

import statistics
import sys
import time

import jax
import jax.numpy as jnp

import jitcount
from expensive_lines import SQUARE, program

COMPILE_LIMIT = 1.25
TRACE_LIMIT = 1.1

SHORT_S = 0.02


def layers(x: jax.Array) -> jax.Array:
    """A training step's worth of operations."""

    def loss(x: jax.Array) -> jax.Array:
        for _ in range(12):
            x = x + jax.nn.softmax(x @ x.T) @ jax.nn.gelu(x)
        return x.sum()

    return jax.grad(loss)(x)


def small(x: jax.Array) -> jax.Array:
    """The worst case: a program that is compiled in no time."""
    return jnp.tanh(x) + 1


PROGRAMS = {
    "layers": layers,
    "attention": program("attention", is_expensive=True),
    "unrolled": program("unrolled", is_expensive=True),
    "small": small,
}


def seconds(function: object, *, profile: bool, is_compiled: bool) -> float:
    """Processor seconds to trace a program from nothing, and to compile it."""
    jax.clear_caches()
    with jitcount.record(profile=profile):
        begin = time.process_time()
        traced = jax.jit(function).trace(SQUARE)  # type: ignore[call-overload]
        if is_compiled:
            traced.lower().compile()
        return time.process_time() - begin


def ratio(function: object, rounds: int, *, is_compiled: bool) -> float:
    """The median ratio of pairs, with a profile and without, which take turns at being first.

    What takes a millisecond is measured more often: there a pair says little.
    """
    once = seconds(function, profile=True, is_compiled=is_compiled)
    found = []
    for number in range(rounds if once > SHORT_S else 10 * rounds):
        order = (True, False) if number % 2 else (False, True)
        pair = {side: seconds(function, profile=side, is_compiled=is_compiled) for side in order}
        found.append(pair[True] / pair[False])
    return statistics.median(found)


def main() -> int:
    """Print the ratios; returns 1 if a limit is passed."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
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
