"""The committed budget: how often each test may compile each function, and how large it may be.

A small file, sorted, one line a function, made to be read in a diff. It holds the operations of
programs where a project asks for them. They are the same in every run, but another release of JAX
or another platform lowers the same program to other operations: a budget's are of one of each.
What only reads a budget needs neither JAX nor NumPy.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount._ledger import files
from jitcount._ledger.files import (
    exists,
    one_at_a_time,
    read_whole,
    require_replaceable,
    write_whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from jitcount._explain.compile import Compile

KIND: Final = files.BUDGET
SCHEMA: Final = 1
WITH_SIZES: Final = 2
"""The schema of a budget that holds operations, which an older jitcount does not know."""

Counts = dict[str, Annotated[int, msgspec.Meta(ge=0)]]
"""By function, how often it was compiled, or may be."""

Operations = Counts
"""By function, the operations of its largest program."""


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """By test, how many operations the largest program of each function has."""

    platform: str
    tests: dict[str, Operations]

    def changed(self, test: str, found: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """The functions of a test whose program has another size: what it had, and what it has.

        >>> sizes = Sizes(platform="cpu", tests={"test": {"step": 3}})
        >>> sizes.changed("test", {"step": 5, "new": 1})
        {'step': (3, 5)}
        """
        held = self.tests.get(test, {})
        return {
            name: (held[name], now) for name, now in found.items() if held.get(name, now) != now
        }


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the tests of a project may compile, by test and by function."""

    kind: Literal["jitcount budget"] = KIND
    schema: Literal[1, 2] = SCHEMA
    jax: str
    """The JAX release that all of it was made with; the earlier one, if only a part was."""

    tests: dict[str, Counts]
    operations: Sizes | msgspec.UnsetType = msgspec.UNSET
    """The operations of that release, with ``compile_budget_operations``."""

    @property
    def sizes(self) -> Sizes | None:
        """The operations; None where the budget holds none."""
        return None if self.operations is msgspec.UNSET else self.operations

    def surplus(self, test: str, found: Counts) -> Counts:
        """What a test compiled beyond its budget; a test that is not in it has none.

        >>> budget = Budget(jax="0.10.2", tests={"test_step": {"step": 1}})
        >>> budget.surplus("test_step", {"step": 3, "f": 1})
        {'step': 2, 'f': 1}
        """
        return dict(Counter(found) - Counter(self.tests.get(test, {})))

    def unused(self, test: str, found: Counts) -> Counts:
        """What a test compiled less often than it may."""
        return dict(Counter(self.tests.get(test, {})) - Counter(found))


def read_budget(path: Path) -> Budget:
    """Read a budget, strictly."""
    return read_whole(path, Budget, kind=KIND, schema=WITH_SIZES, oldest=SCHEMA)


def write_budget(
    path: Path, tests: Mapping[str, Counts], jax: str = "", sizes: Sizes | None = None
) -> None:
    """Write a budget, by default of this JAX; tests that compile nothing are left out."""
    require_replaceable(path, KIND)
    budget = Budget(jax=jax or _release(), tests=_sorted(tests))
    if sizes is not None and (held := _sorted(sizes.tests)):
        operations = Sizes(platform=sizes.platform, tests=held)
        budget = msgspec.structs.replace(budget, schema=WITH_SIZES, operations=operations)
    write_whole(path, msgspec.json.format(msgspec.json.encode(budget), indent=2) + b"\n")


def _sorted(tests: Mapping[str, Counts]) -> dict[str, Counts]:
    return {test: dict(sorted(counts.items())) for test, counts in sorted(tests.items()) if counts}


def _release() -> str:
    import jax  # noqa: PLC0415 (what only reads a budget must not wait for it)

    return jax.__version__


def largest(compiles: Iterable[Compile], *, with_eager: bool = True) -> dict[str, Compile]:
    """By function, the compile with the most operations; what came from disk does not count."""
    found: dict[str, Compile] = {}
    for compiled in compiles:
        if compiled.from_disk or not compiled.operations or (compiled.eager and not with_eager):
            continue
        other = found.get(compiled.function)
        if other is None or compiled.operations > other.operations:
            found[compiled.function] = compiled
    return found


# --- Changes --------------------------------------------------------------------------------------


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
    sizes_before: Sizes | None = None
    sizes_after: Sizes | None = None
    note: str = ""
    """What could not be changed, and why; empty if all could."""

    def __str__(self) -> str:
        """How many tests come, go and change."""
        changed = [(self.before.get(test, {}), self.after.get(test, {})) for test in self._tests()]
        return how_many_changed(changed)

    def lines(self) -> list[str]:
        """Each test whose counts or operations change, with what they were and what they are."""
        return [f"{test}: {'; '.join(self._changes_of(test))}" for test in self._tests()]

    def _changes_of(self, test: str) -> list[str]:
        before, after = self.before.get(test, {}), self.after.get(test, {})
        found = [] if before == after else [f"{counts_text(before)} → {counts_text(after)}"]
        if not after:  # with the test its operations go
            return found
        old, new = _of(self.sizes_before, test), _of(self.sizes_after, test)
        return found + [
            change_text(name, old.get(name, 0), new.get(name, 0))
            for name in sorted({*old, *new})
            if old.get(name, 0) != new.get(name, 0)
        ]

    def _tests(self) -> list[str]:
        return [
            test
            for test in sorted({*self.before, *self.after})
            if self.before.get(test, {}) != self.after.get(test, {})
            or _of(self.sizes_before, test) != _of(self.sizes_after, test)
        ]


