"""Counts what a run compiles outside of its tests' calls: while it collects, and in fixtures.

Together with what is counted in the tests' calls, that is all that JAX compiles in a run. It begins
before the first conftest file is read, and waits for JAX as the rest of the plugin does.

pytest-xdist's workers each collect, and each counts what it compiles. What a worker or a fork has
found travels with the reports of its tests; what is compiled after the last one, at a worker's end.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from os import getpid  # at once: a test may put another one in its place
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount._explain.compile import Compile
from jitcount._ledger.files import decode, encode
from jitcount._record.log import CompileLog

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from jitcount._observe.in_flight import InFlightCompile

NAME = "jitcount-outside-calls"
"""The plugin's name, by which others find it; it is registered if a run shows or saves compiles."""

COLLECTING = "while collecting"
"""Where a compile is that comes before the first test, followed by the file that is collected."""

HOOKS = "in hooks"
"""Where a compile is that comes between tests, in a hook of a conftest file or a plugin."""

RERUN = "in tests, before a rerun"
"""Where a compile is that a test made when it was not run for the last time."""

_CONFTEST = f"{COLLECTING} conftest files"
_IN_FIXTURE = "in fixture "

_SENT = "jitcount_outside_calls"

# What pytest makes of setup_module, setUpClass and the like.
_MADE_BY_PYTEST = re.compile(r"_(?:xunit|unittest)_(\w+?)_fixture_.*")


class _Found(msgspec.Struct, frozen=True):
    """What one process has compiled at one place."""

    process: int
    place: str
    compiles: tuple[Compile, ...]


def fixture_of(place: str) -> str:
    """The name and scope of a fixture, if it is one where a compile was: ``"rng (session)"``.

    >>> fixture_of("in fixture rng (session)"), fixture_of("in hooks")
    ('rng (session)', '')
    """
    return place.removeprefix(_IN_FIXTURE) if place.startswith(_IN_FIXTURE) else ""


def collected_in(place: str) -> str:
    """What was collected, if a compile came while it was: a file, ``"conftest files"``.

    >>> collected_in("while collecting test_a.py"), collected_in("in hooks")
    ('test_a.py', '')
    """
    return place.removeprefix(f"{COLLECTING} ") if place.startswith(COLLECTING) else ""


def _place_of(fixture: pytest.FixtureDef[Any]) -> str:
    made = _MADE_BY_PYTEST.fullmatch(fixture.argname)
    return f"{_IN_FIXTURE}{made[1] if made else fixture.argname} ({fixture.scope})"


class OutsideCalls:
    """Listens from the first conftest file on until the run ends; in each worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._redacts = _redacts(config)
        self._config = config
        self._owner = self._process = getpid()
        self._began_at = perf_counter()
        self._started_at = time()
        self._place = _CONFTEST
        self._fixtures: list[pytest.FixtureDef[Any]] = []
        """Those that are being set up or torn down, the innermost last."""

        self._paused = 0
        self._new: deque[tuple[int, str, CompileLog]] = deque()
        """What was not yet taken, with its process, which a fork has not made, and its place."""

        self._taken: list[_Found] = []
        self._listening = contextlib.ExitStack()
        self._waiting = self._begin  # one object: a bound method is a new one each time
        after_import_of_jax(self._waiting)
        config.add_cleanup(self._end)  # also where options are wrong, and nothing is configured

    def _begin(self) -> None:
        from jitcount._registry import registry  # noqa: PLC0415 (it needs JAX)

        self._listening.enter_context(registry.listening(self._on_compiled))

    def _end(self) -> None:
        forget(self._waiting)
        self._listening.close()

    @property
    def _is_worker(self) -> bool:
        """Whether this is a worker of pytest-xdist, which says so after conftest files are read."""
        return hasattr(self._config, "workerinput")

    # --- What is compiled -------------------------------------------------------------------------

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what is compiled in this block: it is counted elsewhere."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def _on_compiled(self, seen: InFlightCompile) -> None:
        if self._paused:
            return
        place = _place_of(self._fixtures[-1]) if self._fixtures else self._place
        log = CompileLog(redact=self._redacts)
        log.add(seen)
        self._new.append((getpid(), place, log))

    @property
    def compiles(self) -> dict[str, tuple[Compile, ...]]:
        """By place, what was compiled in all processes so far."""
        self._take()
        places: dict[str, list[Compile]] = {}
        for found in self._taken:
            places.setdefault(found.place, []).extend(found.compiles)
        return {place: tuple(compiles) for place, compiles in places.items()}

    @property
    def collecting(self) -> int:
        """How many processes have compiled something while they collected."""
        return len({found.process for found in self._taken if collected_in(found.place)})

    @property
    def run_s(self) -> float:
        """Seconds since the run began."""
        return perf_counter() - self._began_at

    @property
    def span(self) -> tuple[float, float]:
        """When the run began, and now, in seconds since the epoch."""
        return self._started_at, self._started_at + self.run_s

    def add_rerun(self, compiles: Sequence[Compile]) -> None:
        """Take what a test has compiled that is now run again."""
        if compiles:
            self._taken.append(_Found(self._process, RERUN, tuple(compiles)))

    def _take(self) -> None:
        """Take what this process has compiled since the last time."""
        if getpid() != self._process:  # a fork: it has nothing to do with what was taken before
            self._process = getpid()
            self._taken = []
        places: dict[str, list[Compile]] = {}
        while self._new:
            process, place, log = self._new.popleft()
            if process == self._process:
                places.setdefault(place, []).extend(log.compiles)
        self._taken += [
            _Found(self._process, place, tuple(found)) for place, found in places.items()
        ]

    # --- Where that is ----------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, object, object]:
        """Know which file is being collected: its import is a part of that."""
        before = self._place
        if file := collector.nodeid.partition("::")[0]:
            self._place = f"{COLLECTING} {file}"
        try:
            return (yield)
        finally:
            self._place = before

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Collecting has ended: what is compiled from now on is in a fixture, or else in a hook."""
        self._place = HOOKS

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Know which fixture is being set up, and later, torn down."""
        self._fixtures.append(fixturedef)
        try:
            return (yield)
        finally:
            self._fixtures.remove(fixturedef)
            # Finalizers are called in reverse: this one before the fixture's own.
            fixturedef.addfinalizer(lambda: self._fixtures.append(fixturedef))

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """A fixture is torn down."""
        if fixturedef in self._fixtures:
            self._fixtures.remove(fixturedef)

    # --- From process to process ------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Let a report bring what a fork of this process has compiled."""
        report = yield
        if getpid() != self._owner:
            self._send(vars(report))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take what a report brings, and what this process has compiled; a worker sends it on."""
        self._receive(vars(report))
        if self._is_worker:
            self._send(vars(report))
        else:
            self._take()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Send what a worker has compiled since its last report: now all fixtures have ended."""
        if self._is_worker:
            self._send(self._config.workeroutput)  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has sent; one that crashed has sent nothing."""
        self._receive(getattr(node, "workeroutput", None) or {})

    def _send(self, values: dict[str, Any]) -> None:
        self._take()
        if self._taken:
            values[_SENT] = encode(self._taken).decode()
            self._taken = []

    def _receive(self, values: dict[str, Any]) -> None:
        if sent := values.pop(_SENT, ""):
            self._taken += decode(sent.encode(), list[_Found])


def _redacts(config: pytest.Config) -> bool:
    """Whether the user's values are left out; asked before all options are read."""
    try:
        is_so = bool(config.getini("compile_redact"))
    except (ValueError, pytest.UsageError):  # the run is about to end for it
        is_so = True
    return is_so or bool(config.known_args_namespace.jitcount_redact)
