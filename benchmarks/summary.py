"""Prints what benchmarks found, beside what the problem claims: `python summary.py FILE...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jitcount.show.text import render, seconds, table
from variants import VARIANTS

# The benchmarks of a call, with the words for them and what the problem claims.
CALLS = {
    "test_cold[{}]": ("cold: empty caches", "tens of ms"),
    "test_retrace[{}]": ("retrace: new shape", "tens of ms"),
    "test_cached[{}-dispatched]": ("cached: dispatched", "microseconds"),
    "test_cached[{}-ready]": ("cached: ready", "microseconds"),
}

# Short names, for a terminal of 80 columns.
COLUMNS = {"cache_independent_count": "ours", "wrapper-per-call": "per call", "plain": "plain"}

LEGEND = (
    "ours: cache_independent_count, its jitted sum made once\n"
    "per call: the jitted sum made at every call; plain: jnp.sum(a) + jnp.sum(b)"
)


def summary(figures: dict[str, Any]) -> str:
    """Four tables: calls, the compiles of a cold call, ratios, jobs."""
    by_name = {benchmark["name"]: benchmark for benchmark in figures["benchmarks"]}
    where = figures["machine_info"]["jax"]["text"]
    parts = [_calls(by_name), _compiles(by_name), _ratios(by_name), _jobs(by_name)]
    return "\n\n".join(filter(None, [f"On {where}", *parts]))


def _calls(by_name: dict[str, Any]) -> str:
    columns = [COLUMNS[variant] for variant in VARIANTS]
    rows = table("a call", "compiles", *columns, "claimed", right=tuple(columns))
    for name, (label, claim) in CALLS.items():
        found = [by_name.get(name.format(variant)) for variant in VARIANTS]
        counts = next((f["extra_info"]["counts"] for f in found if f), None)
        if counts is None:
            continue
        compiles = ", ".join(f"{function} {count}" for function, count in counts.items())
        medians = [seconds(f["stats"]["median"]) if f else "" for f in found]
        rows.add_row(label, compiles or "none", *medians, claim)
    return f"{render(rows)}\n\n{LEGEND}" if rows.rows else ""


def _compiles(by_name: dict[str, Any]) -> str:
    cold = by_name.get("test_cold[cache_independent_count]")
    if cold is None:
        return ""
    rows = table(
        "compiles of a cold call", "of", "trace", "lower", "compile",
        right=("trace", "lower", "compile"),
    )  # fmt: skip
    for function, signature, *phases in cold["extra_info"]["compiles"]:
        rows.add_row(function, ", ".join(signature), *map(seconds, phases))
    return render(rows)


def _ratios(by_name: dict[str, Any]) -> str:
    rows = table("side by side", "ratio", "at most", "", right=("ratio", "at most"))
    for benchmark in by_name.values():
        extra = benchmark["extra_info"]
        if "ratio" not in extra:
            continue
        limit = extra["limit"]
        verdict = (
            ""
            if limit is None
            else "holds"
            if round(extra["ratio"], 2) <= limit
            else "DOES NOT HOLD"
        )
        rows.add_row(extra["name"], f"{extra['ratio']:.2f}", f"{limit or ''}", verdict)
    return render(rows) if rows.rows else ""


def _jobs(by_name: dict[str, Any]) -> str:
    """Jobs that people wait for, with the longest that they should."""
    rows = table("a job", "median", "at most", "", right=("median", "at most"))
    for benchmark in by_name.values():
        extra = benchmark["extra_info"]
        if "limit_s" in extra:
            median, limit = benchmark["stats"]["median"], extra["limit_s"]
            verdict = "holds" if median <= limit else "DOES NOT HOLD"
            rows.add_row(extra["name"], seconds(median), seconds(limit), verdict)
    return render(rows) if rows.rows else ""


def main(paths: list[str]) -> int:
    """Print one summary per file."""
    for path in paths:
        print("\n" + summary(json.loads(Path(path).read_text())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
