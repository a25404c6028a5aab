"""The committed budget: how often each test may compile each function.

A small file, sorted, one line a function, made to be read in a diff.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax

from jitcount.ledger.files import FileError, read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KIND = "jitcount budget"
SCHEMA = 1

Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Budget:
    """What the tests of a project may compile, by test and by function."""

    jax: str
    """The JAX release that it was made with."""

    tests: Mapping[str, Counts]

    def surplus(self, test: str, found: Counts) -> Counts:
        """What a test compiled beyond its budget; a test that is not in it has none.

        >>> Budget("0.10.2", {"test_step": {"step": 1}}).surplus("test_step", {"step": 3, "f": 1})
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
    content = read_json(path, kind=KIND, schema=SCHEMA)
    tests = content.get("tests")
    if not isinstance(tests, dict) or not all(map(_are_counts, tests.values())):
        raise FileError(f"{path}: its tests are not counts by function")
    return Budget(str(content.get("jax", "unknown")), tests)


def write_budget(path: Path, tests: Mapping[str, Counts]) -> None:
    """Write a budget; tests that compile nothing are left out."""
    content = {
        "kind": KIND,
        "schema": SCHEMA,
        "jax": jax.__version__,
        "tests": {test: dict(sorted(c.items())) for test, c in sorted(tests.items()) if c},
    }
    write_json(path, content)


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(count, int) and not isinstance(count, bool) and count >= 0
        for count in value.values()
    )
