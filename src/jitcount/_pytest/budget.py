"""The budget of a run of pytest: tests are held to it, or it is updated from them.

Counts come from tests that ran and passed. An update drops a test that no longer exists; but not
one that a run only did not look at: that was deselected, or stands in a file that was not asked
for, was skipped, or could not be imported.

With ``compile_budget_operations`` the budget also has the operations of each test's programs, which
are the same in every run of one release of JAX on one platform. A program that has more than the
budget says has grown; its line is known, because tests that are held to operations are profiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from jitcount._ledger import budget as ledger_budget
from jitcount._ledger.budget import (
    Counts,
    Operations,
    Sizes,
    change_text,
    counts_text,
    largest,
    read_budget,
    update_budget,
)
from jitcount._ledger.files import LedgerError, exists, require_replaceable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from jitcount._explain.compile import Compile
    from jitcount._ledger.budget import Budget, Change
    from jitcount._record.log import CompileLog

# What a worker of pytest-xdist sends at its end.
_SENT = "jitcount_collected"


class Measured(msgspec.Struct, frozen=True):
    """What one test compiled, as a budget has it; travels with the test's report."""

    counts: Counts
    platform: str = ""
    """The platform that the test compiled for first; its operations are of that one."""

    operations: Operations = {}


def budget_name(config: pytest.Config) -> str:
    """The budget's file as the user names it, from the root of the project; empty if none."""
    return config.getoption("jitcount_budget") or config.getini("compile_budget")


