"""A faulty backend does not pass: the five faults that long sums once let through."""

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

from jitcount._ledger.findings import verdicts
from jitcount._ledger.ledger import CaseEntry, Result
from jitcount._numerics import expected
from jitcount._numerics.arrays import encode
from jitcount._numerics.expected import EXACT
from jitcount._numerics.rounding import Rounded
from jitcount._suite import sums
from jitcount._suite.case import Case
from jitcount._suite.cases import CASES
from jitcount._suite.data import LARGEST_SUM, weights, whole
from jitcount._suite.running import chosen

# Not the two longest: they take seconds to make.
SUMS = chosen(["sum-whole-*0", "sum-around-*", "sum-positive-*"])
SHORTER = [case for case in SUMS if not case.id.endswith("-10000000")]
NARROW = ("float16", "bfloat16")


def true_sum(values: np.ndarray) -> float:
    return float(values.sum(dtype=np.float64))


def in_bfloat16(values: np.ndarray) -> float:
    """In 128 lanes, each of which stops growing."""
    padded = np.pad(values, (0, -len(values) % 128)).astype(ml_dtypes.bfloat16)
    lanes = np.zeros(128, ml_dtypes.bfloat16)
    for row in padded.reshape(-1, 128):
        lanes = lanes + row
    return true_sum(lanes)


def without_the_end(values: np.ndarray) -> float:
    return true_sum(values[: max(len(values) - 1024, 0)])


def with_a_tile_twice(values: np.ndarray) -> float:
    return true_sum(values) + true_sum(values[128:256])


def without_a_lane(values: np.ndarray) -> float:
    return true_sum(values[np.arange(len(values)) % 128 != 5])


def a_little_off(values: np.ndarray) -> float:
    return true_sum(values) * (1 + 1e-4)


def noticed(
    fault: Callable[[np.ndarray], float], monkeypatch: pytest.MonkeyPatch, cases: Sequence[Case]
) -> list[str]:
    """The cases that notice a fault of the long array's sum; results are rounded to float32."""

    def faulty(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(fault(one) + true_sum(other), np.float32)

    monkeypatch.setattr(sums, "cache_independent_count", faulty)
    found = []
    for case in cases:
        pairs = zip(case.program(), case.expected(), strict=True)
        results = tuple(Result(encode(np.asarray(value)), expected) for value, expected in pairs)
        if not all(verdict.holds for verdict in verdicts(CaseEntry(results=results))):
            found.append(case.id)
    return found


@pytest.mark.parametrize(
    "fault", [in_bfloat16, without_the_end, with_a_tile_twice, without_a_lane, a_little_off]
)
def test_long_sums_notice_each_of_the_five_faults(
    fault: Callable[[np.ndarray], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = noticed(fault, monkeypatch, SHORTER)
    assert len(found) >= 6
    assert {"sum-whole-100000", "sum-positive-100000", "sum-whole-1000000"} <= set(found)


def test_without_a_fault_none_of_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert noticed(true_sum, monkeypatch, SHORTER) == []


def test_whole_numbers_can_be_added_in_any_order_at_any_precision() -> None:
    for length in (1, 255, 256, 1025, 65_536, 131_073, 1_000_000):
        values = weights(length)
        assert 2 * values.sum(dtype=np.float64) < LARGEST_SUM
        assert np.all((values >= 1) & (values <= 255))
        assert np.array_equal(values.astype(ml_dtypes.bfloat16).astype(np.float32), values)
    assert len(np.unique(weights(255))) == 255
    assert np.all(np.abs(whole(1000, most=30)) <= 30)
    assert np.all(whole(1000, most=30) != 0)


def test_no_expected_bound_is_wider_than_a_thousandth_of_what_its_value_came_out_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, float] = {}

    def kept(reference: Rounded) -> None:
        if reference.dtype not in {"float16", "bfloat16"}:
            allowed = reference.scale + 1e-34  # denormals may be taken for zeros
            seen[case.id] = max(seen.get(case.id, 0), float(np.max(reference.likely / allowed)))

    monkeypatch.setattr(expected, "_require_teeth", kept)
    for case in CASES:
        # By hand, not by `within`: a bound that no one looked at.
        results = [] if case.id.endswith("-10000000") else case.expected()
        bounded = [r for r in results if r.numerics != EXACT and r.dtype not in NARROW]
        assert not bounded or case.id in seen
    assert len(seen) > 50
    assert max(seen.values()) < 1e-3, max(seen, key=lambda name: seen[name])
