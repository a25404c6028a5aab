"""What a run of pytest saves and shows: a ledger, a budget, a table at the end.

Like all of the plugin it imports neither JAX nor NumPy before the tests have: what they set before
holds. What only some runs show (tables, targets) is imported by those.
"""

from __future__ import annotations

from os import getpid  # at once: a test may put another one in its place
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from jitcount import _signals
from jitcount._after_jax import after_import_of_jax, forget, jax_is_imported
from jitcount._explain.compile import Compile
from jitcount._ledger import files
from jitcount._ledger.environment import Environment, environment_so_far
from jitcount._ledger.files import LedgerError, decode, encode, made_folder, require_replaceable
from jitcount._pytest.budget import Measured, RunBudget, budget_name
from jitcount._pytest.counting import compiles_of, log_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from jitcount._ledger.ledger import Result
    from jitcount._pytest.outside_calls import OutsideCalls
    from jitcount._show.parts import Part


class _Sent(msgspec.Struct, frozen=True):
    """What a test compiled; from another process it comes with the report, as plain text."""

    compiles: tuple[Compile, ...]
    """All compiles, also those that are not held against the test."""

    measured: Measured
    """Those that are held against it, as a budget has them."""

    is_isolated: bool
    """Whether JAX's caches are cleared for tests that hold a count."""


