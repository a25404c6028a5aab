"""What ``--compiles`` shows at the end of a run: what to fix, and where most is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._explain.fix import CACHE_SETTINGS
from jitcount._explain.fixes import fixes
from jitcount._pytest.outside_calls import COLLECTING, collected_in, fixture_of
from jitcount._show.log_table import fix_notes
from jitcount._show.next_steps import CACHED_FROM_S
from jitcount._show.parts import (
    Count,
    Heading,
    Note,
    Part,
    Row,
    Seconds,
    Table,
    Tone,
    figures,
    long_words,
    toned,
    words,
)
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._observe.call_site import CallSite

_MOST_TESTS = 3


@dataclass(frozen=True, kw_only=True)
class Suite:
    """All that a run has compiled."""

    tests: Mapping[str, Sequence[Compile]]
    """By test, what was compiled in its call."""

    outside: Mapping[str, Sequence[Compile]]
    """By place, what was compiled outside of these."""

    run_s: float
    """How many seconds the run took."""

    workers: int = 0
    """How many workers of pytest-xdist ran tests; 0 without it."""

    collecting: int = 1
    """How many processes have compiled something while they collected."""

    @property
    def compiles(self) -> list[Compile]:
        """All of it."""
        every = (*self.tests.values(), *self.outside.values())
        return [compiled for found in every for compiled in found]


def suite_report(suite: Suite, most: int) -> list[Part]:
    """What a run has compiled: a sentence, what to fix, then where it was compiled.

    Args:
        suite: what was compiled.
        most: how many fixes, tests and fixtures are shown.
    """
    return [
        Heading(_headline(suite)),
        *_fixes(suite, most),
        *_expensive_tests(suite, most),
        *_places(suite, most),
    ]


def _headline(suite: Suite) -> str:
    every = suite.compiles
    with_some = sum(bool(_made(found)) for found in suite.tests.values())
    tests = f"{with_some} of {plural(len(suite.tests), 'test')} compile{_s(with_some)}"
    if not every:
        return f"nothing was compiled in {plural(len(suite.tests), 'test')}"
    made = len(_made(every))
    also = f" and {plural(len(every) - made, 'disk hit')}" if made < len(every) else ""
    took = f"{plural(made, 'compile')}{also} took {seconds(_seconds(every))}"
    run = seconds(suite.run_s)
    of = f"of the run's {run}"
    if suite.workers:
        of = f"in {plural(suite.workers, 'worker')}, and the run {run}"
    return f"{took} {of}; {tests}"


# --- What to fix ----------------------------------------------------------------------------------


def _fixes(suite: Suite, most: int) -> list[Part]:
    """What to fix, by what it saves over the whole suite, with the tests that it happens in."""
    # As in the other tables: workers compile at the same time, and none of them waits.
    found = fixes(suite.compiles, _seconds)
    if not found:
        return []
    where = {
        compiled: name
        for places in (suite.tests, suite.outside)
        for name, compiles in places.items()
        for compiled in compiles
    }
    parts: list[Part] = [Heading("What to fix, by what it saves over the whole suite")]
    for number, fix in enumerate(found[:most], 1):
        tests: dict[str, list[Compile]] = {}
        for compiled in fix.compiles:
            tests.setdefault(where.get(compiled, ""), []).append(compiled)
        parts += fix_notes(number, fix, _in_tests(tests, fix.call_site))
    if rest := found[most:]:
        fewer = seconds(sum(fix.seconds for fix in rest))
        parts.append(Note(f"and {len(rest)} more, {fewer} together", depth=1))
    return parts


def _in_tests(found: Mapping[str, Sequence[Compile]], call_site: CallSite) -> str:
    """The tests and fixtures that something happens in, the most expensive first."""
    costs = [
        (_seconds(compiles), _short(test, cases, call_site))
        for test, cases, compiles in _by_function(found)
    ]
    costs.sort(key=lambda cost: -cost[0])
    shown = [f"{name} ({seconds(cost)})" for cost, name in costs[:_MOST_TESTS] if name]
    if (more := len(costs) - _MOST_TESTS) > 0:
        shown.append(f"and {more} more")
    return ", ".join(shown)


def _by_function(
    found: Mapping[str, Sequence[Compile]],
) -> list[tuple[str, int, list[Compile]]]:
    """Tests, the cases of a parametrized one together: its name, how many cases, the compiles."""
    groups: dict[str, dict[str, Sequence[Compile]]] = {}
    for test, compiles in found.items():
        groups.setdefault(test.partition("[")[0], {})[test] = compiles
    return [
        (
            next(iter(cases)) if len(cases) == 1 else name,
            len(cases),
            [compiled for compiles in cases.values() for compiled in compiles],
        )
        for name, cases in groups.items()
    ]


def _short(test: str, cases: int, call_site: CallSite) -> str:
    """A test without its file, where the line is in the same file; how many cases it has."""
    if _is_in(call_site, test):
        test = f"in {test.partition('::')[2]}"
    elif not test.startswith(("in ", "while ")):  # what is outside of tests is a phrase by itself
        test = f"in {test}"
    return f"{test} ×{cases}" if cases > 1 else test


# --- Where it was compiled ------------------------------------------------------------------------


def _expensive_tests(suite: Suite, most: int) -> list[Part]:
    """The tests that compile most, and the line that most of it comes from."""
    every = [
        (_seconds(compiles), test, cases, compiles)
        for test, cases, compiles in _by_function(suite.tests)
        if compiles
    ]
    every.sort(key=lambda test: -test[0])
    if not every:
        return []
    rows = [
        (
            Seconds(cost),
            Count(len(_made(compiles))),
            f"{test} ×{cases}" if cases > 1 else test,
            _most_at(test, compiles),
        )
        for cost, test, cases, compiles in every[:most]
    ]
    left_out = ""
    if rest := every[most:]:
        left_out = f"… and {len(rest)} cheaper ones, {seconds(sum(cost for cost, *_ in rest))}"
        left_out += " together"
    columns = figures("time", "compiles") + long_words("test", "most of it at")
    return [Heading("The most expensive tests"), Table(columns, rows, left_out)]


def _most_at(test: str, compiles: Sequence[Compile]) -> str:
    """The line that most of a test's compiles come from, in time."""
    lines: dict[CallSite, float] = {}
    for compiled in compiles:
        lines[compiled.call_site] = lines.get(compiled.call_site, 0) + compiled.total_s
    line = max(lines, key=lambda line: lines[line])
    shown = f"line {line.line}" if _is_in(line, test) else line
    return shown if len(lines) == 1 else f"{shown} ({seconds(lines[line])})"


