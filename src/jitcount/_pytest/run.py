"""What a run of pytest keeps and shows: a ledger, a budget, a table at the end.

Like all of the plugin it imports neither JAX nor NumPy before the tests have: what they set before
holds. What only some runs want (a budget, targets, tables) is imported by those.
"""

from __future__ import annotations

from os import getpid  # at once: a test may put another one in its place
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from jitcount._after_jax import jax_is_imported
from jitcount._explain.compile import Compile, count_compiles
from jitcount._ledger import files
from jitcount._ledger.budget import Counts
from jitcount._ledger.environment import Environment, environment
from jitcount._ledger.files import LedgerError, decode, encode, exists, require_replaceable
from jitcount._pytest.operations import Found, Held
from jitcount._pytest.plugin import compiles_of, log_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from pathlib import Path

    from jitcount._ledger.budget import Budget
    from jitcount._pytest.budget import Update
    from jitcount._record.log import CompileLog
    from jitcount._show.parts import Part


class _Sent(msgspec.Struct, frozen=True):
    """What a test compiled; from another process it comes with the report, as plain text."""

    compiles: tuple[Compile, ...]
    """All of them, also those that are not held against the test."""

    counts: Counts
    """Of those that are, as a budget has them."""

    operations: Found
    """The same, where a budget has them too."""

    is_isolated: bool
    """Whether JAX's caches are cleared for tests that hold a count."""


