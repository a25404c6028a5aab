"""What a comparison of ledgers shows: the differences, the ledgers, then each case in each."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._ledger import comparison as states
from jitcount._ledger.comparison import ChangeKind, some
from jitcount._show.parts import (
    Cell,
    Count,
    Figure,
    Heading,
    Note,
    Part,
    Ratio,
    Row,
    Share,
    Table,
    Tone,
    Toned,
    Ulps,
    figures,
    long_words,
    words,
)
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._ledger.comparison import Change, Comparison, Totals

_LEGEND = (
    "= the first ledger's bits   ≈ within the bounds, so many ulps away   ✗ a difference",
    "– unsupported there   × seconds of compiles against the first ledger's, never judged",
)
_MOST_GROWTHS = 10
_MOST_CHANGES = 10

_LEGEND_OF_MISCOMPILES = "! wrong, by a known miscompile of that release"
_LEGEND_OF_UNJUDGED = "? other numbers, where no tolerance exists: not judged"
_LEGEND_OF_DTYPES = "int64 and the like: the first ledger's numbers, but of that dtype"


def comparison_tables(compared: Comparison) -> list[Part]:
    """All that a comparison of ledgers found, the differences first."""
    if not compared.has_results:
        return _of_programs(compared)
    tone = Tone.DIFFERENT if compared.differences else Tone.STRONG
    parts: list[Part] = [Heading(_headline(compared), tone)]
    of_tests = {(each.case, each.ledger, str(each)) for each in compared.program_changes}
    parts += [
        Note(str(found), depth=1, tone=Tone.DIFFERENT)
        for found in compared.differences
        if (found.case, found.ledger, found.text) not in of_tests
    ]
    parts += _by_ledger(compared)
    parts += [
        Note(f"{row.case}: {remark}", depth=1) for row in compared.rows for remark in row.remarks
    ]
    parts.append(_ledgers(compared))
    known = _known_miscompiles(compared)
    parts += known
    parts += [Note(str(prediction)) for prediction in compared.predictions]
    parts += _changed(compared)
    parts += _growths(compared)
    if any(cell.figures for row in compared.rows for cell in row.cells):
        parts.append(_figures(compared))
    legend = list(_LEGEND)
    if known:
        legend.append(_LEGEND_OF_MISCOMPILES)
    if _has_other_dtypes(compared):
        legend.append(_LEGEND_OF_DTYPES)
    if any(cell.state == states.UNJUDGED for row in compared.rows for cell in row.cells):
        legend.append(_LEGEND_OF_UNJUDGED)
    return [*parts, _matrix(compared), *map(Note, legend)]


# --- Ledgers without results ----------------------------------------------------------------------


def _of_programs(compared: Comparison) -> list[Part]:
    """What changed between the programs of runs: what counts first, then what is only said."""
    tone = Tone.DIFFERENT if compared.differences else Tone.STRONG
    made = ", ".join(f"{name}: {_made(totals)}" for name, totals in compared.totals.items())
    parts: list[Part] = [
        Heading(f"{plural(len(compared.differences), 'difference')}; {made}", tone)
    ]
    parts += _by_ledger(compared)
    wheres = dict.fromkeys(compared.where.values())
    if len(wheres) == 1:
        return [*parts, Note(f"all on {next(iter(wheres))}", tone=Tone.FAINT)]
    return [*parts, Table(words("ledger") + long_words("where"), list(compared.where.items()))]


def _by_ledger(compared: Comparison) -> list[Part]:
    """What changed between the programs of each ledger and the next, and what was not compared."""
    parts: list[Part] = []
    several = len(compared.names) > _PAIR
    for before, after in itertools.pairwise(compared.names):
        of_it = [each for each in compared.program_changes if each.ledger == after]
        if several and of_it:
            parts.append(Heading(f"{after} against {before}"))
        parts += changes_of(of_it)
    grown = [each for each in compared.program_changes if each.kind is ChangeKind.OPERATIONS]
    if not all(change.has_profile for change in grown):
        parts.append(Note("→ jitcount run --profile --ledger FILE keeps the line inside of it", 1))
    return [*parts, *map(Note, compared.notes)]


def changes_of(changed: Sequence[Change]) -> list[Part]:
    """What changed: what counts first, then what is only said."""
    parts: list[Part] = [
        *_changes([each for each in changed if each.is_difference], Tone.DIFFERENT)
    ]
    if said := [each for each in changed if not each.is_difference]:
        parts += [Heading(_NOT_COUNTED), *_changes(said, Tone.PLAIN)]
    return parts


_PAIR = 2
_WITH_CAUSES = {
    ChangeKind.APPEARED,
    ChangeKind.CAUSES,
    ChangeKind.COMPILES,
    ChangeKind.GONE,
}
_NOT_COUNTED = "Also changed, and no difference"


def _made(totals: Totals) -> str:
    hits = f" and {plural(totals.disk_hits, 'disk hit')}" if totals.disk_hits else ""
    return f"{plural(totals.compiles, 'compile')}{hits} in {seconds(totals.seconds)}"


def _changes(changes: Sequence[Change], tone: Tone) -> list[Note]:
    """A line for each change, below it why; the same in many cases once, and many of a kind cut."""
    cases: dict[Change, list[str]] = {}
    for change in changes:
        cases.setdefault(replace(change, case=""), []).append(change.case)
    notes: list[Note] = []
    for _, of_kind in itertools.groupby(cases, key=lambda change: change.kind):
        every = list(of_kind)
        for change in every[:_MOST_CHANGES]:
            notes.append(Note(f"{change}{_in_tests(cases[change])}", depth=1, tone=tone))
            if change.kind in _WITH_CAUSES:
                was = "no more: " if 0 < change.after < change.before else ""
                notes += [Note(f"{was}{text}", depth=2) for text in change.why]
        if more := len(every) - _MOST_CHANGES:
            notes += [Note(f"and {more} more of these", depth=1)] if more > 0 else []
    return notes


def _in_tests(cases: Sequence[str]) -> str:
    """Which tests a change is of; nothing for the one script of a run."""
    first, *others = cases
    if "::" not in first:
        return ""
    return f" (in {first} and {len(others)} more)" if others else f" (in {first})"


# --- Ledgers with results -------------------------------------------------------------------------


def _known_miscompiles(compared: Comparison) -> list[Part]:
    """The cases that a known miscompile makes wrong in some ledgers, and how they are in each."""
    rows: list[Row] = []
    for row in compared.rows:
        references = dict.fromkeys(cell.reference for cell in row.cells if cell.reference)
        if references:
            cells = [_KNOWN_STANDINGS.get(cell.state, "right") for cell in row.cells]
            rows.append((", ".join(references), row.case, *cells))
    return [Table(words("miscompile", "case", *compared.names), rows)] if rows else []


_KNOWN_STANDINGS: dict[str, Cell] = {
    states.KNOWN_WRONG: "wrong",
    states.WRONG: Toned("✗", Tone.DIFFERENT),
    states.UNSUPPORTED: "–",
    states.MISSING: "missing",
}


def _growths(compared: Comparison) -> list[Part]:
    if not compared.growths:
        return []
    shown = compared.growths[:_MOST_GROWTHS]
    more = len(compared.growths) - len(shown)
    rest = [Note(f"and {plural(more, 'other program')}", depth=1)] if more else []
    heading = "Programs with other operations than in the ledger before"
    return [Heading(heading), *(Note(str(each), depth=1) for each in shown), *rest]


def _headline(compared: Comparison) -> str:
    what = f"{plural(len(compared.rows), 'case')} in {plural(len(compared.names), 'ledger')}"
    return f"{plural(len(compared.differences), 'difference')} in {what}"


def _ledgers(compared: Comparison) -> Table:
    rows: list[Row] = []
    has_dtypes = _has_other_dtypes(compared)
    for number, (name, where) in enumerate(compared.where.items()):
        same, near, median = compared.changes(number)
        dtypes = [Count(compared.count(number, states.OTHER_DTYPE))] if has_dtypes else []
        rows.append((name, where, Count(same), *dtypes, Count(near), Ratio(median)))
    dtype = ["other dtype"] if has_dtypes else []
    heads = figures("same bits", *dtype, "within bounds", "compile time")
    return Table(words("ledger") + long_words("where") + heads, rows)


def _has_other_dtypes(compared: Comparison) -> bool:
    numbers = range(len(compared.names))
    return any(compared.count(number, states.OTHER_DTYPE) for number in numbers)


def _changed(compared: Comparison) -> list[Part]:
    parts: list[Part] = [Heading("Results with other bits than in the ledger before:")]
    for name, cases in compared.changed.items():
        parts.append(Note(f"{name}: {some(cases) or 'none'}", depth=1))
    return parts


def _matrix(compared: Comparison) -> Table:
    """A table with a row for each case that several ledgers have."""
    shown = [r for r in compared.rows if sum(c.state != states.MISSING for c in r.cells) > 1]
    left_out = ""
    if alone := len(compared.rows) - len(shown):
        left_out = f"… and {plural(alone, 'case')} in one ledger only"
    rows = [(row.case, Share(row.share), *map(_standing, row.cells)) for row in shown]
    return Table(words("case", "bound used", *compared.names), rows, left_out)


def _figures(compared: Comparison) -> Table:
    """A table of benchmarks: calls that compile nothing, as ratios to the first ledger's time."""
    rows: list[Row] = []
    for row in compared.rows:
        ratios = [(cell.figures or {}).get("cached_s") for cell in row.cells]
        if any(ratios):
            rows.append((row.case, *map(Ratio, ratios)))
    return Table(words("cached call of", *compared.names), rows)


_MARKS = {
    states.SAME: "=",
    states.NEAR: "≈",
    states.WRONG: "✗",
    states.UNSUPPORTED: "–",
    states.KNOWN_WRONG: "!",
    states.UNJUDGED: "?",
}


def _standing(cell: states.Cell) -> Cell:
    mark = cell.dtype if cell.state == states.OTHER_DTYPE else cell.state
    standing: list[str | Figure] = [_MARKS.get(cell.state, mark)]
    if cell.state == states.NEAR:
        standing.append(Ulps(cell.ulps))
    if cell.compile_ratio is not None:
        standing.append(Ratio(cell.compile_ratio, digits=1))
    if cell.state in {states.WRONG, states.MISSING}:
        return Toned(tuple(standing), Tone.DIFFERENT)
    return tuple(standing)
