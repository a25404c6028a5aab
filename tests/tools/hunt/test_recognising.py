"""A find that was reported in public, or that this hunt has had already."""

from dataclasses import replace
from typing import Any

import pytest

from jitcount._miscompiles.known import KNOWN, Miscompile
from tests.tools.hunt import planted
from tools.hunt.hunting import Failure, Find
from tools.hunt.program import Input, Program, Step
from tools.hunt.recognising import NEEDS, Finds, recognised, reported
from tools.hunt.values import Spec

VECTOR = Spec("float32", (3,), 8, negative=True)
SCALAR = replace(VECTOR, shape=(), size=24)
SUM = Step("reduce_sum", (1,), SCALAR, {"axes": (0,), "rank": 1})
OPPOSITE = Step("neg", (0,), VECTOR)
WRONG = Failure("wrong", "output 0 is 1 at [], and should be 2")


def program_of(*steps: Step) -> Program:
    return Program((Input(VECTOR, seed=1),), steps, (len(steps),))


TOTAL = program_of(replace(SUM, operands=(0,)))
TOTAL_OF_OPPOSITES = program_of(OPPOSITE, SUM)


def report(reference: str, cured_by: str = "") -> Miscompile:
    return Miscompile(
        reference=reference,
        about="some",
        platform="cpu",
        releases=("0.7", "0.9"),
        cured_by=cured_by,
    )


def test_every_report_that_is_recognised_is_in_the_table_of_known_ones() -> None:
    assert set(NEEDS) <= {one.reference for one in KNOWN if one.cured_by}


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report("jax #1", "--a")], "probably jax #1 (some): its flag makes this right too"),
        ([report("jax #1", "--b")], ""),
        ([report("jax #2", "--a")], ""),
        ([report("jax #1")], ""),
    ],
)
def test_a_report_is_named_by_its_flag_and_its_operations(
    monkeypatch: pytest.MonkeyPatch, reports: list[Miscompile], expected: str
) -> None:
    monkeypatch.setitem(NEEDS, "jax #1", (("reduce_sum", "dot"),))
    monkeypatch.setitem(NEEDS, "jax #2", (("reduce_sum",), ("dot",)))
    find = Find(TOTAL, WRONG, 1, cures=("--a",))
    assert recognised(find, reports) == expected


def test_a_crash_is_no_example_of_wrong_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, "jax #1", (("reduce_sum",),))
    ends = replace(report("jax #1", "--a"), about="sums end the process")
    find = Find(TOTAL, WRONG, 1, cures=("--a",))
    crash = replace(find, failure=Failure("crash", "SIGABRT"))
    assert recognised(find, [ends]) == recognised(crash, [report("jax #1", "--a")]) == ""
    assert "jax #1" in recognised(crash, [ends])


def test_the_reports_of_the_installed_release_can_be_recognised() -> None:
    assert {one.reference for one in reported()} <= set(NEEDS)
    assert "openxla #48719" in {one.reference for one in reported()}


def finds_with(outcome: str, *cures: str) -> Finds:
    def right_or_wrong(_job: Any) -> Any:
        return [
            (TOTAL_OF_OPPOSITES_RESULT if outcome == "right" else TOTAL_OF_OPPOSITES_RESULT + 1)
        ]

    def make_worker(_flags: str) -> Any:
        return planted.InThisProcess(right_or_wrong)

    return Finds(make_worker, [Find(TOTAL, WRONG, 1, other_way="right", cures=cures)])


TOTAL_OF_OPPOSITES_RESULT = -TOTAL.inputs[0].data().sum()


def test_a_larger_program_that_the_same_flag_cures_is_the_same_fault() -> None:
    assert finds_with("right", "--a").has(TOTAL_OF_OPPOSITES, WRONG)
    assert not finds_with("wrong", "--a").has(TOTAL_OF_OPPOSITES, WRONG)


def test_without_a_flag_the_operations_and_the_other_way_tell() -> None:
    assert finds_with("right").has(TOTAL_OF_OPPOSITES, WRONG)
    assert not finds_with("wrong").has(TOTAL_OF_OPPOSITES, WRONG)
    assert not finds_with("right").has(program_of(OPPOSITE), WRONG)


def test_another_kind_of_failure_is_another_fault() -> None:
    assert not finds_with("right", "--a").has(TOTAL_OF_OPPOSITES, Failure("crash", "SIGABRT"))
