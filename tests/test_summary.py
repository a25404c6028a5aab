"""The closing table of the benchmarks, from figures that are known."""

from typing import Any

import pytest

from jitcount.show.terminal import render
from summary import LEGEND, summary


def figures(**ratios: float) -> dict[str, Any]:
    def call(test: str, median: float, **extra: object) -> dict[str, Any]:
        return {"name": test, "stats": {"median": median}, "extra_info": extra}

    compiles = [["sum", ["float32[3]"], 0.001, 0.004, 0.0286]]
    return {
        "machine_info": {"jax": {"text": "cpu (cpu): jax 0.10.2"}},
        "benchmarks": [
            call("test_cold[cache_independent_count]", 0.1, counts={"sum": 2}, compiles=compiles),
            call("test_cold[plain]", 0.2, counts={"_reduce_sum": 2}, compiles=[]),
            call("test_cached[plain-ready]", 0.00003, counts={}),
            *(call(f"test_{n}", 1.0, name=n, ratio=r, limit=1.1) for n, r in ratios.items()),
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
        "side by side ratio at most",
        "ours 1.05 1.1 holds",
    ]


def test_says_when_a_limit_does_not_hold() -> None:
    assert words(shown_of(figures(ours=1.11)))[-1] == "ours 1.11 1.1 DOES NOT HOLD"


def test_shows_what_there_is_when_only_some_benchmarks_ran() -> None:
    none = figures()
    none["benchmarks"] = []
    assert shown_of(none) == "On cpu (cpu): jax 0.10.2"
