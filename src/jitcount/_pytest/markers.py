"""The markers: what a test is held to, and whether it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from jitcount._pytest.failing import fail
from jitcount._pytest.plugin import log_of
from jitcount._pytest.tables import too_many

if TYPE_CHECKING:
    from jitcount._ledger.budget import Counts


def require_usable(item: pytest.Item) -> None:
    """Fail a test at once whose markers cannot be meant: they would hold it to nothing."""
    for marker in item.iter_markers("compiles"):
        _expected_counts(marker)
    for marker in item.iter_markers("max_compiles"):
        _limit(marker)
    for marker in item.iter_markers("no_compiles"):
        if marker.args or marker.kwargs:
            _refuse(marker, "takes nothing: max_compiles(3) allows some")


def check(item: pytest.Item) -> None:
    """Fail a test that compiled something else than its markers allow."""
    log = log_of(item)
    for marker in item.iter_markers("compiles"):
        expected = _expected_counts(marker)
        if log.counts() != expected:
            rule = f"{item.name} must compile exactly what its marker names"
            fail(item, rule, expected, log.compiles)
    for marker in item.iter_markers("max_compiles"):
        limit = _limit(marker)
        if log.count() > limit:
            rule = f"{item.name} may compile {limit} at most, and compiled {log.count()}"
            fail(item, rule, None, log.compiles, what=too_many(limit, log.compiles))
    if item.get_closest_marker("no_compiles") and log.count():
        rule = f"{item.name} must compile nothing, and compiled {log.count()}"
        advice = "call it once in a fixture, before the test"
        fail(item, rule, {}, log.compiles, for_first_calls=advice)


def _expected_counts(marker: pytest.Mark) -> Counts:
    counts = marker.kwargs
    if marker.args or not counts or not all(map(_is_count, counts.values())):
        _refuse(marker, "takes counts by function, as in compiles(step=2, add=1)")
    return {name: count for name, count in counts.items() if count}


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
