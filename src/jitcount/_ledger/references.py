"""The committed references of a project: what the results of its tests must be.

One file, sorted, written whole and merged by one process at a time, as a budget is. Of a result
whose tolerance was derived it holds the reference in double precision and the tolerance, which no
machine's rounding is in; of any other the result itself, and the bound that was declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from jitcount._ledger import files
from jitcount._ledger.budget import how_many_changed
from jitcount._ledger.files import (
    exists,
    one_at_a_time,
    read_whole,
    require_replaceable,
    write_whole,
)
from jitcount._numerics.expected import Expected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KIND: Final = files.REFERENCES
SCHEMA: Final = 1

OfTest = dict[str, dict[str, Expected]]
"""What a test must return: by the name of the call, and by the place in its result."""


class References(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the results of a project's tests must be, by test."""

    kind: Literal["jitcount reference file"] = KIND
    schema: int = SCHEMA
    tests: dict[str, OfTest]


def read_references(path: Path) -> References:
    """Read references, strictly; none, where there is no file."""
    if not exists(path):
        return References(tests={})
    return read_whole(path, References, kind=KIND, schema=SCHEMA)


def update_references(
    path: Path, measured: Mapping[str, OfTest], is_gone: Callable[[str], bool]
) -> str:
    """Put what a run has measured into a file, and take out tests that no longer exist.

    What another run puts in meanwhile is not lost.

    Args:
        path: the file; it is made if it does not exist.
        measured: by test, what it returned, if it passed.
        is_gone: whether a test of the file no longer exists.

    Returns:
        How many tests were added, dropped and changed.
    """
    measured = {test: _without_reasons(found) for test, found in measured.items()}
    with one_at_a_time(path):
        require_replaceable(path, KIND)
        before = read_references(path).tests
        kept = {
            test: old for test, old in before.items() if test not in measured and not is_gone(test)
        }
        after = {test: new for test, new in sorted((kept | dict(measured)).items()) if new}
        if after or exists(path):
            write_whole(path, _in_lines(after))
    both = [(before.get(test, {}), after.get(test, {})) for test in {*before, *after}]
    return how_many_changed([pair for pair in both if pair[0] != pair[1]])


def _without_reasons(found: OfTest) -> OfTest:
    """Expectations without why nothing was derived: that names lines, which move."""
    return {
        call: {place: msgspec.structs.replace(each, why="") for place, each in of_call.items()}
        for call, of_call in found.items()
    }


def _in_lines(tests: Mapping[str, OfTest]) -> bytes:
    """The file, with a line for each result: it is read in a diff."""

    def block(depth: int, items: Mapping[str, str]) -> str:
        inside = ",\n".join(f"{' ' * depth}{_json(key)}: {text}" for key, text in items.items())
        return f"{{\n{inside}\n{' ' * (depth - 1)}}}"

    held = {
        test: block(3, {call: block(4, _each(places)) for call, places in found.items()})
        for test, found in tests.items()
    }
    whole = {"kind": _json(KIND), "schema": _json(SCHEMA), "tests": block(2, held)}
    return f"{block(1, whole)}\n".encode()


def _each(places: Mapping[str, Expected]) -> dict[str, str]:
    return {place: _json(expected) for place, expected in places.items()}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