def _is_in(line: CallSite, test: str) -> bool:
    """Whether a line is in the file of a test."""
    file, is_test, _ = test.partition("::")
    return bool(is_test) and Path(line.file).as_posix().endswith(f"/{file}")


def _places(suite: Suite, most: int) -> list[Part]:
    """How much was compiled in tests, while collecting, in fixtures; their sum is JAX's own."""
    if not suite.outside:
        return []
    in_tests = [compiled for found in suite.tests.values() for compiled in found]
    processes = f", in {suite.collecting} processes" if suite.collecting > 1 else ""
    collected = _named(suite.outside, collected_in)
    fixtures = _named(suite.outside, fixture_of)
    rows = [
        _row(f"in {plural(len(suite.tests), 'test')}", in_tests),
        *_sum_and_parts(f"{COLLECTING}{processes}", collected, most),
        *_sum_and_parts("in fixtures", fixtures, most),
    ]
    outside = {
        place: found
        for place, found in suite.outside.items()
        if not collected_in(place) and not fixture_of(place)
    }
    rows += [_row(place, found) for place, found in outside.items()]
    rows.append(toned(_row("all that JAX compiled", suite.compiles), Tone.STRONG))
    return [Table(words("where") + figures("compiles", "time"), rows)]


def _named(
    outside: Mapping[str, Sequence[Compile]], name_of: Callable[[str], str]
) -> dict[str, Sequence[Compile]]:
    return {name: found for place, found in outside.items() if (name := name_of(place))}


def _sum_and_parts(name: str, parts: Mapping[str, Sequence[Compile]], most: int) -> list[Row]:
    """A row with a sum, and below it the most expensive of its parts."""
    if not parts:
        return []
    ranked = sorted(parts.items(), key=lambda part: -_seconds(part[1]))
    rows = [
        _row(name, [compiled for found in parts.values() for compiled in found]),
        *(_row(f"  {part}", found) for part, found in ranked[:most]),
    ]
    if rest := ranked[most:]:
        rows.append(_row(f"  {len(rest)} more", [each for _, found in rest for each in found]))
    return rows


def _row(where: str, compiles: Sequence[Compile]) -> Row:
    return where, Count(len(_made(compiles))), Seconds(_seconds(compiles))


def _made(compiles: Sequence[Compile]) -> list[Compile]:
    return [compiled for compiled in compiles if not compiled.from_disk]


def _seconds(compiles: Iterable[Compile]) -> float:
    return sum(compiled.total_s for compiled in compiles)


def _s(number: int) -> str:
    """The end of a verb."""
    return "s" if number == 1 else ""


# --- What was compiled again ----------------------------------------------------------------------


def duplicate_compiles(compiles: Iterable[Compile], *, are_cleared: bool = False) -> list[Part]:
    """How long programs took that a run had compiled before, and what would spare that.

    Args:
        compiles: all of the run, from whichever process.
        are_cleared: whether JAX's caches were cleared for some tests, which is then said.
    """
    made = [compiled for compiled in compiles if not compiled.from_disk]
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in sorted(made, key=lambda compiled: compiled.started_at):
        if compiled.fingerprint:
            groups.setdefault((compiled.platform, compiled.fingerprint), []).append(compiled)
    again = [compiled for group in groups.values() for compiled in group[1:]]
    if not again:
        return []
    cached = [group[1:] for group in groups.values() if group[0].compile_s >= CACHED_FROM_S]
    by_default = seconds(sum(compiled.compile_s for group in cached for compiled in group))
    served = seconds(sum(compiled.compile_s for compiled in again))
    spent = seconds(sum(compiled.total_s for compiled in again))
    are = "is" if len(again) == 1 else "are"
    compiled_before = f"{are} of a program that this run had compiled before: {spent}"
    lines = [
        f"a persistent cache would have served {served} of it: {CACHE_SETTINGS}",
        f"without the second, what compiles in less than 1 s is not kept: {by_default} of it",
    ]
    if are_cleared:
        why = "tests that hold a count begin with cleared caches"
        lines.append(f"{why}: --compile-isolation=none leaves them")
    head = Note(f"{len(again)} of {plural(len(made), 'compile')} {compiled_before}")
    return [head, *(Note(line, depth=1) for line in lines)]