class RunBudget:
    """The budget that a run is held to, or that it updates; it may have neither.

    Raises:
        LedgerError: the budget cannot be read, or could not be written.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._name = budget_name(config)
        self._with_eager = bool(config.getini("compile_budget_eager"))
        self._with_operations = bool(config.getini("compile_budget_operations"))
        path = config.rootpath / self._name if self._name else None
        self._update = _update_asked(config, path)
        self._budget: Budget | None = None
        if path is not None and self._update is None:
            if not exists(path):
                raise LedgerError(f"{path}: is not there; --compile-update makes one")
            self._budget = read_budget(path)
        self._found: dict[str, Measured] = {}

    @property
    def holds_counts(self) -> bool:
        """Whether what a test compiles is held to a number, or will be."""
        return self._budget is not None or self._update is not None

    @property
    def holds_operations(self) -> bool:
        """Whether the operations of a test's programs are held to a number."""
        return self._with_operations and self._budget is not None and self._budget.sizes is not None

    def measure(self, log: CompileLog) -> Measured:
        """What a test's log holds, as a budget has it."""
        if not log.compiles:
            return Measured({})
        from jitcount._explain.compile import count_compiles  # noqa: PLC0415 (it imports NumPy)

        counts = count_compiles(tuple(log.compiles), with_eager=self._with_eager)
        if not self._with_operations:
            return Measured(counts)
        found = list(largest(log.compiles, with_eager=self._with_eager).values())
        platform = found[0].platform if found else ""
        operations = {each.function: each.operations for each in found if each.platform == platform}
        return Measured(counts, platform, operations)

    def add(self, test: str, measured: Measured) -> None:
        """Take what a test compiled, whichever process ran it."""
        self._found[test] = measured

    # --- What a test is held to -------------------------------------------------------------------

    def check(self, item: pytest.Item, log: CompileLog) -> None:
        """Fail a test that compiles more than its budget, or larger programs."""
        if self._budget is None:
            return
        found = self.measure(log)
        if over := self._budget.surplus(item.nodeid, found.counts):
            self._fail_over(self._budget, item, log, found.counts, over)
        sizes = self._sizes_for(found)
        changed = {} if sizes is None else sizes.changed(item.nodeid, found.operations)
        if grown := {name: (was, now) for name, (was, now) in changed.items() if now > was}:
            from jitcount._pytest.checks import fail_grown  # noqa: PLC0415 (loaded: a test is held)

            every = largest(log.compiles, with_eager=self._with_eager)
            programs = [every[name] for name in grown]
            what = "; ".join(
                f"{change_text(each.function, *grown[each.function])}, at {_largest_line(each)}"
                for each in programs
            )
            rule = f"{item.name} compiles a larger program than {self._name} has of it"
            fail_grown(item, rule, what, programs)

    def _fail_over(
        self, budget: Budget, item: pytest.Item, log: CompileLog, found: Counts, over: Counts
    ) -> None:
        import jax  # noqa: PLC0415 (a test has compiled: it is imported)

        from jitcount._pytest.checks import fail  # noqa: PLC0415 (loaded: a test is held)

        allowed = dict(budget.tests.get(item.nodeid, {}))
        rule, what = f"{item.name} compiles more than its budget (over by {counts_text(over)})", ""
        accept = "--compile-update puts what it has now into the budget"
        if not allowed:
            new = "it is new, or compiled nothing before"
            rule = f"{item.name} has no entry in {self._name}: {new}"
            found_text = ", ".join(f"{name} ×{count}" for name, count in found.items())
            what = f"{found_text}, not in the budget: --compile-update puts it there"
            accept = ""  # that says it
        if budget.jax != jax.__version__:
            rule += f"; the budget was made with JAX {budget.jax}, and this is {jax.__version__}"
        held = [each for each in log.compiles if self._with_eager or not each.eager]
        fail(item, rule, allowed, held, accept=accept, what=what)

    def _sizes_for(self, found: Measured) -> Sizes | None:
        """The budgeted operations, if those of a test can be held to them."""
        if self._budget is None or not found.platform or _why_not_held(self._budget, found):
            return None
        return self._budget.sizes

    # --- What the end of a run says ---------------------------------------------------------------

    def finish(self, passed: dict[str, bool], exitstatus: int) -> None:
        """Update the budget, if that was asked for, and the run came to its end."""
        if self._update is not None and exitstatus in {
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
        }:
            measured = self._of(passed)
            sizes = _sizes_of(measured) if self._with_operations else None
            counts = {test: found.counts for test, found in measured.items()}
            self._update.finish(counts, sizes, not_passed=list(passed.values()).count(False))

    def sections(self, passed: dict[str, bool]) -> Iterator[tuple[str, list[str]]]:
        """The titles and lines that the budget adds to the end of a run."""
        if self._budget is not None:
            yield "fewer compiles than budgeted", self._unused(self._budget, passed)
            if self._with_operations:
                yield "other operations than budgeted", self._other(self._budget, passed)
        if self._update is not None:
            yield "compile budget", self._update.lines()

    def _of(self, passed: dict[str, bool]) -> dict[str, Measured]:
        """What tests compiled that ran to their end: one that fails midway has only some."""
        return {test: found for test, found in self._found.items() if passed.get(test)}

    def _unused(self, budget: Budget, passed: dict[str, bool]) -> list[str]:
        lines = [
            f"{test}: {name} {count} fewer"
            for test, found in self._of(passed).items()
            for name, count in budget.unused(test, found.counts).items()
        ]
        return [*lines, "--compile-update takes them out of the budget"] if lines else []

    def _other(self, budget: Budget, passed: dict[str, bool]) -> list[str]:
        """What has fewer operations than the budget says, and why some are not held."""
        lines: list[str] = []
        reasons: dict[str, int] = {}
        for test, found in self._of(passed).items():
            if (sizes := self._sizes_for(found)) is not None:
                changed = sizes.changed(test, found.operations).items()
                lines += [
                    f"{test}: {change_text(name, was, now)}"
                    for name, (was, now) in changed
                    if now < was
                ]
                new = found.operations.keys() - sizes.tests.get(test, {}).keys()
                lines += [f"{test}: {name} is not in the budget" for name in sorted(new)]
            elif found.platform:
                reason = _why_not_held(budget, found)
                reasons[reason] = reasons.get(reason, 0) + 1
        lines += ["--compile-update puts them into the budget"] if lines else []
        from jitcount._show.text import plural  # noqa: PLC0415 (only for those who show it)

        return [*lines, *(f"{plural(count, 'test')}: {why}" for why, count in reasons.items())]


