"""The committed budget: how often each test may compile each function.

A small file, sorted, one line a function, made to be read in a diff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount.ledger import kinds
from jitcount.ledger.files import read_whole, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KIND: Final = kinds.BUDGET
SCHEMA: Final = 1

Counts = dict[str, Annotated[int, msgspec.Meta(ge=0)]]


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the tests of a project may compile, by test and by function."""

    kind: Literal["jitcount budget"] = KIND
    schema: Literal[1] = SCHEMA
    jax: str
    """The JAX release that it was made with."""

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


def write_budget(path: Path, tests: Mapping[str, Counts]) -> None:
    """Write a budget; tests that compile nothing are left out."""
    import jax  # noqa: PLC0415 (what reads one must not wait for it)

    kept = {test: dict(sorted(counts.items())) for test, counts in sorted(tests.items()) if counts}
    budget = Budget(jax=jax.__version__, tests=kept)
    write_whole(path, msgspec.json.format(msgspec.json.encode(budget), indent=2) + b"\n")
