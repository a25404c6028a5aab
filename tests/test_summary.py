"""The closing table of the benchmarks, from figures that are known."""

import functools
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitcount._show.terminal import render
from ratios import PRECISION, _one_round, error_of
from summary import LEGEND, main, summary


def figures(error: float = 0.0, **ratios: float) -> dict[str, Any]:
    def call(test: str, median: float, **extra: object) -> dict[str, Any]:
        return {"name": test, "group": "", "stats": {"median": median}, "extra_info": extra}

    found = [
        {"name": name, "ratio": ratio, "limit": 1.1, "error": error}
        for name, ratio in ratios.items()
    ]

    compiles = [["sum", ["float32[3]"], 0.001, 0.004, 0.0286]]
    return {
        "machine_info": {"jax": {"text": "cpu (cpu): jax 0.10.2"}},
        "benchmarks": [
            call("test_cold[cache_independent_count]", 0.1, counts={"sum": 2}, compiles=compiles),
            call("test_cold[plain]", 0.2, counts={"_reduce_sum": 2}, compiles=[]),
            call("test_cached[plain-ready]", 0.00003, counts={}),
            call("test_ratios", 1.0, ratios=found),
        ],
    }


def shown_of(found: dict[str, Any]) -> str:
    return render(summary(found))


@pytest.fixture(autouse=True)
def a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = shown_of(figures(ours=1.05))
    assert max(map(len, shown.splitlines())) <= 80
    assert "tens of ms" in shown


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if "─" not in line and line]


def test_shows_calls_compiles_and_ratios() -> None:
    assert words(shown_of(figures(ours=1.05))) == [
        "On cpu (cpu): jax 0.10.2",
        "a call compiles ours per call plain claimed",
        "cold: empty caches sum 2 100 ms 200 ms tens of ms",
        "cached: ready none 30 µs microseconds",
        *LEGEND,
        "compiles of a cold call of trace lower compile",
        "sum float32[3] 1 ms 4 ms 28.6 ms",
        "side by side, seconds of the processor ratio at most",
        "ours 1.05 1.1 holds",
    ]


@pytest.mark.parametrize(
    ("found", "shown", "code"),
    [
        (figures(PRECISION, ours=1.104), "ours 1.10 1.1 holds", 0),
        (figures(ours=1.106), "ours 1.11 1.1 DOES NOT HOLD", 1),
        (figures(0.01, ours=1.0), "ours 1.00 1.1 NOT KNOWN, ±0.02", 1),
        (figures(0.01, ours=1.124), "ours 1.12 1.1 NOT KNOWN, ±0.02", 1),
        (figures(0.01, ours=1.126), "ours 1.13 1.1 DOES NOT HOLD", 1),
    ],
)
def test_a_limit_that_does_not_hold_fails_the_run(
    found: dict[str, Any], shown: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, file = tmp_path / "good.json", tmp_path / "figures.json"
    good.write_text(json.dumps(figures(ours=1.0)))
    file.write_text(json.dumps(found))
    assert main([str(file), str(good)]) == code
    assert shown in words(capsys.readouterr().out)


def test_two_runs_of_enough_rounds_agree_to_a_hundredth() -> None:
    """By a model of what is measured: 5 % of noise, and each tenth figure twice as large."""
    generator = np.random.default_rng(0)

    def run() -> float:
        ratios: list[float] = []
        while not ratios or error_of(ratios) > PRECISION:
            outliers = np.where(generator.random(50) < 0.1, 2.0, 1.0)
            ratios += list(1.02 * generator.normal(1, 0.05, 50) * outliers)
        return statistics.median(ratios)

    pairs = [abs(run() - run()) for _ in range(50)]
    assert sum(apart < 0.01 for apart in pairs) >= 48


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_no_side_has_a_better_place_than_another(names: str) -> None:
    """In the rounds that there are, each comes first as often, and after each other as often."""
    turns: list[str] = []

    def side(name: str) -> float:
        turns.append(name)
        return 1.0

    sides = {name: functools.partial(side, name) for name in names}
    for number in range(6):
        assert set(_one_round(sides, number, turns=2).values()) == {2.0}
    in_turn = [turns[at : at + len(names)] for at in range(0, len(turns), len(names))]
    assert {turn[0] for turn in in_turn} == set(names)
    firsts = [[turn[0] for turn in in_turn].count(name) for name in names]
    after = [pair for turn in in_turn for pair in itertools.pairwise(turn)]
    pairs = [after.count(pair) for pair in itertools.permutations(names, 2)]
    assert (len(set(firsts)), len(set(pairs))) == (1, 1), (firsts, pairs)


def test_shows_what_there_is_when_only_some_benchmarks_ran() -> None:
    none = figures()
    none["benchmarks"] = []
    assert shown_of(none) == "On cpu (cpu): jax 0.10.2"
