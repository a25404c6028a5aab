"""The time to compare six ledgers of five hundred cases, from files to text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jitcount._ledger.compare import compare_ledgers
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import Ledger, read_ledger, write_ledger
from jitcount._show.comparison_table import comparison_tables
from jitcount._show.terminal import render
from jitcount._suite.case import run_case
from jitcount._suite.cases import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

_LEDGERS = 6
_CASES = 500

# Small cases of every class; each is used many times.
_CHOSEN = ("first-example", "sum-100", "sum-nan", "sum-complex64", "exp", "sum-axis-1", "matmul")


@pytest.mark.benchmark(group="jobs")
def test_comparing_ledgers(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    found = [run_case(case) for case in CASES if case.id in _CHOSEN]
    cases = {f"case-{number}": found[number % len(found)] for number in range(_CASES)}
    paths = [tmp_path / f"{number}.json" for number in range(_LEDGERS)]
    for path in paths:
        write_ledger(path, Ledger(environment=environment(), cases=cases))

    def job() -> str:
        ledgers = {path.stem: read_ledger(path) for path in paths}
        return render(comparison_tables(compare_ledgers(ledgers)))

    text = benchmark.pedantic(job, rounds=5, warmup_rounds=1)
    assert text.startswith("0 differences in 500 cases in 6 ledgers\n")
    benchmark.extra_info.update(name="comparing 6 ledgers of 500 cases")
