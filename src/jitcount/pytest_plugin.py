"""What the pytest plugin does once a test or an option wants it; `jitcount_pytest` is its door.

The tests are to run as without it: JAX, and NumPy, are not imported before they import it, so that
what they set before holds. What needs JAX waits for it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount.recorder.log import CompileLog
from jitcount.show.expected import differences
from jitcount.show.terminal import render, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.ledger.budget import Counts
    from jitcount.observe.observation import Observation

_LOG = pytest.StashKey[CompileLog]()
_REPEATS = pytest.StashKey[CompileLog]()
_LOG_ON_TARGETS = pytest.StashKey[CompileLog]()
_PROBLEM = pytest.StashKey[Exception | None]()


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
            fail(f"{item.name} must compile exactly what its marker names", expected, log.compiles)
    for marker in item.iter_markers("max_compiles"):
        limit = _limit(marker)
        if log.count() > limit:
            fail(
                f"{item.name} may compile {limit} at most, and compiled {log.count()}",
                None,
                log.compiles,
            )
    if item.get_closest_marker("no_compiles") and log.count():
        headline = f"{item.name} must compile nothing, and compiled {log.count()}"
        fail(headline, {}, log.compiles, "call it once in a fixture, before the test")
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None:
        run.check(item, log)


def fail(
    headline: str, expected: Counts | None, compiles: Sequence[Compile], for_first_calls: str = ""
) -> NoReturn:
    """Fail a test, with what it compiled and what it should have."""
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
