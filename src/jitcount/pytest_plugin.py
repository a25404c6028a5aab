"""What the pytest plugin does once a test or an option wants it; `jitcount_pytest` is its door.

The tests are to run as without it: JAX, and NumPy, are not imported before they import it, so that
what they set before holds. What needs JAX waits for it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import pytest

from jitcount import pytest_github
from jitcount._after_jax import after_import_of_jax, forget
from jitcount.explain.hotspots import is_first
from jitcount.explain.summing import in_a_line
from jitcount.recorder.log import CompileLog
from jitcount.show.expected import differences, in_short, surplus, too_many
from jitcount.show.log_table import log_table
from jitcount.show.parts import Note
from jitcount.show.terminal import render, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.ledger.budget import Counts
    from jitcount.observe.observation import Observation
    from jitcount.show.parts import Part


class Refused(NamedTuple):
    """Why a count did not hold."""

    what: str
    """In one line."""

    beyond: Sequence[Compile]
    """What was compiled too much."""


_LOG = pytest.StashKey[CompileLog]()
_REPEATS = pytest.StashKey[CompileLog]()
_LOG_ON_TARGETS = pytest.StashKey[CompileLog]()
_PROBLEM = pytest.StashKey[Exception | None]()
_REFUSED = pytest.StashKey[Refused]()

# What a test's report and a benchmark's extra_info have.
_PROPERTIES = ("compiles", "compile_s")


def log_of(item: pytest.Item) -> CompileLog:
    """The log of a test, which is filled in its call phase."""
    return item.stash.setdefault(_LOG, CompileLog(redact=_redacts(item.config)))


def _redacts(config: pytest.Config) -> bool:
    return bool(config.getoption("jitcount_redact") or config.getini("compile_redact"))


def begin(item: pytest.Item) -> None:
    """Begin a test's count; that of an earlier run of it is gone."""
    for key in _LOG, _REPEATS:
        item.stash[key] = CompileLog(redact=_redacts(item.config))
    item.stash[_PROBLEM] = None
    if _REFUSED in item.stash:
        del item.stash[_REFUSED]


@contextlib.contextmanager
def counted(item: pytest.Item) -> Iterator[None]:
    """Count what is compiled in a test's call phase, and compile it for targets too."""
    _require_usable_markers(item)
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
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None and run.holds_operations:  # where they come from is asked when they grow
        counting.callback(hub.stop_profiling)
        hub.profile()
    if targets := item.config.getoption("jitcount_targets"):
        item.stash[_LOG_ON_TARGETS] = counting.enter_context(
            record(targets, redact=_redacts(item.config))
        )


def compiles_of(item: pytest.Item) -> tuple[Compile, ...]:
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
            rule = f"{item.name} must compile exactly what its marker names"
            fail(item, rule, expected, log.compiles)
    for marker in item.iter_markers("max_compiles"):
        limit = _limit(marker)
        if log.count() > limit:
            rule = f"{item.name} may compile {limit} at most, and compiled {log.count()}"
            fail(item, rule, None, log.compiles, what=too_many(limit, log.compiles))
    if item.get_closest_marker("no_compiles") and log.count():
        rule = f"{item.name} must compile nothing, and compiled {log.count()}"
        advice = "call it once in a fixture, before the test"
        fail(item, rule, {}, log.compiles, for_first_calls=advice)
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None:
        run.check(item, log)


def fail(  # noqa: PLR0913 (keywords, each of its own)
    item: pytest.Item,
    rule: str,
    expected: Counts | None,
    compiles: Sequence[Compile],
    *,
    what: str = "",
    for_first_calls: str = "",
) -> NoReturn:
    """Fail a test, with what it compiled and what it should have; pytest sums up the first line.

    Args:
        item: the test.
        rule: what it was held to.
        expected: how often each function may be compiled, where the rule says that.
        compiles: what was compiled.
        what: all of it in one line, where that does not follow from what is expected.
        for_first_calls: what to do about these.
    """
    what = what or in_short(expected or {}, compiles)
    below = differences(rule, expected, compiles, for_first_calls)
    refuse(item, Refused(what, surplus(expected, compiles)), below)


def refuse(item: pytest.Item, refused: Refused, below: Sequence[Part]) -> NoReturn:
    """Fail a test for a reason, with more about it below."""
    item.stash[_REFUSED] = refused
    pytest.fail(_rendered([Note(refused.what), *below]), pytrace=False)


def _rendered(parts: Sequence[Part]) -> str:
    # Not to what captures a test's output, but where pytest shows it in the end.
    return render(parts, width(), dense=True, stream=sys.__stdout__)


def note_costs(item: pytest.Item) -> None:
    """Put what a test compiled where reports find it: junit's properties, a benchmark's file."""
    if _REPEATS not in item.stash:
        return
    made = [compiled for compiled in compiles_of(item) if not compiled.from_disk]
    took = round(sum(compiled.total_s for compiled in made), 6)
    others = [(name, value) for name, value in item.user_properties if name not in _PROPERTIES]
    item.user_properties[:] = [*others, *zip(_PROPERTIES, (len(made), took), strict=True)]
    benchmark = getattr(item, "funcargs", {}).get("benchmark")
    if isinstance(info := getattr(benchmark, "extra_info", None), dict):
        info.update(zip(_PROPERTIES, (log_of(item).counts(), took), strict=True))


def report_failure(item: pytest.Item, report: pytest.TestReport) -> None:
    """Show with a failed test what it compiled and why, and tell GitHub, where that listens."""
    log = log_of(item)
    if not log.compiles and "compiles" not in getattr(item, "fixturenames", ()):
        return
    refused = item.stash.get(_REFUSED, None)
    # What a failure of ours has said of causes and remedies is not said again.
    shown = log_table(log.compiles, with_advice=refused is None)
    report.sections.append(("compiles", _rendered(shown)))
    if not pytest_github.is_there():
        return
    if refused is None and "compiles" in getattr(item, "fixturenames", ()):
        # It was most likely a count that the test itself did not hold.
        again = [compiled for compiled in log.compiles if not is_first(compiled)]
        refused = Refused("; ".join(map(_recompiled, again)), again)
    if refused is not None and refused.beyond:
        pytest_github.attach(report, *refused)


def _recompiled(compiled: Compile) -> str:
    return f"{compiled.function}: {in_a_line(compiled.causes)}"


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
