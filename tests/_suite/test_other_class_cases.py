"""The classes besides products: that every combination is there, and that a mistake is seen."""

from __future__ import annotations

from itertools import pairwise
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest

from jitcount._ledger.findings import findings
from jitcount._suite import array_class_cases as arrays
from jitcount._suite import moving_class_cases as moving
from jitcount._suite.case import run_case
from jitcount._suite.generated import case_of_members
from jitcount._suite.running import chosen
from tools.faulty import primitives_replaced


def test_every_step_is_in_every_kind_of_loop() -> None:
    names = [member.name for member in moving.loops()]
    for step, loop in combinations(moving.STEPS, moving.LOOPS):
        assert sum(name.startswith(f"{step} in {loop}, ") for name in names) >= 1
    assert sum(name.startswith("gradient of") for name in names) == len(moving.LINEAR)


def test_loops_have_places_in_and_out_of_range() -> None:
    places = np.concatenate([member.operands()[1] for member in moving.loops()])
    assert places.min() < -moving.ROWS < 0 < moving.ROWS < places.max()
    assert {*range(moving.ROWS)} <= {*places.tolist()}


def test_every_pair_of_slices_is_there_with_starts_out_of_range() -> None:
    pairs = [(first, then) for first, then, _ in moving.chains()]
    assert pairs == list(combinations(moving.FIRST, moving.THEN))


@pytest.mark.parametrize("rank", range(1, arrays.MOST_AXES + 1))
def test_every_reduction_is_there_of_every_rank_and_along_every_axis(rank: int) -> None:
    mine = [m.name for m in arrays.reductions() if f" of rank {rank} " in m.name]
    for axis in range(rank):
        assert any(f"along {axis}, " in name for name in mine)
    for reduction in (*arrays.REDUCTIONS, *arrays.PLACES):
        assert any(name.startswith(f"{reduction} of ") for name in mine), reduction


def test_every_type_is_converted_to_every_other() -> None:
    chains = [member.name.split(",")[0].split(" to ") for member in arrays.conversions()]
    found = {pair for chain in chains for pair in pairwise(chain)}
    wanted = {pair for pair in combinations(arrays.TYPES, arrays.TYPES) if pair[0] != pair[1]}
    assert wanted <= found


def test_numbers_of_a_conversion_fit_every_type_on_the_way() -> None:
    chains = [m.name.split(" to ") for m in arrays.conversions() if "," not in m.name]
    for chain in chains:
        x = arrays.numbers_for(chain, 1)
        wide = x.astype(np.float64)
        for name in chain:
            assert np.array_equal(wide.astype(arrays.dtype_of(name)).astype(np.float64), wide)


def test_windows_have_padding_strides_and_dilations_small_and_large() -> None:
    for large in (False, True):
        drawn = [window for window, is_large, _ in arrays.windows() if is_large == large]
        kept = [window for window in drawn if not window.is_dropped]
        assert len(kept) >= len(drawn) // 2
        for field in ("strides", "base_dilation", "dilation"):
            assert any(max(getattr(window, field)) > 1 for window in kept), field
        assert any(low != high for window in kept for low, high in window.padding)


def test_windows_are_those_of_a_loop() -> None:
    x = np.array([5.0, 1, 4, 2, 3], np.float32)
    window = arrays.Window((2,), (2,), ((1, 2),), (2,), (3,))
    # Spread out and padded: 0 5 0 1 0 4 0 2 0 3 0 0
    assert window.by_hand("sum", x).tolist() == [1, 4, 2, 3, 0]


def test_programs_with_several_outputs_are_small_and_large() -> None:
    names = [member.name for member in arrays.outputs()]
    assert len(names) == len(arrays.OUTPUTS) * len(arrays.SHAPES)


def test_a_slice_that_wraps_is_noticed_in_loops_and_of_slices() -> None:
    def wraps(original: Any, x: Any, *starts: Any, **more: Any) -> Any:
        inside = [start % extent for start, extent in zip(starts, x.shape, strict=True)]
        return original(x, *inside, **more)

    members = [m for m in moving.loops() if m.name.startswith("slice in scan,")]
    with primitives_replaced({"dynamic_slice": wraps}):
        assert findings(run_case(case_of_members("x", "x", members), calls=1))


def test_a_lost_update_is_noticed_in_place() -> None:
    def lost(original: Any, x: Any, *more: Any, **parameters: Any) -> Any:
        return original(x, *more, **parameters) * 0 + x

    with primitives_replaced({"scatter": lost, "dynamic_update_slice": lost}):
        (case,) = chosen(["class-donated"])
        assert findings(run_case(case, calls=1))
