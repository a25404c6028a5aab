"""What the process of a compiler does with a request; JAX and the compiler are loaded here."""

from __future__ import annotations

import contextlib
import io
import os
import time
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import topologies

from jitcount._jax.executables import compile_as, cpu_devices, written_executable
from jitcount._jax.lowering import compile_module, optimised_text, run_here, shardings_of
from jitcount._targets.fallback import compile_or_fall_back
from jitcount._targets.protocol import (
    Answer,
    BuildExecutable,
    CompileModule,
    Figures,
    MeasureModule,
    Request,
    Shardings,
)
from jitcount._targets.worker_profile import WorkerProfile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOTHING = """
    module @nothing {
      func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    }
"""


def answer(request: Request) -> Answer:
    """Do what a request asks; what the compiler raises is an answer too."""
    begin = time.perf_counter()
    task, platform = request.task, str(request.topology["platform"])
    try:
        devices = _devices_of(request.topology)
        if task is None:
            compile_module(_NOTHING, devices[:1], ((False,), (False,)), {}, "")
            return Answer()
        _set_up(task.settings)
        devices = devices[: task.devices]
        begin = time.perf_counter()
        if isinstance(task, BuildExecutable):
            return _built(task, request.block, devices)
        if isinstance(task, MeasureModule):
            return _measured(task, request.block, devices, platform)
        return _compiled(task, request.block, devices, platform)
    except Exception as error:  # noqa: BLE001 (a compiler may raise anything)
        text = str(error).strip() or type(error).__name__
        return Answer(compile_s=time.perf_counter() - begin, error=text)


def _compiled(task: CompileModule, module: bytes, devices: Sequence[Any], platform: str) -> Answer:
    watched = WorkerProfile() if task.profile is not None else None
    begin = time.perf_counter()
    made, without_triton = compile_or_fall_back(
        module, devices, task.may_move, task.options, platform
    )
    seconds = time.perf_counter() - begin
    profile = None
    if watched is not None:
        profile = watched.profile(module, made, seconds, task.profile)
    shardings = shardings_of(made) if task.keep_hlo else None
    return Answer(
        compile_s=seconds,
        figures=_figures(made),
        without_triton=without_triton,
        profile=profile,
        shardings=shardings and Shardings(arguments=shardings[0], results=shardings[1]),
        block=optimised_text(made).encode() if task.keep_hlo else b"",
    )


def _measured(task: MeasureModule, module: bytes, devices: Sequence[Any], platform: str) -> Answer:
    begin, begin_processor = time.perf_counter(), _processor_s()
    made, _ = compile_or_fall_back(module, devices, task.may_move, {}, platform)
    seconds, spent = time.perf_counter() - begin, _processor_s() - begin_processor
    results = _results(made, task) if task.inputs is not None else b""
    return Answer(compile_s=seconds, processor_s=spent, block=results)


def _built(task: BuildExecutable, module: bytes, devices: Sequence[Any]) -> Answer:
    begin = time.perf_counter()
    made = compile_as(module, task.compile_options, devices)
    seconds = time.perf_counter() - begin
    return Answer(compile_s=seconds, block=written_executable(made, task.compile_options, devices))


def _processor_s() -> float:
    """Seconds of the processor, with those of what it has started: XLA:GPU starts ptxas."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _results(made: Any, task: MeasureModule) -> bytes:
    """What a program computes from random numbers, the same numbers for all with these inputs."""
    numbers = np.random.default_rng(0)
    given = [_random(numbers, dtype, shape) for dtype, shape in task.inputs or ()]
    if task.stacked is not None:
        given = [
            np.stack([given[number] for number in held]) if len(held) > 1 else given[held[0]]
            for held in task.stacked
        ]
    results = run_here(made, given)
    # As bytes: NumPy's files know nothing of bfloat16.
    flat = [(str(each.dtype), np.frombuffer(each.tobytes(), np.uint8)) for each in results]
    named: dict[str, Any] = {f"{number} {dtype}": each for number, (dtype, each) in enumerate(flat)}
    written = io.BytesIO()
    np.savez(written, **named)
    return written.getvalue()


def _random(numbers: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = jax.numpy.dtype(dtype)
    if jax.numpy.issubdtype(kind, jax.numpy.inexact):
        return numbers.uniform(-1, 1, shape).astype(kind)
    return numbers.integers(0, 2, shape).astype(kind)


_devices: dict[str, Sequence[Any]] = {}
"""By topology, its devices: to make them takes time, and a process has few."""


def _devices_of(topology: Mapping[str, Any]) -> Sequence[Any]:
    """Devices to compile for; none of them need be there."""
    if topology["platform"] == "cpu":
        return cpu_devices(topology["devices"])
    key = repr(topology)
    if key not in _devices:
        _devices[key] = topologies.get_topology_desc(**topology).devices
    return _devices[key]


def _set_up(settings: Mapping[str, Any]) -> None:
    """Take over JAX's settings of the process that asks."""
    for name, value in settings.items():
        if jax.config.values.get(name) != value:
            jax.config.update(name, value)


def _figures(made: Any) -> Figures:
    """Sizes and costs, where the compiler has them."""
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
    return Figures(**found)