def how_many_changed(changed: Sequence[tuple[object, object]]) -> str:
    """How many of what changed was added, dropped and changed, by what it was and is."""
    added = sum(not before for before, _ in changed)
    dropped = sum(not after for _, after in changed)
    return f"+{added} −{dropped} ~{len(changed) - added - dropped}"


def _of(sizes: Sizes | None, test: str) -> Counts:
    return {} if sizes is None else sizes.tests.get(test, {})


def update_budget(
    path: Path,
    measured: Mapping[str, Counts],
    is_gone: Callable[[str], bool],
    *,
    sizes: Sizes | None = None,
    is_written: bool = True,
) -> Change:
    """Put what a run has measured into a budget, and take out tests that no longer exist.

    What another run puts in meanwhile is not lost.

    Args:
        path: the budget's file; it is made if it does not exist.
        measured: by test, what it compiled, if it ran to its end.
        is_gone: whether a test of the budget no longer exists.
        sizes: the operations of these tests, if the budget is to hold them.
        is_written: False to return what would change, and write nothing.
    """
    if not is_written:
        return _merged(path, measured, is_gone, sizes)[0]
    with one_at_a_time(path):
        change, jax = _merged(path, measured, is_gone, sizes)
        write_budget(path, change.after, jax, change.sizes_after)
    return change


def _merged(
    path: Path,
    measured: Mapping[str, Counts],
    is_gone: Callable[[str], bool],
    sizes: Sizes | None,
) -> tuple[Change, str]:
    """What changes in a budget, and the release of JAX that it is of afterwards."""
    old = read_budget(path) if exists(path) else None
    before = old.tests if old is not None else {}
    others = {test: counts for test, counts in before.items() if test not in measured}
    kept = {test: counts for test, counts in others.items() if not is_gone(test)}
    after = kept | dict(measured)
    jax = old.jax if old is not None and kept else ""
    sizes_before = old.sizes if old is not None else None
    held, note = _merged_sizes(sizes_before, sizes, kept, jax)
    sizes_after = held and Sizes(platform=held.platform, tests=_of_tests(held.tests, after))
    return Change(before, after, sizes_before, sizes_after, note), jax


def _merged_sizes(
    old: Sizes | None, new: Sizes | None, kept: Mapping[str, Counts], jax: str
) -> tuple[Sizes | None, str]:
    """The operations of a changed budget, and a note if they had to stay as they were.

    All of them are of one release and one platform.

    Args:
        old: what the budget holds.
        new: what was measured, if that was asked for.
        kept: the tests that stay in the budget and were not measured.
        jax: the release that the budget stays one of; empty for this one.
    """
    if new is None or (old is not None and not new.platform):  # not asked for, or none compiled
        return old, ""
    rest = {} if old is None else {test: old.tests[test] for test in kept if test in old.tests}
    platform = old.platform if old is not None and rest else new.platform
    if (jax and jax != _release()) or platform != new.platform:
        of = f"JAX {jax or _release()} on {platform}"
        return old, f"the budget is of {of}: its operations stay as they are"
    return Sizes(platform=platform, tests=rest | new.tests), ""


def _of_tests(sizes: Mapping[str, Counts], tests: Mapping[str, Counts]) -> dict[str, Counts]:
    """The operations of what these tests compile, and of nothing else."""
    found = {
        test: {name: size for name, size in held.items() if name in tests.get(test, {})}
        for test, held in sizes.items()
    }
    return {test: held for test, held in found.items() if held}


# --- Counts and operations in words ---------------------------------------------------------------


def counts_text(counts: Mapping[str, int]) -> str:
    """Compile counts in a line.

    >>> counts_text({"sum": 2, "add": 1}), counts_text({})
    ('sum 2, add 1', 'nothing')
    """
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"


def change_text(name: str, before: int, after: int) -> str:
    """The operations of a function before and after a change; 0 is what is not known.

    >>> change_text("step", 2113, 8449), change_text("step", 0, 1), change_text("step", 1, 0)
    ('step 2,113 → 8,449 operations', 'step 1 operation', 'step no longer held')
    """
    if not after:
        return f"{name} no longer held"
    was = f"{before:,} → " if before else ""
    return f"{name} {was}{after:,} {'operation' if after == 1 else 'operations'}"
