"""What the process of a compiler does with a request; JAX and the compiler are loaded here."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import time
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import topologies

from jitcount._jax.executables import compile_as, cpu_devices, written_executable
from jitcount._jax.lowering import compile_module, optimised_text, run_here
from jitcount._targets.worker_profile import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._targets.protocol import Message

_NOTHING = """
    module @nothing {
      func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    }
"""


def answer(asked: dict[str, Any], bytecode: bytes) -> Message:
    """Compile one program; what the compiler raises is an answer too."""
    begin = time.perf_counter()
    try:
        devices = devices_of(asked["topology"])
        if "program" not in asked:  # only to be ready
            compile_module(_NOTHING, devices[:1], ([False], [False]), {}, "")
            return {}, b""
        set_up(asked["settings"])
        chosen = devices[: asked["devices"]]
        if "executable" in asked:
            return _executable(base64.b64decode(asked["executable"]), bytecode, chosen)
        platform = asked["topology"]["platform"]
        watching = Watching() if asked.get("profile") else None
        begin, begin_cpu = time.perf_counter(), _processor_s()
        made = compile_module(bytecode, chosen, asked["may_move"], asked["options"], platform)
        seconds = time.perf_counter() - begin
        if "inputs" in asked:  # for a comparison: what it computes, and what the processor did
            spent = _processor_s() - begin_cpu
            results = _results(made, asked["inputs"], asked.get("stacked"))
            return {"compile_s": seconds, "processor_s": spent}, results
        found = {"compile_s": seconds} | _figures(made)
        if watching is not None:
            found["profile"] = watching.profile(bytecode, made, seconds, asked.get("stacks"))
        hlo = optimised_text(made) if asked["keep_hlo"] else ""
    except Exception as error:  # noqa: BLE001 (a compiler may raise anything)
        text = str(error).strip() or type(error).__name__
        return {"compile_s": time.perf_counter() - begin, "error": text}, b""
    return found, hlo.encode()


def _executable(options: bytes, written: bytes, devices: Sequence[Any]) -> Message:
    """Compile for the process that asks, with its options."""
    begin = time.perf_counter()
    made = compile_as(written, options, devices)
    seconds = time.perf_counter() - begin
    return {"compile_s": seconds}, written_executable(made, options, devices)


def _processor_s() -> float:
    """Seconds of the processor, with those of what it has started: XLA:GPU starts ptxas."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _results(
    made: Any, inputs: list[tuple[str, list[int]]] | None, stacked: list[list[int]] | None
) -> bytes:
    """What a program computes from random numbers, the same for all that take the same.

    Args:
        made: the program.
        inputs: the types of its arguments; None for a device that is not here.
        stacked: of each argument, which of these it holds, where it has others than that.
    """
    if inputs is None:
        return b""
    numbers = np.random.default_rng(0)
    written = io.BytesIO()
    given = [_random(numbers, dtype, shape) for dtype, shape in inputs]
    if stacked is not None:
        given = [
            np.stack([given[number] for number in held]) if len(held) > 1 else given[held[0]]
            for held in stacked
        ]
    results = run_here(made, given)
    # As bytes: NumPy's files know nothing of bfloat16.
    flat = [(str(each.dtype), np.frombuffer(each.tobytes(), np.uint8)) for each in results]
    named: dict[str, Any] = {f"{number} {dtype}": each for number, (dtype, each) in enumerate(flat)}
    np.savez(written, **named)
    return written.getvalue()


def _random(numbers: np.random.Generator, dtype: str, shape: list[int]) -> Any:
    kind = jax.numpy.dtype(dtype)
    if jax.numpy.issubdtype(kind, jax.numpy.inexact):
        return numbers.uniform(-1, 1, shape).astype(kind)
    return numbers.integers(0, 2, shape).astype(kind)


_devices: dict[str, Sequence[Any]] = {}


def devices_of(topology: dict[str, Any]) -> Sequence[Any]:
    """Devices to compile for; none of them need be there."""
    if topology["platform"] == "cpu":
        return cpu_devices(topology["devices"])
    key = repr(topology)
    if key not in _devices:
        _devices[key] = topologies.get_topology_desc(**topology).devices
    return _devices[key]


def set_up(settings: dict[str, Any]) -> None:
    """Take over the settings of the process that asks."""
    for name, value in settings.items():
        if jax.config.values.get(name) != value:
            jax.config.update(name, value)


def _figures(made: Any) -> dict[str, Any]:
    """Sizes and costs, where the compiler tells them."""
    found: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        sizes = made.get_compiled_memory_stats()
        found |= {
            "argument_bytes": sizes.argument_size_in_bytes,
            "output_bytes": sizes.output_size_in_bytes,
            "aliased_bytes": sizes.alias_size_in_bytes,
            "temporary_bytes": sizes.temp_size_in_bytes,
            # No program has no code: 0 is how XLA:GPU says that it does not know.
            "code_bytes": sizes.generated_code_size_in_bytes or None,
        }
    with contextlib.suppress(Exception):
        costs = made.cost_analysis()
        found["flops"] = costs.get("flops")
        seconds = costs.get("optimal_seconds", -1.0)
        # Below 0 where there is something in the program that has no known cost.
        found["estimated_s"] = seconds if seconds >= 0 else None
    return found
