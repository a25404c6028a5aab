"""What the pytest plugin does once a test or an option wants it; `jitcount_pytest` is its door."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import msgspec
import pytest

from jitcount.explain.compile import Compile
from jitcount.explain.hub import hub
from jitcount.ledger import ledger
from jitcount.ledger.budget import Budget, Counts, read_budget
from jitcount.ledger.environment import environment
from jitcount.ledger.files import FileError, decode, encode, is_there
from jitcount.ledger.ledger import CaseEntry, Ledger, count_compiles, write_ledger
from jitcount.ledger.writing import require_replaceable
from jitcount.pytest_budget import Update, update_asked
from jitcount.recorder.log import CompileLog
from jitcount.recorder.record import record
from jitcount.show.costliest import costliest
from jitcount.show.expected import differences
from jitcount.show.parts import Note
from jitcount.show.target_table import targets_summary
from jitcount.show.terminal import render, width
from jitcount.targets.host import prefer_cpu

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from jitcount.observe.observation import Observation

_LOG = pytest.StashKey[CompileLog]()
_REPEATS = pytest.StashKey[CompileLog]()
_LOG_ON_TARGETS = pytest.StashKey[CompileLog]()


class _Sent(msgspec.Struct, frozen=True):
    """What travels with a report, as plain text, from a worker of pytest-xdist."""

    compiles: tuple[Compile, ...]
    """All of them, also those that are not held against the test."""

    counts: Counts
    """Of those that are, as a budget has them."""


def log_of(item: pytest.Item) -> CompileLog:
    """The log of a test, which is filled in its call phase."""
    return item.stash.setdefault(_LOG, CompileLog(redact=_redacts(item.config)))


def _redacts(config: pytest.Config) -> bool:
    return bool(config.getoption("jitcount_redact") or config.getini("compile_redact"))


def begin(item: pytest.Item) -> None:
    """Begin a test's count; that of an earlier run of it is gone."""
    for key in _LOG, _REPEATS:
        item.stash[key] = CompileLog(redact=_redacts(item.config))


@contextlib.contextmanager
def counted(item: pytest.Item) -> Iterator[None]:
    """Count what is compiled in a test's call phase, and compile it for targets too."""
    _require_usable_markers(item)
    log, repeats = log_of(item), item.stash[_REPEATS]
    isolation = item.config.pluginmanager.get_plugin("jitcount-isolation")

    def listener(seen: Observation) -> None:
        is_repeat = isolation is not None and isolation.is_repeat(seen)
        (repeats if is_repeat else log).add(seen)

    targets = item.config.getoption("jitcount_targets")
    hub.listen(listener)
    try:
        if targets:
            with record(targets, redact=_redacts(item.config)) as item.stash[_LOG_ON_TARGETS]:
                yield
        else:
            yield
    finally:
        hub.forget(listener)


def _compiles_of(item: pytest.Item) -> tuple[Compile, ...]:
    """All that XLA compiled in a test, in order."""
    if (on_targets := item.stash.get(_LOG_ON_TARGETS, None)) is not None:
        return tuple(on_targets.compiles)
    every = [*log_of(item).compiles, *item.stash[_REPEATS].compiles]
    return tuple(sorted(every, key=lambda compiled: compiled.started_at))


def check(item: pytest.Item) -> None:
    """Fail a test that compiled something else than its markers and the budget allow."""
    log = log_of(item)
    for marker in item.iter_markers("compiles"):
        expected = _expected_counts(marker)
        if log.counts() != expected:
            _fail(f"{item.name} must compile exactly what its marker names", expected, log.compiles)
    for marker in item.iter_markers("max_compiles"):
        limit = _limit(marker)
        if log.count() > limit:
            _fail(
                f"{item.name} may compile {limit} at most, and compiled {log.count()}",
                None,
                log.compiles,
            )
    if item.get_closest_marker("no_compiles") and log.count():
        headline = f"{item.name} must compile nothing, and compiled {log.count()}"
        _fail(headline, {}, log.compiles, "call it once in a fixture, before the test")
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None:
        run.check(item, log)


def _fail(
    headline: str, expected: Counts | None, compiles: Sequence[Compile], for_first_calls: str = ""
) -> NoReturn:
    shown = differences(headline, expected, compiles, for_first_calls)
    # Not to what captures a test's output, but where pytest shows it in the end.
    pytest.fail(render(shown, width(), dense=True, stream=sys.__stdout__), pytrace=False)


def _expected_counts(marker: pytest.Mark) -> Counts:
    counts = marker.kwargs
    if marker.args or not counts or not all(map(_is_count, counts.values())):
        _refuse(marker, "takes counts by function, as in compiles(step=2, add=1)")
    return {name: count for name, count in counts.items() if count}


