"""What the pytest plugin does once a test or an option wants it; `jitcount_pytest` is its door.

The tests are to run as without it: JAX, and NumPy, are not imported before they import it, so that
what they set before holds. What needs JAX waits for it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import pytest

from jitcount._after_jax import after_import_of_jax, forget, is_there
from jitcount.explain.compile import Compile
from jitcount.ledger import kinds
from jitcount.ledger.budget import Budget, Counts, read_budget, write_budget
from jitcount.ledger.environment import Environment, environment
from jitcount.ledger.files import FileError, decode, encode, require_replaceable
from jitcount.recorder.log import CompileLog
from jitcount.show.costliest import costliest
from jitcount.show.expected import differences
from jitcount.show.target_table import targets_summary
from jitcount.show.terminal import render
from jitcount.targets.host import prefer_cpu
from jitcount.targets.installed import require_installed
from jitcount.targets.names import parse

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from jitcount.observe.observation import Observation

_LOG = pytest.StashKey[CompileLog]()
_REPEATS = pytest.StashKey[CompileLog]()
_LOG_ON_TARGETS = pytest.StashKey[CompileLog]()
_PROBLEM = pytest.StashKey[Exception | None]()


class _Sent(msgspec.Struct, frozen=True):
    """What travels with a report, as plain text, from a worker of pytest-xdist."""

    compiles: tuple[Compile, ...]
    """All of them, also those that are not held against the test."""

    counts: Counts
    """Of those that are, as a budget has them."""


def log_of(item: pytest.Item) -> CompileLog:
    """The log of a test, which is filled in its call phase."""
    return item.stash.setdefault(_LOG, CompileLog())


def begin(item: pytest.Item) -> None:
    """Begin a test's count; that of an earlier run of it is gone."""
    item.stash[_LOG] = CompileLog()
    item.stash[_REPEATS] = CompileLog()
    item.stash[_PROBLEM] = None


@contextlib.contextmanager
def counted(item: pytest.Item) -> Iterator[None]:
    """Count what is compiled in a test's call phase, and compile it for targets too."""
    with contextlib.ExitStack() as counting:

        def begin() -> None:
            try:
                _begin_to_count(item, counting)
            except Exception as error:  # noqa: BLE001 (the test's own import must not fail)
                item.stash[_PROBLEM] = error

        counting.callback(forget, begin)
        after_import_of_jax(begin)  # it may be the test itself that imports it
        yield


def _begin_to_count(item: pytest.Item, counting: contextlib.ExitStack) -> None:
    from jitcount.explain.hub import hub  # noqa: PLC0415 (these need JAX)
    from jitcount.recorder.record import record  # noqa: PLC0415

    log, repeats = log_of(item), item.stash[_REPEATS]
    isolation = item.config.pluginmanager.get_plugin("jitcount-isolation")

    def listener(seen: Observation) -> None:
        is_repeat = isolation is not None and isolation.is_repeat(seen)
        (repeats if is_repeat else log).add(seen)

    counting.callback(hub.forget, listener)
    hub.listen(listener)
    if targets := item.config.getoption("jitcount_targets"):
        item.stash[_LOG_ON_TARGETS] = counting.enter_context(record(targets))


def _compiles_of(item: pytest.Item) -> tuple[Compile, ...]:
    """All that XLA compiled in a test, in order."""
    if (on_targets := item.stash.get(_LOG_ON_TARGETS, None)) is not None:
        return tuple(on_targets.compiles)
    every = [*log_of(item).compiles, *item.stash[_REPEATS].compiles]
    return tuple(sorted(every, key=lambda compiled: compiled.started_at))


def check(item: pytest.Item) -> None:
    """Fail a test that compiled something else than its markers and the budget allow."""
    if (problem := item.stash[_PROBLEM]) is not None:
        raise problem
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
    pytest.fail(render(shown, dense=True), pytrace=False)


