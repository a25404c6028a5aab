"""What a failure of numerics says, and that nothing wrong passes."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitcount._numerics.arrays import Array, decode, encode
from jitcount._numerics.expected import (
    DECLARED,
    MATMUL,
    REDUCTION,
    Expected,
    between_runs,
    derived,
    exactly,
    within,
    within_complex,
)
from jitcount._numerics.judging import judge, judge_committed, judge_pair
from jitcount._numerics.rounding import Rounded

TENTHS = np.full(1000, 0.1, np.float32)
SUM = within(REDUCTION, Rounded.exactly(TENTHS).sum())
EXCUSED = within(REDUCTION, Rounded.exactly(TENTHS).sum(), may="adders are tired here")


def one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def test_a_result_within_its_bound_holds_and_says_how_much_of_it_it_uses() -> None:
    verdict = judge(encode(one(100.001)), SUM)
    assert (verdict.grade, verdict.holds) == ("expected", True)
    assert 0.7 < verdict.share < 0.8


def test_one_that_is_possible_but_not_expected_is_suspicious() -> None:
    verdict = judge(encode(one(100.005)), SUM)
    assert (verdict.grade, verdict.holds) == ("proven", False)
    assert str(verdict) == (
        "the value is 100.004997, not 100, 655 ulps apart; suspicious: 3.71 times what is "
        "expected of float32 (0.00135), within what is possible (0.00595)"
    )


def test_unless_the_case_says_why_it_may_be_so() -> None:
    verdict = judge(encode(one(100.005)), EXCUSED)
    assert (verdict.grade, verdict.holds) == ("proven", True)
    assert not judge(encode(one(100.01)), EXCUSED).holds


def test_between_two_of_a_kind_there_is_no_excuse() -> None:
    good, odd = encode(one(100)), encode(one(100.005))
    assert judge_pair(good, odd, EXCUSED).holds
    verdict = judge_pair(good, odd, EXCUSED, same_kind=True)
    assert (verdict.grade, verdict.holds) == ("proven", False)


def test_a_wrong_element_is_named_before_one_that_is_only_suspicious() -> None:
    numbers = Rounded.exactly(np.full((2, 1000), 0.1, np.float32)).sum(1)
    found = np.array([100.005, 100.01], np.float32)
    assert str(judge(encode(found), within(REDUCTION, numbers))).startswith("[1] is 100.01")


def test_a_check_that_cannot_fail_is_refused() -> None:
    blunt = Rounded.declared(2.0, 0.1, "float32")
    message = "an expected bound of 0.1 for what came out of 2: it would let anything pass"
    with pytest.raises(ValueError, match=f"^{message}$"):
        within(DECLARED, blunt)
    assert within(DECLARED, Rounded.declared(2.0, 0.1, "bfloat16")).numerics == DECLARED


def test_one_beyond_its_bound_shows_the_worst_element_the_ulps_and_the_share() -> None:
    assert str(judge(encode(one(100.01)), SUM)) == (
        "the value is 100.010002, not 100, 1,311 ulps apart; 1.68 of the bound 0.00595"
    )


def test_the_worst_element_of_an_array_is_named() -> None:
    expected = exactly(np.arange(6, dtype=np.int32).reshape(2, 3))
    found = np.array([[0, 1, 2], [3, 9, 5]], np.int32)
    assert str(judge(encode(found), expected)) == (
        "[1, 1] is 9, not 4, 5 ulps apart; it must be equal to the bit"
    )


def test_scaling_a_reduction_by_more_than_its_bound_is_found() -> None:
    reference, bound = float(decode(SUM.reference)), float(SUM.bounds()[1])
    scaled = one(reference * (1 + 2 * bound / reference))
    verdict = judge(encode(scaled), SUM)
    assert (verdict.grade, verdict.holds) == ("wrong", False)
    assert verdict.worst
    assert verdict.worst.share == pytest.approx(2, rel=0.01)


@given(st.integers(0, 31))
def test_any_flipped_bit_of_an_exact_value_is_found(bit: int) -> None:
    expected = exactly(one(3.0))
    flipped = (one(3.0).view(np.uint32) ^ np.uint32(1 << bit)).view(np.float32)
    assert not judge(encode(flipped), expected).holds


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        (np.nan, 1.0, "the value is nan, not 1; it must be equal to the bit"),
        (np.inf, -np.inf, "the value is inf, not -inf; it must be equal to the bit"),
        (-0.0, 0.0, "the value is -0, not 0, 0 ulps apart; it must be equal to the bit"),
    ],
)
def test_specials_must_be_where_they_should(found: float, expected: float, message: str) -> None:
    assert str(judge(encode(one(found)), exactly(one(expected)))) == message


def test_of_nans_only_that_they_are_counts() -> None:
    for bits in 0x7FC00001, 0x7F800001:  # a quiet one, and one that signals: NumPy warns of it
        payload = np.array(bits, np.uint32).view(np.float32)
        assert judge(encode(payload), exactly(one(np.nan))).holds
        assert judge(encode(payload), exactly(payload)).holds
        assert not judge(encode(payload), SUM).holds


def test_a_signalling_nan_is_judged_without_a_warning() -> None:
    signalling = np.frombuffer(bytes.fromhex("0100a07f"), np.float32).reshape(())
    assert judge(encode(signalling), exactly(one(np.nan))).holds


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_no_bound_is_wide_enough_for_what_is_not_finite(special: float) -> None:
    verdict = judge(encode(one(special)), SUM)
    assert not verdict.holds
    assert str(verdict) == (
        f"the value is {special}, not 100; not comparable with the bound 0.00595"
    )


def test_another_shape_and_another_dtype_are_wrong() -> None:
    assert str(judge(encode(np.ones(2, np.float32)), SUM)) == "the shape is (2,), not ()"
    wrong = judge(encode(np.array(100, np.int32)), SUM)
    assert str(wrong) == "the dtype is int32, not float32"


def test_whole_numbers_may_be_wider_with_x64() -> None:
    assert judge(encode(np.array(7, np.int64)), exactly(np.array(7, np.int32))).holds
    assert not judge(encode(np.array(7, np.uint64)), exactly(np.array(7, np.int32))).holds


def test_complex_numbers_are_judged_part_by_part() -> None:
    part = Rounded.exactly(np.array(1, np.float32)) * 3.0
    expected = within_complex(MATMUL, part, part)
    assert judge(encode(np.array(3 + 3j, np.complex64)), expected).holds
    wrong = judge(encode(np.array(3 + 3.1j, np.complex64)), expected)
    assert str(wrong).startswith("[1] is 3.0999999, not 3, 419,430 ulps apart; ")


def test_two_results_may_be_two_bounds_apart_and_no_more() -> None:
    bound = float(SUM.bounds()[0])
    low, high = encode(one(100 - 0.9 * bound)), encode(one(100 + 0.9 * bound))
    assert judge_pair(low, high, SUM).holds
    assert not judge_pair(low, encode(one(100 + 1.2 * bound)), SUM).holds


# --- What a user's function must be ---------------------------------------------------------------

WIDTHS = np.array([0.5, 0.0, np.nan])
PARTLY = derived("float32", np.array([1.0, 2.0, 3.0]), WIDTHS, "the branch at f.py:3 flips")


def found(*values: float) -> Array:
    return encode(np.array(values, np.float32))


def test_a_result_must_be_within_its_derived_tolerance() -> None:
    whole = derived("float32", np.array([1.0, 2.0]), np.array([0.5, 0.25]))
    assert (whole.numerics, whole.why, whole.left_out()) == ("derived", "", 0)
    assert judge(found(1.5, 1.75), whole).share == 1
    assert judge(found(1.5, 1.75), whole).holds
    verdict = judge(found(1.25, 2.75), whole)
    assert (verdict.grade, verdict.holds) == ("wrong", False)
    assert str(verdict) == (
        "[1] is 2.75, not 2, 3,145,728 ulps apart; 3 times the derived tolerance 0.25"
    )


def test_what_must_be_equal_and_is_not_says_so() -> None:
    assert str(judge(found(1, 2.5, 3), PARTLY)) == (
        "[1] is 2.5, not 2, 2,097,152 ulps apart; it must be equal to the bit"
    )


def test_an_element_without_a_tolerance_is_left_out_and_counted() -> None:
    assert (PARTLY.numerics, PARTLY.why) == ("no tolerance", "the branch at f.py:3 flips")
    assert PARTLY.left_out() == 1
    verdict = judge(found(1, 2, np.inf), PARTLY)
    assert (verdict.holds, verdict.share, verdict.unjudged) == (True, 0.0, 1)
    assert judge(found(1, 2, 3), PARTLY).unjudged == 0
    assert not judge(found(np.nan, 2, 9), PARTLY).holds


def test_a_tolerance_that_is_not_finite_is_none() -> None:
    overflowing = derived("float32", np.array(1.0), np.array(np.inf))
    assert (overflowing.left_out(), overflowing.why) == (1, "its tolerance is not finite")


def test_a_float64_has_a_tolerance_below_the_smallest_float32() -> None:
    tiny = derived("float64", np.array(1e-60), np.array(1e-76))
    assert judge(encode(np.array(1e-60 + 5e-77)), tiny).holds
    assert not judge(encode(np.array(2e-60)), tiny).holds


def test_no_tolerance_becomes_narrower_in_a_file() -> None:
    expected = derived("float32", np.array(0.0), np.array(0.1))
    assert 0.1 <= expected.bounds()[0] < 0.1000001


def test_the_parts_of_a_complex_number_have_its_tolerance() -> None:
    reference, width = np.array([1 + 2j, 3 + 4j]), np.array([0.5, np.nan])
    expected = derived("complex64", reference, width, "why")
    assert expected.left_out() == 1
    value = np.array([1.25 + 2j, 9 + 9j], np.complex64)
    assert judge(encode(value), expected).holds
    assert judge(encode(value), expected).unjudged == 2
    wrong = judge(encode(np.array([1 + 3j, 3 + 4j], np.complex64)), expected)
    assert str(wrong).startswith("[0, 1] is 3, not 2")


def test_two_runs_are_allowed_each_its_own_tolerance() -> None:
    narrow = derived("float32", np.array([1.0]), np.array([0.25]))
    wide = derived("float32", np.array([1.0]), np.array([0.5]))
    low, high = found(0.75), found(1.5)
    assert judge_pair(low, high, narrow, wide).holds
    assert str(judge_pair(low, high, narrow, narrow)) == (
        "[0] is 1.5, not 0.75, 8,388,608 ulps apart; 1.5 times both derived tolerances, 0.5"
    )
    assert judge_pair(found(1, 2, 3), found(1, 2, 4), PARTLY, PARTLY).unjudged == 1


def test_a_tolerance_that_only_one_run_could_derive_holds_for_both() -> None:
    known = derived("float32", np.array([1.0]), np.array([0.25]))
    declared = between_runs(np.array([1.0], np.float32), 1e-5, "it is spread over two processes")
    for pair in (known, declared), (declared, known):
        assert judge_pair(found(1), found(1.5), *pair).holds
        assert not judge_pair(found(1), found(1.75), *pair).holds


def test_a_declared_bound_is_a_share_of_the_largest_magnitude_in_both_runs() -> None:
    one, other = np.array([100, 1], np.float32), np.array([100, 1.5], np.float32)
    expected = between_runs(one, 1e-2, "it looks at values")
    assert (expected.numerics, expected.within) == ("declared between runs", 1e-2)
    assert judge(encode(one), expected).share == 0
    assert judge_pair(encode(one), encode(other), expected).share == 0.5
    far = judge_pair(encode(one), found(100, 3), expected)
    assert str(far) == (
        "[1] is 3, not 1, 12,582,912 ulps apart; "
        "2 times the declared 0.01 of the largest magnitude, 1"
    )
    assert not judge_pair(encode(one), found(np.nan, 1), expected).holds
    assert str(judge_pair(encode(one), found(1), expected)) == "the shape is (1,), not (2,)"


def test_whole_numbers_of_two_runs_must_be_equal_whatever_is_declared() -> None:
    one = np.array([1_000_000, 1], np.int32)
    expected = between_runs(one, 1e-2, "it looks at values")
    other = encode(one + np.array([0, 1], np.int32))
    assert str(judge_pair(encode(one), other, expected)) == (
        "[1] is 2, not 1, 1 ulp apart; it must be equal to the bit"
    )


def test_a_committed_reference_allows_the_wider_of_two_tolerances() -> None:
    narrow = derived("float32", np.array([1.0]), np.array([0.25]))
    wide = derived("float32", np.array([1.0]), np.array([0.5]))
    assert judge_committed(found(1.5), narrow, wide).holds
    assert judge_committed(found(1.5), wide, narrow).holds
    assert not judge_committed(found(1.5), narrow, narrow).holds
    declared = between_runs(np.array([1.0], np.float32), 1e-3, "")
    assert not judge_committed(found(1.5), narrow, declared).holds
    assert str(judge_committed(found(1, 1), narrow, narrow)) == "the shape is (2,), not (1,)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"within": -1.0}, "a declared bound of -1.0"),
        ({"within": np.inf}, "a declared bound of inf"),
        ({"numerics": "derived", "within": 0.0}, "a bound of dtype None, not float32 or float64"),
        ({"numerics": "exact"}, "a declared bound of 0.5"),
    ],
)
def test_an_expectation_that_makes_no_sense_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    declared = between_runs(np.array(1.0, np.float32), 0.5, "")
    with pytest.raises(ValueError, match=f"^{message}$"):
        Expected(**{**msgspec.structs.asdict(declared), **fields})
