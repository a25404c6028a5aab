"""A planted fault is found, and made small; what is right is not accused."""

import time
from typing import Any

import numpy as np
import pytest

from tests.tools.hunt import planted
from tools.hunt.grammar import random_program
from tools.hunt.hunting import Failure, Hunter, failure_of, is_compiled, simpler
from tools.hunt.program import Input, Program, Step, evaluate
from tools.hunt.values import Spec
from tools.hunt.worker import Outcome

VECTOR = Spec("float32", (3,), 8, negative=True)
SCALAR = Spec("float32", (), 24, negative=True)
SUM = {"axes": (0,), "rank": 1}


def total_of_opposites() -> Program:
    """-x, then its sum; both are returned."""
    steps = (Step("neg", (0,), VECTOR), Step("reduce_sum", (1,), SCALAR, SUM))
    return Program((Input(VECTOR, seed=1),), steps, (1, 2))


def hunter_with(run: Any, **settings: Any) -> Hunter:
    return Hunter(planted.InThisProcess(run), **settings)  # type: ignore[arg-type]


def test_right_results_are_no_failure() -> None:
    right = [np.asarray([1, 2])]
    assert failure_of(Outcome([np.asarray([1.0, 2.0])]), right) is None


def test_the_first_wrong_element_is_told() -> None:
    right = [np.asarray([1, 2]), np.asarray([[3], [4], [5]])]
    found = [np.asarray([1.0, 2.0]), np.asarray([[3.0], [4.5], [6.0]])]
    assert failure_of(Outcome(found), right) == Failure(
        "wrong",
        "output 1 is 4.5 at [1, 0], and should be 4; 2 of 3 elements are wrong",
        (1, (1, 0)),
        4,
    )


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(None, "the process ended by SIGSEGV", died=True), "crash"),
        (Outcome(None, "no result after 30 s", died=True), "hang"),
        (Outcome(None, "XlaRuntimeError: UNIMPLEMENTED"), "error"),
        (Outcome([np.zeros(3)]), "wrong"),
    ],
)
def test_each_way_to_fail_has_a_name(outcome: Outcome, kind: str) -> None:
    failure = failure_of(outcome, [np.zeros(2, int)])
    assert failure is not None
    assert failure.kind == kind


def test_simpler_programs_have_fewer_parts_and_stay_exact() -> None:
    found = list(simpler(total_of_opposites()))
    assert len(found) >= 4
    assert any(one.length == 1 and list(one.operations()) == ["reduce_sum"] for one in found)
    for seed in range(12):
        program = random_program(seed)
        for one in simpler(program):
            assert one.length <= program.length
            for value, output in zip(evaluate(one), one.outputs, strict=True):
                assert np.abs(value).max(initial=0) <= one.spec(output).size


def test_most_programs_are_compiled_and_some_are_computed_one_by_one() -> None:
    compiled = [is_compiled(random_program(seed)) for seed in range(100)]
    assert 70 < sum(compiled) < 98
    assert compiled == [is_compiled(random_program(seed)) for seed in range(100)]


@pytest.mark.thorough
def test_a_planted_fault_is_found_and_made_small() -> None:
    hunter = hunter_with(planted.wrong_after_reduction, tries_to_shrink=150, tries_to_cut=60)
    find = next(hunter.hunt(seed=1, until=time.monotonic() + 120))
    assert list(find.program.operations()) == ["reduce_sum"]
    assert find.failure.kind == "wrong"
    assert find.compiled
    assert find.other_way == "right"  # operation by operation
    assert find.program.spec(0).elements <= 4


@pytest.mark.thorough
def test_a_fault_that_was_found_before_is_only_counted() -> None:
    hunter = hunter_with(planted.wrong_after_reduction, is_again=lambda _program, _failure: True)
    assert list(hunter.hunt(seed=1, until=time.monotonic() + 20)) == []
    assert hunter.tried >= hunter.again > 0


@pytest.mark.thorough
def test_the_same_seed_hunts_through_the_same_programs() -> None:
    seen: list[list[str]] = []
    for seed in (1, 1, 2):
        texts: list[str] = []

        def note(job: Any, texts: list[str] = texts) -> list[np.ndarray[Any, Any]]:
            texts.append(job.text)
            raise _EnoughError if len(texts) >= 10 else ValueError

        with pytest.raises(_EnoughError):
            list(
                hunter_with(_refusing(note), is_again=lambda _program, _failure: True).hunt(
                    seed, time.monotonic() + 60
                )
            )
        seen.append(texts)
    assert seen[0] == seen[1] != seen[2]


class _EnoughError(BaseException):
    pass


def _refusing(note: Any) -> Any:
    """Not a result, which the hunter would compare, but a failure."""

    def run(job: Any) -> None:
        try:
            note(job)
        except ValueError:
            return

    return run