def _expected_counts(marker: pytest.Mark) -> Counts:
    counts = marker.kwargs
    if marker.args or not counts or not all(map(_is_count, counts.values())):
        _refuse(marker, "takes counts by function, as in compiles(step=2, add=1)")
    return {name: count for name, count in counts.items() if count}


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
        self._ledger = Path(named) if named else None
        self._update = bool(config.getoption("jitcount_update"))
        self._with_eager = bool(config.getini("compile_budget_eager"))
        named = config.getoption("jitcount_budget") or config.getini("compile_budget")
        self._budget_file = config.rootpath / named if named else None
        try:
            if targets := config.getoption("jitcount_targets"):
                for target in targets:
                    require_installed(parse(target))
                prefer_cpu()
            self._budget = self._prepare_files()
        except (FileError, ValueError, ImportError) as error:  # of a file, or of a target
            pytest.exit(str(error), 2)
        self._found: dict[str, tuple[Compile, ...]] = {}
        self._counts: dict[str, Counts] = {}
        self._unused: list[str] = []
        self._where: Environment | None = None

    def _prepare_files(self) -> Budget | None:
        """Read the budget, and see that what will be written replaces nothing of others."""
        if self._ledger is not None:
            require_replaceable(self._ledger, kinds.LEDGER)
        if self._update:
            if self._budget_file is None:
                raise FileError("--compile-update needs --compile-budget=FILE, or compile_budget")
            require_replaceable(self._budget_file, kinds.BUDGET)
            return None
        if self._budget_file is None:
            return None
        if not self._budget_file.exists():
            raise FileError(f"{self._budget_file}: is not there; --compile-update makes one")
        return read_budget(self._budget_file)

    @property
    def holds_counts(self) -> bool:
        """Whether what a test compiles is held against a number, or will be."""
        return self._budget is not None or self._update

    def check(self, item: pytest.Item, log: CompileLog) -> None:
        """Fail a test that compiles more than its budget."""
        if self._budget is None:
            return
        found = self._counts_of(log)
        over = self._budget.surplus(item.nodeid, found)
        if over:
            allowed = dict(self._budget.tests.get(item.nodeid, {}))
            over_text = ", ".join(f"{name} {count}" for name, count in over.items())
            headline = f"{item.name} compiles more than its budget (over by {over_text})"
            import jax  # noqa: PLC0415 (there is more than none, so it is there)

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
            sent = _Sent(_compiles_of(item), self._counts_of(log_of(item)))
            report.jitcount = encode(sent).decode()
        return report

    def _counts_of(self, log: CompileLog) -> Counts:
        if not log.compiles:
            return {}
        from jitcount.ledger.ledger import count_compiles  # noqa: PLC0415 (it imports NumPy)

        return count_compiles(tuple(log.compiles), with_eager=self._with_eager)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what the tests compiled, whichever worker ran them."""
        sent = getattr(report, "jitcount", None)
        if self._is_worker or sent is None:
            return
        found = decode(sent.encode(), _Sent)
        self._found[report.nodeid] = found.compiles
        self._counts[report.nodeid] = found.counts
        if self._budget is not None:
            for name, count in self._budget.unused(report.nodeid, found.counts).items():
                self._unused.append(f"{report.nodeid}: {name} {count} fewer")

    def pytest_sessionfinish(self) -> None:
        """Write the files that were asked for; a worker says where its tests ran."""
        if self._is_worker:
            if self._ledger and is_there():
                sent = encode(environment()).decode()
                self._config.workeroutput["jitcount_environment"] = sent  # type: ignore[attr-defined]
            return
        try:
            self._write()
        except FileError as error:
            pytest.exit(str(error), 2)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist has said: JAX is as its tests have set it up."""
        sent = getattr(node, "workeroutput", {}).get("jitcount_environment")
        if sent and self._where is None:
            self._where = decode(sent.encode(), Environment)

    def _write(self) -> None:
        if self._ledger:
            from jitcount.ledger.ledger import CaseEntry, Ledger, write_ledger  # noqa: PLC0415

            where = self._where or environment()
            cases = {test: CaseEntry(compiles=found) for test, found in self._found.items()}
            write_ledger(self._ledger, Ledger(environment=where, cases=cases))
        if self._update and self._budget_file is not None:
            write_budget(self._budget_file, self._counts)

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
        if self._unused:
            terminalreporter.section("fewer compiles than budgeted")
            for line in self._unused:
                terminalreporter.write_line(line)
            terminalreporter.write_line("--compile-update takes them out of the budget")
        if self._update:
            terminalreporter.write_line(f"wrote the compile budget {self._budget_file}")
