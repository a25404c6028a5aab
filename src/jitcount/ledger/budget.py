"""The committed budget: how often each test may compile each function.

A small file, sorted, one line a function, made to be read in a diff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount.ledger import kinds
from jitcount.ledger.counts import counts_text
from jitcount.ledger.files import is_there, read_whole
from jitcount.ledger.writing import one_at_a_time, require_replaceable, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KIND: Final = kinds.BUDGET
SCHEMA: Final = 1

Counts = dict[str, Annotated[int, msgspec.Meta(ge=0)]]


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the tests of a project may compile, by test and by function."""

    kind: Literal["jitcount budget"] = KIND
    schema: Literal[1] = SCHEMA
    jax: str
    """The JAX release that it was made with, all of it; the earlier one, where only a part was."""

    tests: dict[str, Counts]

    def surplus(self, test: str, found: Counts) -> Counts:
        """What a test compiled beyond its budget; a test that is not in it has none.

        >>> budget = Budget(jax="0.10.2", tests={"test_step": {"step": 1}})
        >>> budget.surplus("test_step", {"step": 3, "f": 1})
        {'step': 2, 'f': 1}
        """
        allowed = self.tests.get(test, {})
        over = {name: count - allowed.get(name, 0) for name, count in found.items()}
        return {name: count for name, count in over.items() if count > 0}

    def unused(self, test: str, found: Counts) -> Counts:
        """What a test compiled less often than it may."""
        allowed = self.tests.get(test, {})
        under = {name: count - found.get(name, 0) for name, count in allowed.items()}
        return {name: count for name, count in under.items() if count > 0}


def read_budget(path: Path) -> Budget:
    """Read a budget, strictly."""
    return read_whole(path, Budget, kind=KIND, schema=SCHEMA)


def write_budget(path: Path, tests: Mapping[str, Counts], jax: str = "") -> None:
    """Write a budget, by default one of this JAX; tests that compile nothing are left out."""
    require_replaceable(path, KIND)
    kept = {test: dict(sorted(counts.items())) for test, counts in sorted(tests.items()) if counts}
    budget = Budget(jax=jax or _release(), tests=kept)
    write_whole(path, msgspec.json.format(msgspec.json.encode(budget), indent=2) + b"\n")


def _release() -> str:
    import jax  # noqa: PLC0415 (what only reads a budget must not wait for it)

    return jax.__version__


class Change(msgspec.Struct, frozen=True):
    r"""What a run changes in a budget.

    >>> change = Change({"a": {"f": 1}, "b": {"f": 1}}, {"b": {"f": 2}, "c": {"g": 1}, "d": {}})
    >>> print(*change.lines(), sep="\n")
    a: f 1 → nothing
    b: f 1 → f 2
    c: nothing → g 1
    """

    before: dict[str, Counts]
    after: dict[str, Counts]

    def __str__(self) -> str:
        """How many tests come, go and change."""
        changed = [(self.before.get(test, {}), self.after.get(test, {})) for test in self._tests()]
        added = sum(not before for before, _ in changed)
        dropped = sum(not after for _, after in changed)
        return f"+{added} −{dropped} ~{len(changed) - added - dropped}"

    def lines(self) -> list[str]:
        """Each test whose counts change, with what they were and what they are."""
        return [
            f"{test}: {counts_text(self.before.get(test, {}))} → "
            f"{counts_text(self.after.get(test, {}))}"
            for test in self._tests()
        ]

    def _tests(self) -> list[str]:
        return [
            test
            for test in sorted({*self.before, *self.after})
            if self.before.get(test, {}) != self.after.get(test, {})
        ]


def update_budget(
    path: Path,
    measured: Mapping[str, Counts],
    is_gone: Callable[[str], bool],
    *,
    is_written: bool = True,
) -> Change:
    """Put what a run has measured into a budget, and take out tests that are no longer there.

    What another run puts in meanwhile is not lost.

    Args:
        path: the budget; where it is not there, it is made.
        measured: by test, what it compiled, if it ran to its end.
        is_gone: whether a test of the budget is no longer there.
        is_written: else it is only said what would change.
    """
    if not is_written:
        return _merged(path, measured, is_gone)[0]
    with one_at_a_time(path):
        change, jax = _merged(path, measured, is_gone)
        write_budget(path, change.after, jax)
    return change


def _merged(
    path: Path, measured: Mapping[str, Counts], is_gone: Callable[[str], bool]
) -> tuple[Change, str]:
    """What changes, and the release that it is made with then."""
    old = read_budget(path) if is_there(path) else None
    before = old.tests if old is not None else {}
    others = {test: counts for test, counts in before.items() if test not in measured}
    kept = {test: counts for test, counts in others.items() if not is_gone(test)}
    return Change(before, kept | dict(measured)), old.jax if old is not None and kept else ""
