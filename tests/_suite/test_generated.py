"""Cases of many small programs: what is wrong is named, and nothing gets lost on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitcount._ledger.findings import findings
from jitcount._numerics.expected import REDUCTION
from jitcount._numerics.rounding import Rounded
from jitcount._suite.case import run_case
from jitcount._suite.generated import Member, case_of_members, digest
from tests.helpers import python

LONG = np.arange(5000.0)


def doubled(x: Any) -> Any:
    return 2 * x


def test_a_short_array_stays_as_it_is() -> None:
    short = np.array([[1, -2]], np.int8)
    assert digest(short) is short


def test_a_zero_has_no_sign() -> None:
    assert not np.signbit(digest(np.array([-0.0, 1], np.float32))).any()
    assert digest(np.array(-0.0, np.float32)).shape == ()


@pytest.mark.parametrize("place", [0, 511, 512, 4999])
@pytest.mark.parametrize("wrong", [7.25, np.nan, np.inf, -np.inf])
def test_one_wrong_number_changes_a_digest(place: int, wrong: float) -> None:
    other = LONG.copy()
    other[place] = wrong
    assert np.sum(digest(other) != digest(LONG)) == 1


def test_two_numbers_that_change_places_change_a_digest() -> None:
    other = LONG.copy()
    other[[3, 4]] = other[[4, 3]]
    assert np.any(digest(other) != digest(LONG))


def test_what_is_infinite_does_not_hide_the_rest_of_its_block() -> None:
    one, other = LONG.copy(), LONG.copy()
    one[0] = other[0] = -np.inf
    other[1] += 1
    assert np.any(digest(one) != digest(other))


def test_a_wrong_result_is_named() -> None:
    def right(x: Any) -> list[Any]:
        return [2 * x, x[0]]

    members = [
        Member("twice", lambda: [LONG.astype(np.float32)], doubled, doubled),
        Member(
            "two",
            lambda: [np.array([3, 5], np.float32)],
            lambda x: [2 * x, x[1]],
            right,
            outputs=("all", "first"),
        ),
    ]
    (line,) = findings(run_case(case_of_members("x", "x", members)))
    assert line.startswith("result 2 (two: first): the value is 5, not 3, ")


def test_what_is_not_exact_stays_within_its_bounds_and_what_is_wrong_does_not() -> None:
    x = np.arange(1, 60_001, dtype=np.float32).reshape(-1, 2)

    def case(off: float) -> Any:
        member = Member(
            "thirds",
            lambda: [x],
            lambda x: (x / 3).at[70, 1].multiply(off),
            lambda x: Rounded.exactly(x) / 3.0,
            REDUCTION,
        )
        return case_of_members("x", "x", [member])

    assert findings(run_case(case(1.0))) == []
    assert len(findings(run_case(case(1.001)))) == 1


_FINGERPRINT = """
import hashlib
import jax
import numpy as np
from jitcount._suite.running import chosen
from jitcount._suite.case import run_case
found = hashlib.sha256()
for case in chosen(["class-*"]):
    found.update("\\n".join([case.id, *case.names]).encode())
    for expected in case.expected():
        found.update(repr(expected).encode())
print(found.hexdigest())
"""


@pytest.mark.thorough
def test_the_same_programs_and_numbers_are_generated_at_each_run() -> None:
    printed = {
        python("-c", _FINGERPRINT, env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert len(printed.pop()) == len("\n") + 64
