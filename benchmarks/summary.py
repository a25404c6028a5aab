"""Prints the figures of benchmarks beside what the problem claims: `python summary.py FILE...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jitcount._show.parts import Heading, Note, Part, Row, Seconds, Table, figures, words
from jitcount._show.terminal import render
from ratios import PRECISION
from variants import VARIANTS

HOLDS = "holds"

# The benchmarks of a call, with their names in the table and what the problem claims.
CALLS = {
    "test_cold[{}]": ("cold: empty caches", "tens of ms"),
    "test_retrace[{}]": ("retrace: new shape", "tens of ms"),
    "test_cached[{}-dispatched]": ("cached: dispatched", "microseconds"),
    "test_cached[{}-ready]": ("cached: ready", "microseconds"),
}

# Short names, for a terminal of 80 columns.
COLUMNS = {"cache_independent_count": "ours", "wrapper-per-call": "per call", "plain": "plain"}

LEGEND = (
    "ours: cache_independent_count, its jitted sum made once",
    "per call: the jitted sum made at every call; plain: jnp.sum(a) + jnp.sum(b)",
)


def summary(found: dict[str, Any]) -> list[Part]:
    """Up to four tables: calls, the compiles of a cold call, ratios, jobs."""
    by_name = {benchmark["name"]: benchmark for benchmark in found["benchmarks"]}
    where = Heading(f"On {found['machine_info']['jax']['text']}")
    tables = _calls(by_name), _compiles(by_name), _ratios(by_name), _jobs(by_name)
    return [where, *(part for parts in tables for part in parts)]


def _calls(by_name: dict[str, Any]) -> list[Part]:
    rows: list[Row] = []
    for name, (label, claim) in CALLS.items():
        found = [by_name.get(name.format(variant)) for variant in VARIANTS]
        counts = next((f["extra_info"]["counts"] for f in found if f), None)
        if counts is None:
            continue
        compiles = ", ".join(f"{function} {count}" for function, count in counts.items())
        medians = [Seconds(f["stats"]["median"] if f else None) for f in found]
        rows.append((label, compiles or "none", *medians, claim))
    variants = figures(*(COLUMNS[variant] for variant in VARIANTS))
    table = Table(words("a call", "compiles") + variants + words("claimed"), rows)
    return [table, *map(Note, LEGEND)] if rows else []


def _compiles(by_name: dict[str, Any]) -> list[Part]:
    cold = by_name.get("test_cold[cache_independent_count]")
    if cold is None:
        return []
    rows = [
        (function, ", ".join(signature), *map(Seconds, phases))
        for function, signature, *phases in cold["extra_info"]["compiles"]
    ]
    phase_columns = figures("trace", "lower", "compile")
    return [Table(words("compiles of a cold call", "of") + phase_columns, rows)]


def _ratios(by_name: dict[str, Any]) -> list[Part]:
    rows = [
        (ratio["name"], f"{ratio['ratio']:.2f}", f"{ratio['limit'] or ''}", verdict(ratio))
        for ratio in ratios_in(by_name)
    ]
    columns = words("side by side, seconds of the processor") + figures("ratio", "at most")
    return [Table(columns + words(""), rows)] if rows else []


def ratios_in(by_name: dict[str, Any]) -> list[dict[str, Any]]:
    """All measured ratios, in the order of the benchmarks."""
    every = (benchmark["extra_info"].get("ratios", []) for benchmark in by_name.values())
    return [ratio for ratios in every for ratio in ratios]


def verdict(ratio: dict[str, Any]) -> str:
    """Judge a ratio by the two digits that are shown; one that is not known so well does not hold.

    A ratio that exceeds its limit by more than its error is known well enough.
    """
    if ratio["limit"] is None:
        return ""
    is_known = ratio["error"] <= ratio.get("precision", PRECISION)
    least = ratio["ratio"] - (0.0 if is_known else 2 * ratio["error"])
    if round(least, 2) > ratio["limit"]:
        return "DOES NOT HOLD"
    return HOLDS if is_known else f"NOT KNOWN, ±{2 * ratio['error']:.2f}"


def _jobs(by_name: dict[str, Any]) -> list[Part]:
    """Jobs that people wait for; their times depend on the machine, so they are not judged."""
    rows = [
        (benchmark["extra_info"]["name"], Seconds(benchmark["stats"]["median"]))
        for benchmark in by_name.values()
        if benchmark["group"] == "jobs"
    ]
    return [Table(words("a job") + figures("median"), rows)] if rows else []


def main(paths: list[str]) -> int:
    """Print one summary per file.

    Returns:
        1 if a limit does not hold, else 0.
    """
    does_hold = True
    for path in paths:
        found = json.loads(Path(path).read_text())
        print("\n" + render(summary(found)) + "\n")
        by_name = {benchmark["name"]: benchmark for benchmark in found["benchmarks"]}
        does_hold &= all(verdict(ratio) in {"", HOLDS} for ratio in ratios_in(by_name))
    return 0 if does_hold else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
