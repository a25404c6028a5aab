"""Sorts that a target makes stable by counting the elements."""

import numpy as np
import pytest

from jitcount._emulate.translate import translate
from tests._emulate.cases import module, parameters
from tests._emulate.conftest import Run

COMPARE = """before (a: f32[], b: f32[], m: s32[], n: s32[]) -> pred[]
%a = f32[] parameter(0)
%b = f32[] parameter(1)
%m = s32[] parameter(2)
%n = s32[] parameter(3)
%less = pred[] compare(%a, %b), direction=LT
%more = pred[] compare(%b, %a), direction=LT
%same = pred[] compare(%less, %more), direction=EQ
%first = pred[] compare(%m, %n), direction=LT
ROOT %r = pred[] select(%same, %first, %less)"""

X = np.random.default_rng(0).integers(0, 9, 64).astype(np.float32)


def _text(result: str) -> str:
    lines = (
        f"{parameters(X)}\n%i = s32[64] iota(), iota_dimension=0\n"
        "%s = (f32[64], s32[64]) sort(%p0, %i), dimensions={0}, to_apply=%before\n"
        f"{result}"
    )
    return module(lines, COMPARE)


def test_where_only_the_values_count_the_counter_is_left_out(run_hlo: Run) -> None:
    text = _text("ROOT %g = f32[64] get-tuple-element(%s), index=0")
    (made,) = run_hlo(text, X)
    np.testing.assert_array_equal(made, np.sort(X))
    assert '"stablehlo.sort"(%arg0)' in translate(text).text


@pytest.mark.parametrize(
    "result",
    [
        "ROOT %g = s32[64] get-tuple-element(%s), index=1",
        (
            "%g = f32[64] get-tuple-element(%s), index=0\n"
            "%h = s32[64] get-tuple-element(%s), index=1\n"
            "ROOT %t = (s32[64], f32[64]) tuple(%h, %g)"
        ),
    ],
    ids=["the places", "both"],
)
def test_the_places_of_equals_are_in_order(result: str, run_hlo: Run) -> None:
    places, *_ = run_hlo(_text(result), X)
    np.testing.assert_array_equal(places, np.argsort(X, stable=True))


def test_numbers_of_another_kind_are_compared_as_ever(run_hlo: Run) -> None:
    text = _text("ROOT %g = s32[64] get-tuple-element(%s), index=1")
    text = text.replace("direction=LT\nROOT", "direction=GT\nROOT").replace(
        "%first = pred[] compare(%m, %n), direction=LT",
        "%first = pred[] compare(%m, %n), direction=GT",
    )
    (places,) = run_hlo(text, X)
    assert sorted(places.tolist()) == list(range(64))
    assert not np.array_equal(places, np.argsort(X, stable=True))
