"""Rounding at random: what is exact stays, what is not moves to a neighbour, right in the mean."""

import ml_dtypes
import numpy as np
import pytest

from jitcount._tolerance.lanes import FIRST_DRAW, Lanes, OneLineAtATime

DRAWS = 4000


def one_lane(*values: float) -> np.ndarray:
    return np.array([values], np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_of_the_dtype_keep_one_lane(dtype: str) -> None:
    exact = one_lane(0.0, 1.0, -3.5, np.inf, 384.0)
    assert Lanes(8).rounded(exact.copy(), dtype).tolist() == exact.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_others_go_to_their_neighbours_as_often_as_they_are_near(dtype: str) -> None:
    value = 1 / 3
    found = Lanes(DRAWS).rounded(one_lane(value), dtype)[:, 0]
    near = float(np.array(value).astype(getattr(ml_dtypes, dtype, dtype)))
    assert found[0] == value
    assert found[1] == near
    drawn = found[FIRST_DRAW:]
    assert len(set(drawn)) == 2
    assert set(drawn) == {
        float(np.array(x).astype(getattr(ml_dtypes, dtype, dtype))) for x in drawn
    }
    step = abs(np.subtract(*sorted(set(drawn))))
    assert abs(drawn.mean() - value) < 5 * step / np.sqrt(DRAWS)


def test_a_function_that_is_off_by_ulps_moves_by_so_many() -> None:
    drawn = Lanes(DRAWS).rounded(one_lane(1 / 3), "float32", coarser=3)[FIRST_DRAW:, 0]
    off = (drawn - 1 / 3) / np.spacing(np.float32(1 / 3))
    assert 3.5 < np.abs(off).max() <= 5
    assert 2.0 < off.std() < 2.7


def test_with_more_bits_it_moves_by_less() -> None:
    for bits in 4, 8:
        drawn = Lanes(DRAWS, more_bits=bits).rounded(one_lane(1 / 3), "float32")[FIRST_DRAW:, 0]
        assert np.abs(drawn - 1 / 3).max() <= np.spacing(np.float32(1 / 3)) * 2.0**-bits


def test_what_is_too_large_is_infinite_in_the_reference_too() -> None:
    found = Lanes(8).rounded(one_lane(1e39, -1e39), "float32")
    assert (found == one_lane(np.inf, -np.inf)).all()


def test_what_is_too_small_is_a_multiple_of_the_smallest() -> None:
    smallest = 2.0**-149
    found = Lanes(8).rounded(one_lane(smallest / 3, smallest * 2.9), "float32")[1:]
    assert (found == one_lane(0.0, smallest * 3)).all()


def test_of_float64_itself_whole_numbers_pass_for_exact() -> None:
    found = Lanes(100).rounded(one_lane(3.0, 1 / 3), "float64")
    assert set(found[:, 0]) == {3.0}
    off = (found[FIRST_DRAW:, 1] - 1 / 3) / np.spacing(1 / 3)
    assert 0.5 < np.abs(off).max() <= 2


def test_the_same_seed_draws_the_same() -> None:
    one, other, third = (
        Lanes(50, seed).rounded(one_lane(1 / 3, 0.1), "float32") for seed in (1, 1, 2)
    )
    assert (one == other).all()
    assert (one != third).any()


def test_many_numbers_are_drawn_as_a_few_are() -> None:
    found = Lanes(2).rounded(np.full((1, 1 << 18), 1 / 3), "float32")[FIRST_DRAW:]
    step = np.spacing(np.float32(1 / 3))
    assert abs(found.mean() - 1 / 3) < 1e-3 * step


def test_lanes_that_agree_are_one_again() -> None:
    lanes = Lanes(2)
    same = np.array([[1.0], [1.0], [1.0], [1.0]])
    assert lanes.settled(same, "the sign").shape == (1, 1)
    assert lanes.flips == {}


def test_lanes_that_do_not_are_remembered_with_their_step() -> None:
    lanes = Lanes(2)
    lanes.step = 7
    lanes.settled(np.array([[1.0], [1.0], [-1.0], [1.0]]), "the sign")
    assert {key: flips.tolist() for key, flips in lanes.flips.items()} == {
        (7, "the sign"): [False, False, True, False]
    }


def test_one_line_at_a_time_moves_only_its_own_lanes() -> None:
    lanes = OneLineAtATime(line_of={0: 0, 1: 1}, lines=[0, 1], draws=3)
    lanes.step = 1
    moved = lanes.rounded(one_lane(1 / 3), "float32")[FIRST_DRAW:, 0] != 1 / 3
    assert moved.tolist() == [False] * 3 + [True] * 3