def _why_not_held(budget: Budget, found: Measured) -> str:
    """Why the operations of a test cannot be held to a budget; empty if they can."""
    if budget.sizes is None:
        return "the budget has no operations yet: --compile-update puts them there"
    import jax  # noqa: PLC0415 (a test has compiled: it is imported)

    of, here = (budget.jax, budget.sizes.platform), (jax.__version__, found.platform)
    where = "they are of JAX {} on {}, and this is {} on {}".format(*of, *here)
    return "" if of == here else f"operations are not held: {where}"


def _sizes_of(measured: dict[str, Measured]) -> Sizes:
    """The operations of tests for a budget, which has those of one platform."""
    platform = next((found.platform for found in measured.values() if found.platform), "")
    mine = {test: each.operations for test, each in measured.items() if each.platform == platform}
    return Sizes(platform=platform, tests=mine)


def _largest_line(compiled: Compile) -> str:
    """The line that most operations of a program come from; without a profile, that of its call."""
    lines = [line for line in compiled.lines if line.is_attributed and line.operations]
    most = max(lines, key=lambda line: line.operations, default=None)
    return str(compiled.call_site if most is None else most.call_site)


# --- An update ------------------------------------------------------------------------------------


def _update_asked(config: pytest.Config, path: Path | None) -> BudgetUpdate | None:
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
    require_replaceable(path, ledger_budget.KIND)
    if exists(path):
        read_budget(path)  # now, if that cannot be: it will be added to
    return BudgetUpdate(config, path, is_written=is_written)


class BudgetUpdate:
    """Changes a budget when a run has ended, or only shows what it would change."""

    def __init__(self, config: pytest.Config, path: Path, *, is_written: bool) -> None:
        self._path = path
        self._is_written = is_written
        self._change: Change | None = None
        self._not_passed = 0
        self._collected = collected_tests(config)

    def finish(self, counts: dict[str, Counts], sizes: Sizes | None, *, not_passed: int) -> None:
        """Put the counts of tests that passed into the budget, and their operations, if any."""
        self._not_passed = not_passed
        is_gone, is_written = self._collected.is_gone, self._is_written
        self._change = update_budget(
            self._path, counts, is_gone, sizes=sizes, is_written=is_written
        )

    def lines(self) -> list[str]:
        """What was changed in the budget, or would be."""
        if self._change is None:
            return [f"{self._path} is left as it is: the run did not come to its end"]
        lines = [] if self._is_written else self._change.lines()
        if self._not_passed:
            tests = "1 test that" if self._not_passed == 1 else f"{self._not_passed} tests that"
            lines.append(f"{tests} did not pass: as before")
        lines += filter(None, [self._change.note])
        verb = "wrote" if self._is_written else "would change"
        return [*lines, f"{verb} {self._path}: {self._change}"]


def collected_tests(config: pytest.Config) -> CollectedTests:
    """The tests that a run finds: one for all files that it updates."""
    found = config.pluginmanager.get_plugin("jitcount-collected")
    if found is None:
        found = CollectedTests(config)
        config.pluginmanager.register(found, "jitcount-collected")
    assert isinstance(found, CollectedTests)  # noqa: S101
    return found


class CollectedTests:
    """The tests that pytest found in this run, here or in its workers, and those that it ran."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: set[str] = set()
        """All that were found, also those that were deselected then."""

        self._whole: set[str] = set()
        """The files, and what else holds tests, that were looked through."""

        self._missed: set[str] = set()
        """The files, and what else holds tests, that were skipped or failed."""

        self._reported: set[str] = set()

    def is_gone(self, test: str) -> bool:
        """Whether a test no longer exists: this run would have found it, and has not."""
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
        """Whether a file does not exist, in a folder that was to be looked through."""
        path = self._config.rootpath / file
        if exists(path):
            return False
        start = self._config.invocation_params.dir
        folders = [(start / argument).resolve() for argument in self._config.args]
        return any(path.resolve().is_relative_to(folder) for folder in folders)

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
        """Send what a worker has found: the process above it collects nothing itself."""
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = [sorted(found) for found in (self._tests, self._whole, self._missed)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has found."""
        sent: Iterable[list[str]] = (getattr(node, "workeroutput", None) or {}).get(_SENT, ())
        for mine, theirs in zip((self._tests, self._whole, self._missed), sent, strict=False):
            mine.update(theirs)