class Run:
    """A run with a budget, a ledger or a table at the end; in each worker and in the one above."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        named = config.getoption("jitcount_ledger")
        self._ledger = config.invocation_params.dir / named if named else None
        self._update: Update | None = None
        self._with_eager = bool(config.getini("compile_budget_eager"))
        named = config.getoption("jitcount_budget") or config.getini("compile_budget")
        self._budget_file = config.rootpath / named if named else None
        self._budget_name = named
        try:
            if targets := config.getoption("jitcount_targets"):
                _prepare_targets(targets)
            self._budget = self._prepare_files()
            self._operations = Held(config, self._budget, named)
        except (LedgerError, ValueError, ImportError) as error:  # of a file, or of a target
            pytest.exit(str(error), 2)
        # That of the one above pytest-xdist's workers, or the only one.
        self._process = 0 if self._is_worker else getpid()
        self._found: dict[str, tuple[Compile, ...]] = {}
        self._counts: dict[str, Counts] = {}
        self._passed: dict[str, bool] = {}
        """By test, whether all of its phases did; of one that is run again, the last time."""
        self._where: Environment | None = None
        self._are_cleared = False

    def _prepare_files(self) -> Budget | None:
        """Read the budget, and see that what will be written replaces nothing of others."""
        if self._ledger is not None:
            if self._budget_file and self._ledger.resolve() == self._budget_file.resolve():
                what = "is the budget's file, and --compile-ledger names it too: give it another"
                raise LedgerError(f"{self._ledger}: {what}")
            require_replaceable(self._ledger, files.LEDGER)
        options = ("jitcount_update", "jitcount_review")
        if self._budget_file is None and not any(map(self._config.getoption, options)):
            return None
        from jitcount._ledger.budget import read_budget  # noqa: PLC0415 (as said above)
        from jitcount._pytest.budget import update_asked  # noqa: PLC0415

        self._update = update_asked(self._config, self._budget_file)
        if self._budget_file is None or self._update is not None:
            return None
        if not exists(self._budget_file):
            raise LedgerError(f"{self._budget_file}: is not there; --compile-update makes one")
        return read_budget(self._budget_file)

    @property
    def holds_counts(self) -> bool:
        """Whether what a test compiles is held against a number, or will be."""
        return self._budget is not None or self._update is not None

    @property
    def holds_operations(self) -> bool:
        """Whether the operations of a test's programs are held against a number."""
        return self._operations.are_held

    def check(self, item: pytest.Item) -> None:
        """Fail a test that compiles more than its budget, or larger programs."""
        if self._budget is None:
            return
        log = log_of(item)
        found = self._counts_of(log)
        over = self._budget.surplus(item.nodeid, found)
        if over:
            allowed = dict(self._budget.tests.get(item.nodeid, {}))
            over_text = ", ".join(f"{name} {count}" for name, count in over.items())
            rule, what = f"{item.name} compiles more than its budget (over by {over_text})", ""
            if not allowed:
                new = "it is new, or compiled nothing before"
                rule = f"{item.name} has no entry in {self._budget_name}: {new}"
                found_text = ", ".join(f"{name} ×{count}" for name, count in found.items())
                what = f"{found_text}, not in the budget: --compile-update puts it there"
            import jax  # noqa: PLC0415 (there is more than none, so it is there)

            from jitcount._pytest.failing import fail  # noqa: PLC0415

            if self._budget.jax != jax.__version__:
                made_with = f"the budget was made with JAX {self._budget.jax}"
                rule += f"; {made_with}, and this is {jax.__version__}"
            kept = [c for c in log.compiles if self._with_eager or not c.eager]
            fail(item, rule, allowed, kept, what=what)
        self._operations.check(item, log.compiles)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Keep what a test compiled; in another process, its report brings it here as text."""
        report = yield
        if call.when == "call":
            is_isolated = self._config.pluginmanager.has_plugin("jitcount-isolation")
            log = log_of(item)
            sent = _Sent(
                compiles_of(item),
                self._counts_of(log),
                self._operations.of(log.compiles),
                is_isolated,
            )
            if getpid() == self._process:
                self._keep(report.nodeid, sent)
            else:  # a worker of pytest-xdist, or a fork of this process
                report.jitcount = encode(sent).decode()
        return report

    def _counts_of(self, log: CompileLog) -> Counts:
        return count_compiles(log.compiles, with_eager=self._with_eager)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what the tests compiled, whichever worker ran them."""
        so_far = report.when == "setup" or self._passed.get(report.nodeid, False)
        self._passed[report.nodeid] = so_far and report.passed
        if not self._is_worker and (sent := getattr(report, "jitcount", None)) is not None:
            self._keep(report.nodeid, decode(sent.encode(), _Sent))

    def _keep(self, test: str, sent: _Sent) -> None:
        self._found[test] = sent.compiles
        self._counts[test] = sent.counts
        self._operations.found[test] = sent.operations
        self._are_cleared |= sent.is_isolated

    @property
    def _measured(self) -> dict[str, Counts]:
        """Of the tests that ran to their end, the counts: one that fails midway has only some."""
        return {test: counts for test, counts in self._counts.items() if self._passed.get(test)}

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the files that were asked for; a worker says where its tests ran."""
        if self._is_worker:
            if self._ledger and jax_is_imported():
                sent = encode(environment()).decode()
                self._config.workeroutput["jitcount_environment"] = sent  # type: ignore[attr-defined]
            return
        if not self._passed:
            return
        try:
            if self._ledger:
                self._write_ledger(self._ledger)
            if self._update is not None:
                others = list(self._passed.values()).count(False)
                sizes = self._operations.sizes(self._measured)
                self._update.finish(self._measured, sizes, others, exitstatus)
        except LedgerError as error:
            pytest.exit(str(error), 2)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist has said: JAX is as its tests have set it up."""
        sent = getattr(node, "workeroutput", {}).get("jitcount_environment")
        if sent and self._where is None:
            self._where = decode(sent.encode(), Environment)

    def _write_ledger(self, path: Path) -> None:
        from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger  # noqa: PLC0415

        where = self._where or environment()
        cases = {test: CaseEntry(compiles=found) for test, found in self._found.items()}
        write_ledger(path, Ledger(environment=where, cases=cases))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the costliest compiles, and what a budget no longer needs."""
        if self._is_worker:
            return
        if parts := self.parts():
            colour = bool(terminalreporter.hasmarkup)
            _show(terminalreporter, "compiles", parts, dense=True, colour=colour)
        if self._config.getoption("jitcount_targets"):
            from jitcount._show.target_table import targets_summary  # noqa: PLC0415

            _show(terminalreporter, "compiles on targets", targets_summary(self._found))
        for title, lines in (
            ("fewer compiles than budgeted", self._unused()),
            ("other operations than budgeted", self._operations.lines(self._measured)),
            ("compile budget", self._update.lines() if self._update is not None else []),
        ):
            if lines:
                from jitcount._show.parts import Note  # noqa: PLC0415

                _show(terminalreporter, title, map(Note, lines))

    def parts(self) -> list[Part]:
        """The costliest compiles, and what was compiled again; nothing where it was not asked."""
        most = self._config.getoption("jitcount_show")
        if not most:
            return []
        from jitcount._pytest.tables import compiled_again, costliest  # noqa: PLC0415
        from jitcount._show.parts import Note  # noqa: PLC0415

        again = compiled_again(compiled for found in self._found.values() for compiled in found)
        if again and self._are_cleared:
            why = "tests that hold a count begin with cleared caches"
            again.append(Note(f"{why}: --compile-isolation=none leaves them", depth=1))
        return [*costliest(self._found, most), *again]

    def _unused(self) -> list[str]:
        """What a budget no longer needs."""
        if self._budget is None:
            return []
        lines = [
            f"{test}: {name} {count} fewer"
            for test, found in self._measured.items()
            for name, count in self._budget.unused(test, found).items()
        ]
        return [*lines, "--compile-update takes them out of the budget"] if lines else []


def _prepare_targets(names: Sequence[str]) -> None:
    from jitcount._targets.host import prefer_cpu  # noqa: PLC0415
    from jitcount._targets.installed import require_installed  # noqa: PLC0415
    from jitcount._targets.names import parse  # noqa: PLC0415

    for name in names:
        require_installed(parse(name))
    prefer_cpu()


def _show(
    reporter: Any, title: str, parts: Iterable[Part], *, dense: bool = False, colour: bool = False
) -> None:
    from jitcount._show.terminal import render  # noqa: PLC0415

    reporter.section(title)
    reporter.write_line(render(parts, dense=dense, colour=colour))
