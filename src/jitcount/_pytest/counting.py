"""Counts what each test compiles, if a test or an option asks for it; `jitcount_pytest` calls this.

Tests must run as they do without it: JAX and NumPy are not imported before the tests import them,
so that what they set before holds. What needs JAX waits for that. What only a failure needs is in
`checks`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount._record.log import CompileLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._observe.in_flight import InFlightCompile


class Refused(NamedTuple):
    """Why a test was failed for what it compiled."""

    what: str
    """The reason, in one line."""

    beyond: Sequence[Compile]
    """The compiles beyond what was allowed."""


_LOG = pytest.StashKey[CompileLog]()
_REPEATS = pytest.StashKey[CompileLog]()
_LOG_ON_TARGETS = pytest.StashKey[CompileLog]()
_PROBLEM = pytest.StashKey[Exception | None]()
REFUSED = pytest.StashKey[Refused]()
"""Why a test was failed for what it compiled, if it was."""

# The names in a test's report, and in a benchmark's extra_info.
_PROPERTIES = ("compiles", "compile_s")


def log_of(item: pytest.Item) -> CompileLog:
    """The log of a test, which is filled in its call phase."""
    return item.stash.setdefault(_LOG, CompileLog(redact=_redacts(item.config)))


def _redacts(config: pytest.Config) -> bool:
    return bool(config.getoption("jitcount_redact") or config.getini("compile_redact"))


def begin(item: pytest.Item) -> None:
    """Begin a test's count anew, also where the test is run again."""
    for key in _LOG, _REPEATS:
        item.stash[key] = CompileLog(redact=_redacts(item.config))
    item.stash[_PROBLEM] = None
    if REFUSED in item.stash:
        del item.stash[REFUSED]


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
    from jitcount._registry import registry  # noqa: PLC0415 (it needs JAX)

    log, repeats = log_of(item), item.stash[_REPEATS]
    isolation = item.config.pluginmanager.get_plugin("jitcount-isolation")

    def listener(seen: InFlightCompile) -> None:
        is_repeat = isolation is not None and isolation.is_repeat(seen)
        (repeats if is_repeat else log).add(seen)

    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None and run.budget.holds_operations:  # a failure names their line
        counting.enter_context(registry.profiling())
    counting.enter_context(registry.listening(listener))
    outside = item.config.pluginmanager.get_plugin("jitcount-outside-calls")
    if outside is not None:
        counting.enter_context(outside.paused())
    if targets := item.config.getoption("jitcount_targets"):
        from jitcount._record.record import record  # noqa: PLC0415 (the same)

        item.stash[_LOG_ON_TARGETS] = counting.enter_context(
            record(targets, redact=_redacts(item.config))
        )


def compiles_of(item: pytest.Item) -> tuple[Compile, ...]:
    """All compiles of a test, in order, also those that are not held against it."""
    if (on_targets := item.stash.get(_LOG_ON_TARGETS, None)) is not None:
        return tuple(on_targets.compiles)
    every = [*log_of(item).compiles, *item.stash[_REPEATS].compiles]
    return tuple(sorted(every, key=lambda compiled: compiled.started_at))


def require_counted(item: pytest.Item) -> None:
    """Raise what kept a test from being counted."""
    if (problem := item.stash[_PROBLEM]) is not None:
        raise problem


def note_costs(item: pytest.Item) -> None:
    """Put what a test compiled where reports find it: junit's properties, a benchmark's file."""
    if _REPEATS not in item.stash:
        return
    logs = log_of(item), item.stash[_REPEATS]
    made, took = sum(log.count() for log in logs), round(sum(log.total_s for log in logs), 6)
    others = [(name, value) for name, value in item.user_properties if name not in _PROPERTIES]
    item.user_properties[:] = [*others, *zip(_PROPERTIES, (made, took), strict=True)]
    benchmark = getattr(item, "funcargs", {}).get("benchmark")
    if isinstance(info := getattr(benchmark, "extra_info", None), dict):
        info.update(zip(_PROPERTIES, (log_of(item).counts(), took), strict=True))
