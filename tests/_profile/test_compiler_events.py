"""What a compiler's events say of its time."""

import pytest

from jitcount._jax.profiling import Event
from jitcount._profile.compiler_events import (
    CodegenUnit,
    length_of,
    parse_compiler_events,
    wall_seconds,
)


def event(name: str, start: float, end: float, thread: str = "main", module: str = "") -> Event:
    return Event(thread, name, start, end, module)


CPU = [
    event("HLO passes through layout assignment (jit_f)", 0, 2),
    event("fusion", 0.5, 1.5),
    event("constant_folding", 0.75, 1.0),
    event("CpuCompiler::RunBackend", 2, 10),
    event("FusionCompiler::Compile", 2, 4, "pool", "__compute_module_wrapped_add.1"),
]


def test_phases_passes_and_units_of_a_cpu() -> None:
    found = parse_compiler_events(CPU)
    assert (found.passes_s, found.generation_s) == (2, 8)
    assert found.by_pass == {
        "HLO passes through layout assignment": 1.0,
        "fusion": 0.75,
        "constant_folding": 0.25,
    }
    assert found.units == [CodegenUnit("wrapped_add.1", 2, 4)]


def test_units_of_a_tpu_have_their_names() -> None:
    events = [event("TpuCompiler::Compile", 0, 9), event("XLA::TPU emitting for sort.5", 1, 4)]
    assert parse_compiler_events(events).units == [CodegenUnit("sort.5", 1, 4)]


def test_of_a_gpu_only_what_has_a_name_is_a_unit() -> None:
    events = [
        event("CompileToBackendResult", 0, 9),
        event("Compiling IR:sort.6.1", 1, 4),
        event("Compiling IR:LLVMDialectModule", 4, 8),
    ]
    found = parse_compiler_events(events)
    assert found.units == [CodegenUnit("sort.6.1", 1, 4)]
    assert found.note == "XLA:GPU does not say which kernel it compiled for 4.0 s"


def test_an_unknown_compiler_says_so() -> None:
    assert parse_compiler_events([event("Something", 0, 1)]).note == (
        "the compiler's events are not known here"
    )


def dispatch(start: float, end: float, thread: str) -> Event:
    return event("TaskDispatcher::dispatch", start, end, thread)


def test_machine_code_is_matched_in_the_order_of_its_ends() -> None:
    events = [*CPU[:4], dispatch(2, 8, "a"), dispatch(2, 3, "b"), dispatch(3, 3, "b")]
    found = parse_compiler_events(events, [{"small": 10}, {"large": 500}])
    assert found.units == [CodegenUnit("small", 2, 3), CodegenUnit("large", 2, 8)]


def test_two_that_end_together_are_told_apart_by_their_sizes() -> None:
    events = [*CPU[:4], dispatch(2, 8, "a"), dispatch(7, 8.1, "b")]
    found = parse_compiler_events(events, [{"small": 10}, {"large": 500}])
    assert {unit.name: unit.end - unit.start for unit in found.units} == {
        "large": 6,
        "small": pytest.approx(1.1),
    }


def test_functions_of_one_file_share_its_time_by_size() -> None:
    found = parse_compiler_events([*CPU[:4], dispatch(2, 6, "a")], [{"one": 100, "other": 300}])
    assert found.units == [CodegenUnit("one", 2, 3), CodegenUnit("other", 3, 6)]


def test_machine_code_without_files_is_not_attributed() -> None:
    found = parse_compiler_events([*CPU[:4], dispatch(2, 6, "a")])
    assert found.units == []
    assert found.note == "the compiler does not say which machine code it made when"


def test_parallel_units_share_the_clock() -> None:
    units = [CodegenUnit("a", 0, 4), CodegenUnit("b", 2, 4), CodegenUnit("c", 2, 3)]
    seconds = wall_seconds(units)
    assert sum(seconds) == pytest.approx(length_of((unit.start, unit.end) for unit in units))
    assert seconds == pytest.approx([2 + 1 / 3 + 0.5, 1 / 3 + 0.5, 1 / 3])
