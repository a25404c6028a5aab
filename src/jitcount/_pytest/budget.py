"""What a run of pytest changes in its budget, or would.

Counts come from the tests that ran and passed. A test that is no longer there goes; but not one
that a run only did not look at: that was deselected, or stands in a file that was not asked for,
was skipped, or could not be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jitcount._ledger import budget
from jitcount._ledger.budget import read_budget, update_budget
from jitcount._ledger.files import LedgerError, exists, require_replaceable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from jitcount._ledger.budget import Change, Counts, Sizes

_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)

# What a worker of pytest-xdist sends at its end.
_SENT = "jitcount_collected"


def update_asked(config: pytest.Config, path: Path | None) -> Update | None:
    """What the options ask to be done to the budget, if anything."""
    is_written = bool(config.getoption("jitcount_update"))
    is_shown = bool(config.getoption("jitcount_review"))
    if is_written and is_shown:
        raise LedgerError("--compile-update writes and --compile-review does not: give one of them")
    if not (is_written or is_shown):
        return None
    if path is None:
        option = "--compile-update" if is_written else "--compile-review"
        raise LedgerError(f"{option} needs --compile-budget=FILE, or compile_budget")
    require_replaceable(path, budget.KIND)
    if exists(path):
        read_budget(path)  # at once, if that cannot be: it will be added to
    return Update(config, path, is_written=is_written)


class Update:
    """A budget that is to be changed, or only looked at, when a run has ended."""

    def __init__(self, config: pytest.Config, path: Path, *, is_written: bool) -> None:
        self._path = path
        self._is_written = is_written
        self._change: Change | None = None
        self._others = 0
        self._collected = Collected(config)
        config.pluginmanager.register(self._collected, "jitcount-collected")

    def finish(
        self, measured: Mapping[str, Counts], sizes: Sizes | None, others: int, exitstatus: int
    ) -> None:
        """Change it, if the run came to its end.

        Args:
            measured: by test that passed, what it compiled.
            sizes: the operations of that, where the budget is to hold them.
            others: how many did not pass.
            exitstatus: pytest's.
        """
        self._others = others
        if exitstatus in _GOOD:
            self._change = update_budget(
                self._path,
                measured,
                self._collected.is_gone,
                sizes=sizes,
                is_written=self._is_written,
            )

    def lines(self) -> list[str]:
        """What was changed, or would be."""
        if self._change is None:
            return [f"{self._path} is left as it is: the run did not come to its end"]
        lines = [] if self._is_written else self._change.lines()
        if self._others:
            tests = "1 test that" if self._others == 1 else f"{self._others} tests that"
            lines.append(f"{tests} did not pass: as before")
        lines += filter(None, [self._change.note])
        verb = "wrote" if self._is_written else "would change"
        return [*lines, f"{verb} {self._path}: {self._change}"]


class Collected:
    """The tests that pytest found in this run, here or in its workers, and those that it ran."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: set[str] = set()
        """All that were found, also those that were deselected then."""

        self._whole: set[str] = set()
        """The files, and what else holds tests, that were looked through."""

        self._missed: set[str] = set()
        """The same, of those that were skipped, or failed."""

        self._reported: set[str] = set()

    def is_gone(self, test: str) -> bool:
        """Whether a test is no longer there: this run would have found it, and has not."""
        if test in self._tests or not self._is_complete() or self._is_missed(test):
            return False
        file = test.partition("::")[0]
        return file in self._whole or self._is_deleted(file)

    def _is_complete(self) -> bool:
        """Whether nothing was left out that was asked for: by -k, -m, -x, or whatever else."""
        narrow = self._config.getoption("lf", default=False) or any(
            "::" in argument for argument in self._config.args
        )
        return not narrow and self._tests <= self._reported

    def _is_missed(self, test: str) -> bool:
        return any(
            not missed or test == missed or test.startswith((f"{missed}::", f"{missed}/"))
            for missed in self._missed
        )

    def _is_deleted(self, file: str) -> bool:
        """Whether a file is not there, in a folder that was to be looked through."""
        path = self._config.rootpath / file
        if exists(path):
            return False
        start = self._config.invocation_params.dir
        folders = [(start / argument).resolve() for argument in self._config.args]
        return any(path.resolve().is_relative_to(folder) for folder in folders)

    # --- What pytest tells ------------------------------------------------------------------------

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Take note of a test, before any is deselected."""
        self._tests.add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take note of what holds tests: a file, a class."""
        (self._whole if report.passed else self._missed).add(report.nodeid.removesuffix("."))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a test that ran, or was skipped."""
        self._reported.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Send what a worker has found: the one above collects nothing itself."""
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = [sorted(found) for found in (self._tests, self._whole, self._missed)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has found."""
        sent: Iterable[list[str]] = (getattr(node, "workeroutput", None) or {}).get(_SENT, ())
        for mine, theirs in zip((self._tests, self._whole, self._missed), sent, strict=False):
            mine.update(theirs)
