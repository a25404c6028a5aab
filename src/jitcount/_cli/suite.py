"""``jitcount suite``: cases on the backend at hand, the suite's or the user's, and a ledger."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._cli.arguments import add_releases, add_targets, count, end_help, typed
from jitcount._cli.streams import UsageError, remark, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from jitcount._ledger.ledger import Ledger
    from jitcount._suite.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``jitcount suite`` was asked to do."""

    ledger: Path | None
    bench: bool
    targets: list[str]
    as_if: str
    processes: int
    cases: list[str]
    """Patterns; the first may be a file with the user's cases."""

    releases: list[str]
    module: str = ""
    """The module with the user's cases."""

    def words(self) -> list[str]:
        """The same options on the command line of each of several processes."""
        ledger = ["--ledger", str(self.ledger)] if self.ledger else []
        bench = ["--bench"] if self.bench else []
        targets = [word for target in self.targets for word in ("--target", target)]
        as_if = ["--as-if", self.as_if] if self.as_if else []
        module = ["-m", self.module] if self.module else []
        return [*ledger, *bench, *targets, *as_if, *module, "--", *self.cases]


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``jitcount suite``."""
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="keep what it found")
    parser.add_argument("--bench", action="store_true", help="time cached calls too")
    add_targets(
        parser,
        "compile for this TPU or GPU too, without having it (as jitcount targets lists them)",
    )
    parser.add_argument(
        "--processes", type=partial(count, least=1), default=1, metavar="N",
        help="compute in N processes together",
    )  # fmt: skip
    add_releases(parser)
    parser.add_argument(
        "-m", dest="module", default="", metavar="MODULE",
        help="run the cases of your own in this module",
    )  # fmt: skip
    parser.add_argument(
        "cases", nargs="*", metavar="CASE",
        help="ids, also as patterns (sum-*), all by default; or first a file of cases of your own",
    )  # fmt: skip
    end_help(
        parser,
        "jitcount suite --ledger here.json",
        "jitcount suite 'sum-*' softmax",
        "jitcount suite --as-if tpu:v5e --ledger as-if-tpu.json",
        "jitcount suite --jax 0.9.2 --jax 0.12.0.1",
        "jitcount suite cases.py 'loss-*' --ledger here.json",
        codes="0 all cases hold, 1 one does not, or --jax shows a difference, 2 bad usage",
    )


def options(asked: argparse.Namespace) -> Options:
    """The options of ``jitcount suite``, as argparse has read them."""
    ledger = asked.ledger and asked.ledger.absolute()
    return typed(Options, asked, ledger=ledger, releases=list(dict.fromkeys(asked.releases)))


def main(options: Options) -> int:
    """Run the cases, and return the exit code: 1 if one does not hold."""
    import msgspec

    from jitcount._emulate.as_if import as_if_or_null
    from jitcount._ledger import ledger
    from jitcount._ledger.environment import environment
    from jitcount._ledger.files import LedgerError, require_replaceable
    from jitcount._record.record import record
    from jitcount._show.parts import Note
    from jitcount._show.progress import progress
    from jitcount._show.terminal import render
    from jitcount._suite.own_cases import require_file
    from jitcount._suite.processes import join_the_others, run_in_processes
    from jitcount._suite.running import chosen, run_suite
    from jitcount._targets.host import prefer_cpu

    file, patterns = _file_and_patterns(options)
    is_own = bool(options.module or file)
    cases = [] if is_own else _chosen(patterns, chosen([]))
    try:
        if options.ledger:
            require_replaceable(options.ledger, ledger.KIND)
        record(options.targets)
        as_if_or_null(options.as_if)
        if options.targets or options.as_if:
            prefer_cpu()
        if file is not None:
            require_file(file)
        if options.releases:
            from jitcount._cli.releases import suite_in_releases

            return suite_in_releases(options)
        if options.processes > 1:
            return run_in_processes(options.processes, options.words())
        is_first = join_the_others()
        if is_own:
            cases = _chosen(patterns, _own_cases(options.module, file))
        where = msgspec.structs.replace(environment(), as_if=options.as_if)
    except (LedgerError, ValueError, ImportError, RuntimeError) as error:
        # ValueError, ImportError: a target; RuntimeError: a backend that does not start
        raise UsageError(" ".join(str(error).split())) from None
    remark(render([Note(str(where))], stream=sys.stderr))
    begin = time.perf_counter()
    with progress("suite", len(cases)) as step:
        found = run_suite(
            cases,
            timed=options.bench,
            targets=options.targets,
            as_if=options.as_if,
            after=lambda case, _: step(case.id),
        )
    return _finish(options.ledger if is_first else None, found, time.perf_counter() - begin)


def _file_and_patterns(options: Options) -> tuple[Path | None, list[str]]:
    """The file with the user's cases, if one is named, and the patterns that choose cases.

    What a case of the suite is called stays that, whatever files there are.
    """
    from jitcount._suite.cases import CASES

    first, *rest = options.cases or [""]
    is_file = first.endswith(".py") or (first and Path(first).exists())
    if options.module or not is_file or any(case.id == first for case in CASES):
        return None, options.cases
    return Path(first), rest


def _own_cases(module: str, file: Path | None) -> list[Case]:
    from jitcount._suite.own_cases import cases_in_file, cases_in_module
    from jitcount._suite.returned import suite_case

    found = cases_in_file(file) if file is not None else cases_in_module(module)
    return list(map(suite_case, found))


def _chosen(patterns: Sequence[str], cases: Sequence[Case]) -> list[Case]:
    """The cases that match one of the patterns, each of which must match one."""
    from jitcount._suite.running import chosen
    from jitcount._text import did_you_mean

    for pattern in patterns:
        if not chosen([pattern], cases):
            nearest = did_you_mean(pattern, (case.id for case in cases))
            raise UsageError("; ".join(filter(None, [f"no case is called {pattern}", nearest])))
    return chosen(patterns, cases)


def _finish(path: Path | None, found: Ledger, seconds: float) -> int:
    """Write the ledger, then show the table: whatever becomes of that, the ledger is there."""
    from jitcount._ledger.files import LedgerError, made_folder
    from jitcount._ledger.findings import findings
    from jitcount._ledger.ledger import write_ledger
    from jitcount._show.suite_table import suite_table, warnings
    from jitcount._show.terminal import has_colour, render
    from jitcount._suite.running import known_here

    problems = []
    try:
        if path and write_ledger(path, found):
            remark(f"jitcount: {made_folder(path)}")
    except LedgerError as error:
        problems.append(str(error))
    wrong = {case: lines for case, entry in found.cases.items() if (lines := findings(entry))}
    table = suite_table(found, wrong, seconds) + warnings(
        found, known_here(found.environment.as_if)
    )
    try:
        show(render(table, colour=has_colour()))
    except UsageError as error:
        problems.append(str(error))
    if problems:
        raise UsageError("; ".join(problems))
    return 1 if wrong else 0
