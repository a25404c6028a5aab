from jitcount._observe.in_flight import (
    _MOST_WAITING,
    InFlightCompile,
    ThreadState,
    Traces,
    WaitingLowerings,
)
from jitcount._observe.program import Program
from jitcount._observe.surroundings import Settings

A, B = ("float32[3]",), ("float32[4]",)


def program() -> Program:
    settings = Settings({}, frozenset())
    return Program(group=("step",), name="step", settings=settings, places=(), values=())


def traced(function: str = "step", program: Program | None = None) -> InFlightCompile:
    return InFlightCompile(function=function, trace_s=1.0, program=program)


def lowered(
    function: str = "step", avals: tuple[str, ...] | None = A, thread_id: int = 1
) -> InFlightCompile:
    return InFlightCompile(function=function, kept_avals=avals, thread_id=thread_id)


def test_a_trace_within_a_trace_is_dropped_when_the_outer_one_ends() -> None:
    traces = Traces()
    traces.begin()
    traces.begin()
    traces.end(traced("inner"))
    traces.end(outer := traced("outer"))
    assert traces.take("inner") is None
    assert traces.take("outer") is outer


def test_a_trace_within_a_trace_can_be_taken_before_the_outer_one_ends() -> None:
    traces = Traces()
    traces.begin()
    traces.begin()
    traces.end(inner := traced("inner"))
    assert traces.take("inner") is inner
    traces.end(outer := traced("outer"))
    assert traces.take("outer") is outer


def test_a_failed_trace_leaves_nothing() -> None:
    traces = Traces()
    traces.begin()
    traces.end(None)
    assert traces.take("step") is None


def test_a_trace_whose_begin_was_not_heard_counts() -> None:
    traces = Traces()
    traces.end(step := traced())
    assert traces.take("step") is step


def test_a_trace_ahead_of_time_is_not_of_a_call() -> None:
    traces = Traces()
    traces.end(ahead := traced(program=program()))
    assert traces.take("step", lambda: True) is None
    assert traces.take("step") is ahead


def test_a_lowering_is_taken_once() -> None:
    lowerings = WaitingLowerings()
    lowerings.add(only := lowered())
    assert lowerings.take("step", A, thread_id=1) is only
    assert lowerings.take("step", A, thread_id=1) is None


def test_a_lowering_of_another_function_or_of_other_avals_is_not_taken() -> None:
    lowerings = WaitingLowerings()
    lowerings.add(lowered("other"))
    lowerings.add(lowered(avals=B))
    assert lowerings.take("step", A, thread_id=1) is None


def test_a_lowering_of_the_same_thread_comes_first() -> None:
    lowerings = WaitingLowerings()
    lowerings.add(mine := lowered(thread_id=1))
    lowerings.add(lowered(thread_id=2))
    assert lowerings.take("step", A, thread_id=1) is mine


def test_a_lowering_of_another_thread_will_do() -> None:
    lowerings = WaitingLowerings()
    lowerings.add(other := lowered(thread_id=2))
    assert lowerings.take("step", A, thread_id=1) is other


def test_avals_that_are_not_known_are_equal_to_any() -> None:
    lowerings = WaitingLowerings()
    lowerings.add(unknown := lowered(avals=None))
    assert lowerings.take("step", A, thread_id=1) is unknown
    lowerings.add(known := lowered())
    assert lowerings.take("step", None, thread_id=1) is known


def test_lowerings_that_are_never_compiled_do_not_pile_up() -> None:
    lowerings = WaitingLowerings()
    for number in range(_MOST_WAITING + 1):
        lowerings.add(lowered(f"step{number}"))
    assert lowerings.take("step0", A, thread_id=1) is None
    assert lowerings.take("step1", A, thread_id=1) is not None


def test_a_phase_that_raised_failed() -> None:
    state = ThreadState()
    state.begin_phase("trace")
    try:
        int("no number")
    except ValueError:
        assert state.end_phase("trace")


def test_a_phase_within_the_handling_of_an_error_did_not_fail_and_the_one_around_it_did() -> None:
    state = ThreadState()
    state.begin_phase("trace")
    try:
        int("no number")
    except ValueError:
        state.begin_phase("trace")
        assert not state.end_phase("trace")
        assert state.end_phase("trace")


def test_a_phase_whose_end_was_not_reported_ends_with_the_one_around_it() -> None:
    state = ThreadState()
    state.begin_phase("trace")
    state.begin_phase("lower")
    assert not state.end_phase("trace")
    assert state._phases == []
