"""How many operations the programs of a test have: the same in every run, so a budget may hold it.

Another release of JAX, or another platform, lowers the same program to other operations: what is
held is of one of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jitcount.explain.compile import Compile

Operations = dict[str, Annotated[int, msgspec.Meta(ge=0)]]
"""By function, those of its largest program."""


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """By test, how many operations the largest program of each function has."""

    platform: str
    tests: dict[str, Operations]

    def grown(self, test: str, found: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Of a test, the functions whose program is larger now: what it had, and what it has.

        >>> Sizes(platform="cpu", tests={"test": {"step": 3}}).grown("test", {"step": 5, "new": 1})
        {'step': (3, 5)}
        """
        return {
            name: (before, now) for name, before, now in self._both(test, found) if now > before
        }

    def shrunk(self, test: str, found: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """The same, of those that are smaller."""
        return {
            name: (before, now) for name, before, now in self._both(test, found) if now < before
        }

    def _both(self, test: str, found: Mapping[str, int]) -> list[tuple[str, int, int]]:
        held = self.tests.get(test, {})
        return [(name, held[name], now) for name, now in found.items() if name in held]


def largest(compiles: Iterable[Compile], *, with_eager: bool = True) -> dict[str, Compile]:
    """By function, the compile with the most operations; what came from disk is none."""
    found: dict[str, Compile] = {}
    for compiled in compiles:
        if compiled.from_disk or not compiled.operations or (compiled.eager and not with_eager):
            continue
        other = found.get(compiled.function)
        if other is None or compiled.operations > other.operations:
            found[compiled.function] = compiled
    return found


def change_text(name: str, before: int, after: int) -> str:
    """One function, before and after; 0 is what is not known.

    >>> change_text("step", 2113, 8449), change_text("step", 0, 1), change_text("step", 1, 0)
    ('step 2,113 → 8,449 operations', 'step 1 operation', 'step no longer held')
    """
    if not after:
        return f"{name} no longer held"
    operations = "operation" if after == 1 else "operations"
    return (
        f"{name} {before:,} → {after:,} {operations}"
        if before
        else f"{name} {after:,} {operations}"
    )