class Run:
    """A run with a budget, a ledger or a table at the end; in each worker and in the one above."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        named = config.getoption("jitcount_ledger")
        self._ledger = config.invocation_params.dir / named if named else None
        try:
            if targets := config.getoption("jitcount_targets"):
                from jitcount._targets.host import prefer_cpu  # noqa: PLC0415
                from jitcount._targets.installed import installed_targets  # noqa: PLC0415

                installed_targets(targets)
                prefer_cpu()
            elif config.getoption("jitcount_fail_on_refusal"):
                needs = "needs a target that can refuse: --compile-target=tpu:v5e"
                raise ValueError(f"--compile-fail-on-refusal {needs}")  # noqa: TRY301
            if self._ledger is not None:
                self._require_usable(self._ledger, budget_name(config))
            self.budget = RunBudget(config)
        except (LedgerError, ValueError, ImportError) as error:  # of a file, or of a target
            pytest.exit(str(error), 2)
        # That of the one above pytest-xdist's workers, or the only one.
        self._process = 0 if self._is_worker else getpid()
        self._found: dict[str, tuple[Compile, ...]] = {}
        self._same: dict[str, str] = {}
        """By test, what its calls of `same` found; read when the ledger is written."""
        self._passed: dict[str, bool] = {}
        """By test, whether all of its phases passed; for one that is run again, the last time."""
        self._where: Environment | None = None
        self._are_cleared = False
        self._workers = 0
        self._running: pytest.Item | None = None
        self._has_sent_environment = False
        self._made = ""
        """What to say of a folder that was made."""

        self._finishing = Lock()
        self._waiting = self._expect_signals  # one object: a bound method is a new one each time
        if self._ledger is not None and not self._is_worker:
            after_import_of_jax(self._waiting)
            config.add_cleanup(self._forget_signals)
        self._outside: OutsideCalls | None = config.pluginmanager.get_plugin(
            "jitcount-outside-calls"
        )

    def _expect_signals(self) -> None:
        _signals.before_end_by_signal(self._end_by_signal)

    def _forget_signals(self) -> None:
        forget(self._waiting)
        _signals.forget(self._end_by_signal)

    def _end_by_signal(self, _name: str) -> None:
        """Keep what was compiled until a signal ends the run; called in another thread.

        Nothing is said: pytest has stderr. No budget is changed, as at Ctrl-C.
        """
        with self._finishing:
            self._keep_interrupted()
            if self._ledger is not None and (self._passed or self._found):
                self._write_ledger(self._ledger)

    def _require_usable(self, ledger: Path, budget: str) -> None:
        """Refuse a ledger that would replace a file of others, or the budget of the same run."""
        if budget and ledger.resolve() == (self._config.rootpath / budget).resolve():
            what = "is the budget's file, and --compile-ledger names it too: give it another"
            raise LedgerError(f"{ledger}: {what}")
        require_replaceable(ledger, files.LEDGER)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Take note of the test that runs."""
        self._running = item

    def pytest_keyboard_interrupt(self) -> None:
        """Keep what a test has compiled that is interrupted: there is no report of it."""
        self._keep_interrupted()

    def _keep_interrupted(self) -> None:
        if self._running is not None and not self._is_worker:
            self._found.setdefault(self._running.nodeid, compiles_of(self._running))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Keep what a test compiled; in another process, its report brings it here as text."""
        report = yield
        if call.when == "setup":
            if getpid() == self._process:
                self._begin_test(report.nodeid)
            else:
                report.jitcount_begins = True
        if call.when == "call":
            self._running = None
            is_isolated = self._config.pluginmanager.has_plugin("jitcount-isolation")
            sent = _Sent(compiles_of(item), self.budget.measure(log_of(item)), is_isolated)
            if getpid() == self._process:
                self._keep(report.nodeid, sent)
            else:  # a worker of pytest-xdist, or a fork of this process
                report.jitcount = encode(sent).decode()
                if self._ledger and sent.compiles and not self._has_sent_environment:
                    self._has_sent_environment = True  # a worker that is killed sends none later
                    report.jitcount_environment = encode(environment_so_far()).decode()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what the tests compiled, whichever worker ran them."""
        so_far = report.when == "setup" or self._passed.get(report.nodeid, False)
        self._passed[report.nodeid] = so_far and report.passed
        if self._is_worker:
            return
        if report.when == "call":
            self._same[report.nodeid] = getattr(report, "jitcount_same", "")
        self._take_environment(getattr(report, "jitcount_environment", ""))
        if getattr(report, "jitcount_begins", False):
            self._begin_test(report.nodeid)
        if (sent := getattr(report, "jitcount", None)) is not None:
            self._keep(report.nodeid, decode(sent.encode(), _Sent))

    def _begin_test(self, test: str) -> None:
        """Keep apart what a test has compiled that is run again: the last time counts."""
        if self._outside is not None:
            self._outside.add_rerun(self._found.pop(test, ()))

    def _keep(self, test: str, sent: _Sent) -> None:
        self._found[test] = sent.compiles
        self.budget.add(test, sent.measured)
        self._are_cleared |= sent.is_isolated

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the files that were asked for, once the last fixture has been torn down.

        A worker sends where its tests ran.
        """
        if self._is_worker:
            if self._ledger and jax_is_imported():
                sent = encode(environment_so_far()).decode()
                self._config.workeroutput["jitcount_environment"] = sent  # type: ignore[attr-defined]
            return
        if not self._passed:
            return
        try:
            if self._ledger:
                with self._finishing:
                    self._write_ledger(self._ledger)
            self.budget.finish(self._passed, exitstatus)
        except LedgerError as error:
            pytest.exit(str(error), 2)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self) -> None:
        """Count the workers of pytest-xdist; the tests' JAX is imported there, and never here."""
        if not self._workers and self._ledger is not None:
            self._forget_signals()
            self._expect_signals()
        self._workers += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist has sent: JAX is as its tests have set it up."""
        self._take_environment(getattr(node, "workeroutput", {}).get("jitcount_environment", ""))

    def _take_environment(self, sent: str) -> None:
        if sent and (self._where is None or not self._where.platform):
            self._where = decode(sent.encode(), Environment)

    def _write_ledger(self, path: Path) -> None:
        from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger  # noqa: PLC0415

        where = self._where or environment_so_far()
        outside = {} if self._outside is None else self._outside.compiles
        every = {**self._found, **outside}
        cases = {
            entry: CaseEntry(compiles=found, results=self._results_of(entry), shares_caches=True)
            for entry, found in every.items()
        }
        began, ended = (0.0, 0.0) if self._outside is None else self._outside.span
        ledger = Ledger(environment=where, started_at=began, ended_at=ended, cases=cases)
        if write_ledger(path, ledger):
            self._made = made_folder(path)

    def _results_of(self, test: str) -> tuple[Result, ...]:
        sent = self._same.get(test, "")
        if not sent:
            return ()
        from jitcount._pytest.same import results_in  # noqa: PLC0415 (it needs JAX)

        return results_in(sent)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show what to fix, what compiles most, and what a budget no longer needs."""
        if self._is_worker:
            return
        if parts := self.parts():
            colour = bool(terminalreporter.hasmarkup)
            _show(terminalreporter, "compiles", parts, colour=colour)
        if self._made:
            terminalreporter.write_line(f"jitcount: {self._made}")
        if self._config.getoption("jitcount_targets"):
            from jitcount._show.target_table import targets_summary  # noqa: PLC0415

            _show(terminalreporter, "compiles on targets", targets_summary(self._found))
        for title, lines in self.budget.sections(self._passed):
            if lines:
                from jitcount._show.parts import Note  # noqa: PLC0415

                _show(terminalreporter, title, map(Note, lines))

    def parts(self) -> list[Part]:
        """What to fix, and what compiles most, over the whole suite; empty if not asked for."""
        most = self._config.getoption("jitcount_show")
        if not most:
            return []
        from jitcount._pytest.tables import Suite, duplicate_compiles, suite_report  # noqa: PLC0415

        assert self._outside is not None  # noqa: S101 (it is there for this option)
        suite = Suite(
            tests=self._found,
            outside=self._outside.compiles,
            run_s=self._outside.run_s,
            workers=self._workers,
            collecting=self._outside.collecting,
        )
        again = duplicate_compiles(suite.compiles, are_cleared=self._are_cleared)
        return [*suite_report(suite, most), *again]


def _show(reporter: Any, title: str, parts: Iterable[Part], *, colour: bool = False) -> None:
    from jitcount._show.terminal import render  # noqa: PLC0415

    reporter.section(title)
    reporter.write_line(render(parts, colour=colour))
