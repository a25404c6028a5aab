"""The best few sizes for ragged lengths, beside brute force; what they cost; what is refused."""

import bisect
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitcount
from jitcount._buckets.optimal import best_places, lower_hull
from jitcount._buckets.plan import measured_compile_s
from jitcount._targets.result import OnTarget
from tests.expected import expect
from tests.helpers import python

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)


def area(lengths: list[int], sizes: tuple[int, ...]) -> int:
    return sum(sizes[bisect.bisect_left(sizes, length)] for length in lengths)


def best_by_brute_force(lengths: list[int], k: int, multiple_of: int) -> int:
    candidates = sorted({-(-length // multiple_of) * multiple_of for length in lengths})
    *others, last = candidates
    ways = (way for n in range(k) for way in itertools.combinations(others, n))
    return min(area(lengths, (*way, last)) for way in ways)


@given(LENGTHS.filter(lambda lengths: len(set(lengths)) < 12), st.integers(1, 5), st.integers(1, 9))
def test_a_plan_is_as_good_as_the_best_by_brute_force(
    lengths: list[int], k: int, multiple_of: int
) -> None:
    plan = jitcount.plan_buckets(lengths, k, multiple_of=multiple_of)
    assert len(plan.sizes) <= k
    assert all(size % multiple_of == 0 for size in plan.sizes)
    assert area(lengths, plan.sizes) == best_by_brute_force(lengths, k, multiple_of)


@given(st.data())
def test_any_cost_that_grows_with_the_size_is_served_best(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    numbers = st.lists(st.integers(0, 30), min_size=count, max_size=count)
    costs = sorted(data.draw(numbers))
    weights = [1 + weight for weight in data.draw(numbers)]
    k = data.draw(st.integers(1, 4))

    def cost(ends: tuple[int, ...]) -> int:
        return sum(w * costs[ends[bisect.bisect_left(ends, n)]] for n, w in enumerate(weights))

    ways = (way for n in range(k) for way in itertools.combinations(range(count - 1), n))
    found = best_places(np.array(costs, float), np.array(weights, float), k)
    assert found.cost == cost(found.places) == min(cost((*way, count - 1)) for way in ways)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200))
def test_no_point_is_below_the_hull(heights: list[int]) -> None:
    x, y = np.arange(len(heights), dtype=float), np.array(heights, float)
    hull = lower_hull(x, y)
    assert (y >= np.interp(x, x[hull], y[hull]) - 1e-9).all()
    assert (np.diff(y[hull], 2) * 0 == 0).all()
    slopes = np.diff(y[hull]) / np.diff(x[hull])
    assert (np.diff(slopes) > 0).all()


def test_points_that_go_one_by_one_are_the_same_hull() -> None:
    """A convex row and then one deep point: each pass removes a single point."""
    x = np.arange(5000.0)
    y = x**2
    y[-1] = -1e9
    assert lower_hull(x, y).tolist() == [0, 4999]


@given(LENGTHS, st.integers(1, 200))
def test_as_many_sizes_as_pay(lengths: list[int], price: int) -> None:
    """Of all plans with a number of sizes that is given, the one that costs least in all."""
    plan = jitcount.plan_buckets(lengths, compile_s=price, step_s=max(lengths))
    every = [
        jitcount.plan_buckets(lengths, k, compile_s=price, step_s=max(lengths))
        for k in range(1, len(set(lengths)) + 1)
    ]
    least = min(each.alternatives[0].total_s for each in every)
    assert plan.alternatives[0].total_s == pytest.approx(least)


@given(LENGTHS)
def test_a_histogram_is_the_same_as_its_lengths(lengths: list[int]) -> None:
    assert jitcount.plan_buckets(Counter(lengths), 3) == jitcount.plan_buckets(lengths, 3)
    assert jitcount.plan_buckets(np.array(lengths), 3) == jitcount.plan_buckets(lengths, 3)


def test_more_calls_ahead_pay_for_more_sizes() -> None:
    lengths = range(1, 1001)
    few = jitcount.plan_buckets(lengths, steps=1000, compile_s=1.0, step_s=0.01)
    many = jitcount.plan_buckets(lengths, steps=100_000, compile_s=1.0, step_s=0.01)
    assert (len(few.sizes), len(many.sizes)) == (2, 22)


def test_seconds_are_measured_at_some_sizes_or_a_function_of_them() -> None:
    lengths = [100] * 50 + [1000] * 50
    flat = jitcount.plan_buckets(lengths, compile_s=1.0, step_s={1: 0.5, 1000: 0.5})
    steep = jitcount.plan_buckets(lengths, compile_s=1.0, step_s={100: 0.1, 1000: 1.0})
    quadratic = jitcount.plan_buckets(
        lengths, compile_s=1.0, step_s=lambda size: (size / 1000) ** 2
    )
    assert flat.sizes == (1000,)
    assert steep.sizes == quadratic.sizes == (100, 1000)
    assert steep.alternatives[0].run_s == pytest.approx(55.0)
    assert quadratic.alternatives[0].run_s == pytest.approx(50.5)


def test_what_is_given_as_sizes_is_compared_and_not_planned() -> None:
    plan = jitcount.plan_buckets([3, 5, 9], sizes=[4, 16, 8])
    assert plan.sizes == (4, 8, 16)
    assert [(b.size, b.calls) for b in plan.buckets] == [(4, 1), (8, 1), (16, 1)]
    assert plan.padding == pytest.approx(1 - 17 / 28)


def test_a_length_has_the_next_size() -> None:
    plan = jitcount.plan_buckets([10, 20, 30], 2)
    assert plan.sizes == (20, 30)
    assert [plan.size_for(n) for n in (1, 20, 21, 30)] == [20, 20, 30, 30]
    with pytest.raises(ValueError, match=r"^length 31 is beyond the largest size, 30$"):
        plan.size_for(31)


# --- Two axes -------------------------------------------------------------------------------------


def test_two_axes_that_are_independent_have_sizes_each() -> None:
    grid = jitcount.plan_buckets({"rows": [8, 8, 64, 64], "columns": [16, 128, 16, 128]}, k=4)
    assert grid.sizes == {"rows": (8, 64), "columns": (16, 128)}
    assert grid.padding == 0.0


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_a_grid_has_no_more_programs_than_it_may_and_pads_no_more_than_one_size(
    pairs: list[tuple[int, int]],
) -> None:
    first, second = zip(*pairs, strict=True)
    grid = jitcount.plan_buckets({"a": first, "b": second}, k=6)
    sizes = grid.sizes
    assert len(sizes["a"]) * len(sizes["b"]) <= 6
    assert sizes["a"][-1] == max(first)
    assert sizes["b"][-1] == max(second)
    assert grid.padding <= grid.alternatives[2].padding + 1e-9


def test_a_grid_says_that_it_may_not_be_the_best() -> None:
    grid = jitcount.plan_buckets({"nodes": [3, 4, 9], "edges": [5, 7, 30]}, k=4)
    expect(
        str(grid),
        "2 sizes of nodes × 2 sizes of edges: 4 % of what is computed is padding\n"
        "\n"
        "axis    sizes\n"
        "─────────────\n"
        "nodes   4, 9\n"
        "edges   7, 30\n"
        "\n"
        "                compiles   padding\n"
        "──────────────────────────────────\n"
        "this plan              4       4 %\n"
        "powers of two          2      46 %\n"
        "one size               1      61 %\n"
        "no padding             3       0 %\n"
        "\n"
        "each axis has the best sizes for those of the other; both together may be better",
    )


# --- What is printed ------------------------------------------------------------------------------


def test_a_plan_is_a_table_beside_powers_of_two_and_no_padding() -> None:
    plan = jitcount.plan_buckets([20, 31, 20, 934, 57], k=2, compile_s=0.5, step_s=0.1)
    expect(
        str(plan),
        "2 sizes for 5 lengths from 20 to 934: 8.6 % of what is computed is padding\n"
        "\n"
        "size   lengths   of them   padding\n"
        "──────────────────────────────────\n"
        "  57   20 … 57         4      44 %\n"
        " 934       934         1       0 %\n"
        "\n"
        "                compiles   padding   to compile   to run   in all\n"
        "─────────────────────────────────────────────────────────────────\n"
        "this plan              2     8.6 %          1 s   124 ms   1.12 s\n"
        "powers of two          3      10 %        1.5 s   127 ms   1.63 s\n"
        "one size               1      77 %       500 ms   500 ms      1 s\n"
        "no padding             4       0 %          2 s   114 ms   2.11 s\n"
        "\n"
        "in 5 calls",
    )


def test_what_is_assumed_is_said() -> None:
    assert str(jitcount.plan_buckets([20, 31])).splitlines()[-1] == (
        "assumed: a compile costs as much as 100 calls at the largest size, with 2 calls ahead; "
        "compile_s, step_s and steps say what is known"
    )


def test_a_notebook_shows_a_plan() -> None:
    shown = jitcount.plan_buckets([20, 31])._repr_html_()
    assert "powers of two" in shown
    assert "<table" in shown


# --- What a log measured --------------------------------------------------------------------------


def two_programs() -> jitcount.CompileLog:
    import jax  # noqa: PLC0415 (the rest of this file needs none)

    @jax.jit
    def step(x: Any) -> Any:
        return 2 * x

    with jitcount.record() as log:
        for length in 3, 4, 5:
            step(np.ones(length, np.float32))
    return log


def test_a_compile_costs_what_recompiles_took(tmp_path: Path) -> None:
    log = two_programs()
    log.save(tmp_path / "run.json")
    took = float(np.median([c.total_s for c in log.compiles[1:]]))
    for source in log, jitcount.load(tmp_path / "run.json"), tmp_path / "run.json":
        plan = jitcount.plan_buckets([3, 9], 2, log=source, step_s=1.0, function="step")
        assert plan.alternatives[0].compile_s == pytest.approx(2 * took)


def test_a_compile_for_a_target_costs_what_its_compiler_took() -> None:
    compiles = [
        msgspec.structs.replace(c, on={"tpu:v5e": OnTarget(target="tpu:v5e", compile_s=seconds)})
        for c, seconds in zip(two_programs().compiles, (9.0, 2.0, 4.0), strict=True)
    ]
    assert measured_compile_s(compiles, "step", "tpu:v5e") == 3.0


def test_what_a_log_does_not_have_is_refused() -> None:
    log = two_programs()
    with pytest.raises(
        ValueError, match=r"^the log has no compile of 'stop'; did you mean step\?$"
    ):
        jitcount.plan_buckets([3], log=log, function="stop")
    with pytest.raises(
        ValueError, match=r"^the log has no compile for 'tpu:v5e'; its targets are none$"
    ):
        jitcount.plan_buckets([3], log=log, target="tpu:v5e")
    with pytest.raises(
        ValueError, match=r"^plan_buckets looks for target 'tpu:v5e' in a log; pass log=, too$"
    ):
        jitcount.plan_buckets([3], target="tpu:v5e")


def test_to_plan_and_to_print_need_no_jax() -> None:
    code = """if True:
        import sys, jitcount._buckets.plan as p
        str(p.plan_buckets([3, 4, 50]))
        print("jax" in sys.modules)"""
    assert python("-c", code).stdout == "False\n"


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "plan_buckets needs lengths; lengths is empty"),
        (({},), "plan_buckets needs lengths; lengths is empty"),
        (({3: 0},), "plan_buckets needs lengths; lengths is empty"),
        (([3, 0],), "plan_buckets takes lengths of 1 or more; lengths[1] is 0"),
        (([3, -2],), "plan_buckets takes lengths of 1 or more; lengths[1] is -2"),
        (([3, 2.5],), "plan_buckets takes whole lengths; lengths[1] is 2.5"),
        (([3, float("nan")],), "plan_buckets takes whole lengths; lengths[1] is nan"),
        (([True],), "plan_buckets takes whole lengths; lengths[0] is True"),
        ((["3"],), "plan_buckets takes whole lengths; lengths[0] is '3'"),
        ((5,), "plan_buckets takes lengths in a list, an array or a mapping; lengths is 5"),
        (([[3, 4]],), "plan_buckets takes lengths in one row; lengths has shape (1, 2)"),
        (
            ({3: -1},),
            "plan_buckets takes lengths of 0 or more; the counts of lengths[0] is -1",
        ),
        (([3], 0), "plan_buckets takes k of 1 or more; k is 0"),
        (([3], 1.5), "plan_buckets takes k of 1 or more; k is 1.5"),
        (([3], True), "plan_buckets takes k of 1 or more; k is True"),
        (
            ({"a": [3], "b": [3], "c": [3]},),
            "plan_buckets takes one or two axes; lengths names 3",
        ),
        (
            ({"a": [3], "b": [3, 4]},),
            "plan_buckets takes lengths that belong together one by one; a has 1 and b has 2",
        ),
        (({"a": [], "b": []},), "plan_buckets needs lengths; lengths is empty"),
        (
            ({"a": [0], "b": [3]},),
            "plan_buckets takes lengths of 1 or more; lengths['a'][0] is 0",
        ),
    ],
)
def test_bad_lengths_are_refused_in_a_sentence(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        jitcount.plan_buckets(*arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sizes": [2, 8]},
            "sizes (2, 8) do not reach the longest length, 9: add one that does",
        ),
        ({"sizes": []}, "sizes (none) do not reach the longest length, 9: add one that does"),
        (
            {"sizes": [8, 12], "multiple_of": 8},
            "sizes must be multiples of 8; 12 is not",
        ),
        ({"multiple_of": 0}, "plan_buckets takes multiple_of of 1 or more; multiple_of is 0"),
        ({"steps": 0}, "plan_buckets takes steps of 1 or more; steps is 0"),
        (
            {"compile_s": -1.0},
            "plan_buckets takes compile_s in seconds, 0 or more; compile_s is -1.0",
        ),
        (
            {"step_s": 1.0},
            "plan_buckets weighs step_s against compiles; pass compile_s or log=",
        ),
        (
            {"compile_s": 1.0, "step_s": {}},
            "plan_buckets takes step_s at one size at least; there is none",
        ),
        (
            {"compile_s": 1.0, "step_s": float("inf")},
            "plan_buckets takes step_s in seconds, 0 or more; step_s is inf",
        ),
        (
            {"compile_s": 1.0, "step_s": lambda size: 5.0 - size},
            "step_s must be seconds of 0 or more; at size 9 it is -4.0",
        ),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared whole)
        jitcount.plan_buckets([3, 9], **options)
    assert str(refused.value) == message


def test_a_plan_can_be_kept_as_plain_data() -> None:
    assert json.loads(json.dumps(jitcount.plan_buckets([3, 9], 2).sizes)) == [3, 9]
