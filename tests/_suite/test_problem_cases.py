"""What runs, unchanged, on every backend: the claims of the problem."""

import dataclasses
import logging
from collections import Counter

import jax
import pytest

from jitcount._ledger.findings import findings
from jitcount._suite.case import Case, exactly_these, run_case
from jitcount._suite.problem_cases import PROBLEM_CASES

CASES = pytest.mark.parametrize("case", PROBLEM_CASES, ids=lambda case: case.id)


@CASES
def test_gives_the_expected_values_and_compiles(case: Case) -> None:
    assert findings(run_case(case)) == []


@CASES
def test_the_counts_are_those_of_jaxs_own_compile_log(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "jax._src.dispatch"), jax.log_compiles():
        run_case(case, calls=1)
    compiled = Counter(
        message.removeprefix("Finished XLA compilation of jit(").partition(")")[0]
        for message in (record.getMessage() for record in caplog.records)
        if message.startswith("Finished XLA compilation of jit(")
    )
    assert compiled == case.compiles


def test_ids_are_unique() -> None:
    assert len({case.id for case in PROBLEM_CASES}) == len(PROBLEM_CASES)


def test_a_case_that_does_not_hold_says_what_differs() -> None:
    case = dataclasses.replace(PROBLEM_CASES[0], expected=exactly_these(7.0), compiles={"sum": 1})
    assert findings(run_case(case)) == [
        "the value is 6, not 7, 2,097,152 ulps apart; it must be equal to the bit",
        "compiled sum 2, add 1, not sum 1",
    ]