def _require_usable_markers(item: pytest.Item) -> None:
    """Fail a test at once whose markers cannot be meant: they would hold it to nothing."""
    for marker in item.iter_markers("compiles"):
        _expected_counts(marker)
    for marker in item.iter_markers("max_compiles"):
        _limit(marker)
    for marker in item.iter_markers("no_compiles"):
        if marker.args or marker.kwargs:
            _refuse(marker, "takes nothing: max_compiles(3) allows some")


def _limit(marker: pytest.Mark) -> int:
    if marker.kwargs or len(marker.args) != 1 or not _is_count(marker.args[0]):
        _refuse(marker, "takes one count, as in max_compiles(3)")
    return int(marker.args[0])


def _refuse(marker: pytest.Mark, usage: str) -> NoReturn:
    given = [*map(repr, marker.args), *(f"{k}={v!r}" for k, v in marker.kwargs.items())]
    shown = f"({', '.join(given)})"
    pytest.fail(f"@pytest.mark.{marker.name} {usage}; it was given {shown}", pytrace=False)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


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
        try:
            if targets := config.getoption("jitcount_targets"):
                record(targets)
                prefer_cpu()
            self._budget = self._prepare_files()
        except (FileError, ValueError, ImportError) as error:  # of a file, or of a target
            pytest.exit(str(error), 2)
        self._found: dict[str, tuple[Compile, ...]] = {}
        self._counts: dict[str, Counts] = {}
        self._passed: dict[str, bool] = {}
        """By test, whether all of its phases did; of one that is run again, the last time."""

    def _prepare_files(self) -> Budget | None:
        """Read the budget, and see that what will be written replaces nothing of others."""
        if self._ledger is not None:
            require_replaceable(self._ledger, ledger.KIND)
        self._update = update_asked(self._config, self._budget_file)
        if self._budget_file is None or self._update is not None:
            return None
        if not is_there(self._budget_file):
            raise FileError(f"{self._budget_file}: is not there; --compile-update makes one")
        return read_budget(self._budget_file)

    @property
    def holds_counts(self) -> bool:
        """Whether what a test compiles is held against a number, or will be."""
        return self._budget is not None or self._update is not None

    def check(self, item: pytest.Item, log: CompileLog) -> None:
        """Fail a test that compiles more than its budget."""
        if self._budget is None:
            return
        found = count_compiles(tuple(log.compiles), with_eager=self._with_eager)
        over = self._budget.surplus(item.nodeid, found)
        if over:
            allowed = dict(self._budget.tests.get(item.nodeid, {}))
            over_text = ", ".join(f"{name} {count}" for name, count in over.items())
            headline = f"{item.name} compiles more than its budget (over by {over_text})"
            if self._budget.jax != jax.__version__:
                made_with = f"the budget was made with JAX {self._budget.jax}"
                headline += f"; {made_with}, and this is {jax.__version__}"
            kept = [c for c in log.compiles if self._with_eager or not c.eager]
            _fail(headline, allowed, kept)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Put what a test compiled into its report, which travels from a worker."""
        report = yield
        if call.when == "call":
            held = tuple(log_of(item).compiles)
            counts = count_compiles(held, with_eager=self._with_eager)
            report.jitcount = encode(_Sent(_compiles_of(item), counts)).decode()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what the tests compiled, whichever worker ran them."""
        so_far = report.when == "setup" or self._passed.get(report.nodeid, False)
        self._passed[report.nodeid] = so_far and report.passed
        sent = getattr(report, "jitcount", None)
        if self._is_worker or sent is None:
            return
        found = decode(sent.encode(), _Sent)
        self._found[report.nodeid] = found.compiles
        self._counts[report.nodeid] = found.counts

    @property
    def _measured(self) -> dict[str, Counts]:
        """Of the tests that ran to their end, the counts: one that fails midway has only some."""
        return {test: counts for test, counts in self._counts.items() if self._passed[test]}

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the files that were asked for."""
        if self._is_worker or not self._passed:
            return
        try:
            if self._ledger:
                cases = {test: CaseEntry(compiles=found) for test, found in self._found.items()}
                write_ledger(self._ledger, Ledger(environment=environment(), cases=cases))
            if self._update is not None:
                others = list(self._passed.values()).count(False)
                self._update.finish(self._measured, others, exitstatus)
        except FileError as error:
            pytest.exit(str(error), 2)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the costliest compiles, and what a budget no longer needs."""
        if self._is_worker:
            return
        most = self._config.getoption("jitcount_show")
        if most:
            terminalreporter.section("compiles")
            terminalreporter.write_line(render(costliest(self._found, most), dense=True))
        if self._config.getoption("jitcount_targets"):
            terminalreporter.section("compiles on targets")
            terminalreporter.write_line(render(targets_summary(self._found)))
        for title, lines in (
            ("fewer compiles than budgeted", self._unused()),
            ("compile budget", self._update.lines() if self._update is not None else []),
        ):
            if lines:
                terminalreporter.section(title)
                terminalreporter.write_line(render(map(Note, lines)))

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
