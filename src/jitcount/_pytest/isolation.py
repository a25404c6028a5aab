"""Makes counts depend on the test alone: not on the tests before it, nor on their order.

What was compiled before would be missing in a test's count, so JAX's caches are cleared. They are
the whole process's: what the test's own fixtures of a wider scope have compiled is cleared too. It
is not held against the test: a program that such a fixture has compiled, and that was cleared here
since, does not count when it is compiled again. And where the caches hold nothing else, they are
not cleared.

To know what a fixture of a wider scope compiles, the caches are cleared before it as well.

Before the tests have imported JAX there is nothing to listen to, and nothing to clear.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from jitcount._after_jax import after_import_of_jax, forget

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable

    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._observe.program import Program
    from jitcount._registry import ExemptFromGuards, Registry

    Warmups = list[tuple["Key", Program]]

Key: TypeAlias = tuple[object, ...]


def key_of(seen: InFlightCompile) -> Key | None:
    """A key that a program has again when it is compiled after a clear; None if there is none.

    A call of a jitted function is known by its description: a new lambda of the same text is
    another one. The description of an eager operation holds what JAX traces anew after a clear (the
    body of a loop), so that one is known by what XLA is handed.
    """
    program = seen.program
    if program is None:
        return None
    if program.function is not None:
        return (program.group, program.places, program.key)
    return (program.group, seen.measure.fingerprint) if seen.measure else None


def fixtures_of(item: pytest.Item) -> Collection[str]:
    """The names of the fixtures that a test asks for, and of those that these ask for."""
    return getattr(item, "fixturenames", ())


class Isolation:
    """Clears JAX's caches for tests that hold a count; registered only if a run has such tests."""

    def __init__(
        self, items: Iterable[pytest.Item], holds_count: Callable[[pytest.Item], bool]
    ) -> None:
        self._holds_count = holds_count
        self._shared = {name for item in items if holds_count(item) for name in fixtures_of(item)}
        """The fixtures of tests that hold a count: all that these compile must be known."""

        self._warmups: dict[pytest.FixtureDef[Any], Warmups] = {}
        """By fixture that is set up, or is being set up, what it compiled."""

        self._at_work: list[Warmups] = []
        self._cached: set[Key | None] = {None}
        """All that was compiled since the last clear; None: something before this began."""

        self._names: set[str] = set()
        """The fixtures of the test that runs."""

        self._own: frozenset[Key] = frozenset()
        """What the fixtures of the test have compiled, from its call on, if it holds a count."""

        self._repeats: list[InFlightCompile] = []
        self._is_setting_up = False
        self._is_narrow = False
        """Whether the history holds less than the fixtures that are set up have compiled."""

        self._listening = contextlib.ExitStack()
        self._waiting = self._begin
        self._registry: Registry | None = None
        self._exempt_before: ExemptFromGuards | None = None
        after_import_of_jax(self._waiting)

    def _begin(self) -> None:
        from jitcount._registry import registry  # noqa: PLC0415 (it needs JAX)

        self._registry = registry
        self._exempt_before = registry.exempt_from_guards
        self._listening.enter_context(registry.listening(self._on_compiled))
        registry.exempt_from_guards = self._is_exempt

    def pytest_unconfigure(self) -> None:
        """Remove the listener, and let guards refuse as before."""
        forget(self._waiting)
        if self._registry is not None:
            self._listening.close()
            self._registry.exempt_from_guards = self._exempt_before

    # --- What is compiled -------------------------------------------------------------------------

    def is_repeat(self, seen: InFlightCompile) -> bool:
        """Whether a fixture of the test has compiled the same, and it was cleared here since."""
        return any(repeat is seen for repeat in self._repeats)

    def _on_compiled(self, seen: InFlightCompile) -> None:
        key = key_of(seen)
        if key in self._own and key not in self._cached:
            self._repeats.append(seen)
        self._cached.add(key)
        if key is not None and seen.program is not None:
            for warmups in self._at_work:
                warmups.append((key, seen.program))

    def _is_exempt(self, seen: InFlightCompile) -> bool:
        """Whether guards must allow a compile, in any test: it was cached before we cleared."""
        key = key_of(seen)
        if key is None or key in self._cached:
            return False
        return any(key == known for known, _ in self._compiled_by_all())

    def _compiled_by_all(self) -> Warmups:
        return [warmup for warmups in list(self._warmups.values()) for warmup in warmups]

    def _compiled_by(self, names: Collection[str]) -> Warmups:
        """What the fixtures of these names, and those that they ask for, have compiled."""
        names = set(names)
        for fixture in reversed(self._warmups):  # those that it asks for were there before it
            if fixture.argname in names:
                names.update(fixture.argnames)
        of_names = [self._warmups[fixture] for fixture in self._warmups if fixture.argname in names]
        return [warmup for warmups in of_names for warmup in warmups]

    # --- When it is cleared -----------------------------------------------------------------------

    def _clear_unless_only(self, names: Collection[str]) -> None:
        """Clear the caches, unless they hold only what these fixtures have compiled."""
        if self._registry is None:
            return
        import jax  # noqa: PLC0415 (the tests have imported it)

        compiled = self._compiled_by(names)
        if not self._cached <= {key for key, _ in compiled}:
            jax.clear_caches()
            self._cached = set()
            self._narrow_history(compiled)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Before a test's fixtures: drop what an earlier test has compiled."""
        self._names = set(fixtures_of(item))
        self._own = frozenset()
        self._repeats = []
        self._is_setting_up = True
        if self._holds_count(item):
            self._clear_unless_only(self._names)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Take note of what a fixture compiles."""
        name = fixturedef.argname
        if self._is_setting_up and fixturedef.scope != "function" and name in self._shared:
            self._clear_unless_only(fixturedef.argnames)
        warmups = self._warmups[fixturedef] = []
        self._at_work.append(warmups)
        try:
            return (yield)
        finally:
            self._at_work.pop()
            self._names.update(request.fixturenames)  # also those that it asked for as it ran

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Forget what a fixture compiled, once it is torn down."""
        self._warmups.pop(fixturedef, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Before a test itself: causes name changes since its own fixtures, and no others."""
        self._is_setting_up = False
        if self._holds_count(item):
            own = self._compiled_by(self._names)
            self._own = frozenset(key for key, _ in own)
            self._narrow_history(own)
        elif self._is_narrow and self._registry is not None:
            for _, program in self._compiled_by_all():
                self._registry.history.add(program)
            self._is_narrow = False

    def _narrow_history(self, warmups: Warmups) -> None:
        if self._registry is not None:
            self._registry.new_history(program for _, program in warmups)
            self._is_narrow = True
