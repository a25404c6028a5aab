"""``jitcount suite``: the cases on the backend at hand, and one file to take home."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from jitcount._emulate.as_if import as_if_or_null
from jitcount._ledger import ledger
from jitcount._ledger.environment import environment
from jitcount._ledger.files import LedgerError, require_replaceable
from jitcount._ledger.findings import findings
from jitcount._record.record import record
from jitcount._show.parts import Note
from jitcount._show.progress import progress
from jitcount._show.suite_table import suite_table
from jitcount._show.terminal import has_colour, render
from jitcount._suite.processes import join_the_others, run_in_processes
from jitcount._suite.running import chosen, run_suite
from jitcount._targets.host import prefer_cpu
from jitcount._text import did_you_mean, one_line

if TYPE_CHECKING:
    import argparse


def main(asked: argparse.Namespace) -> int:
    """Run them: 1 where one does not hold."""
    for pattern in asked.cases:
        if not chosen([pattern]):
            nearest = did_you_mean(pattern, (case.id for case in chosen([])))
            asked.parser.error("; ".join(filter(None, [f"no case is called {pattern}", nearest])))
    cases = chosen(asked.cases)
    try:
        if asked.ledger:
            asked.ledger = asked.ledger.absolute()
            require_replaceable(asked.ledger, ledger.KIND)
        record(asked.targets)
        as_if_or_null(asked.as_if)
        if asked.targets or asked.as_if:
            prefer_cpu()
        if asked.processes > 1:
            return run_in_processes(asked.processes, _arguments(asked))
        is_first = join_the_others()
        where = msgspec.structs.replace(environment(), as_if=asked.as_if)
    except (LedgerError, ValueError, ImportError, RuntimeError) as error:
        # ValueError, ImportError: a target; RuntimeError: a backend that does not start
        asked.parser.error(one_line(str(error)))
    print(render([Note(str(where))], stream=sys.stderr), file=sys.stderr)  # noqa: T201
    begin = time.perf_counter()
    with progress("suite", len(cases)) as step:
        found = run_suite(
            cases,
            timed=asked.bench,
            targets=asked.targets,
            as_if=asked.as_if,
            after=lambda case, _: step(case.id),
        )
    wrong = {case: lines for case, entry in found.cases.items() if (lines := findings(entry))}
    table = suite_table(found, wrong, time.perf_counter() - begin)
    print(render(table, colour=has_colour()))  # noqa: T201
    if asked.ledger and is_first:
        try:
            ledger.write_ledger(asked.ledger, found)
        except LedgerError as error:
            asked.parser.error(str(error))
    return 1 if wrong else 0


def _arguments(asked: argparse.Namespace) -> list[str]:
    """What each of several processes is asked to do."""
    ledger_of = ["--ledger", str(asked.ledger)] if asked.ledger else []
    bench = ["--bench"] if asked.bench else []
    targets = [word for target in asked.targets for word in ("--target", target)]
    as_if = ["--as-if", asked.as_if] if asked.as_if else []
    return [*ledger_of, *bench, *targets, *as_if, "--", *asked.cases]
