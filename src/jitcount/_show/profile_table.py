"""Tables of where compile time goes: each program by line, then the whole run by line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jitcount._hlo.locations import UNDER_VMAP
from jitcount._profile.result import over_all
from jitcount._show.parts import (
    Cell,
    Count,
    Heading,
    Note,
    Part,
    Row,
    Seconds,
    Table,
    figures,
    long_words,
    words,
)
from jitcount._show.text import plural, seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._loops.result import AsScan, Loop, Measured
    from jitcount._profile.result import Line, Profile

_MOST_PROGRAMS = 5
_MOST_LINES = 10
_MOST_CONSTANTS = 3
_MOST_PARTS = 3

# A part of a line is worth a row if it is more than this share of what was measured of the line.
_WORTH_A_ROW = 0.1

ESTIMATE = "estimated: lowering, XLA's passes and what else names no line, shared out by operations"


def profile_tables(compiles: Sequence[Compile]) -> list[Part]:
    """The most expensive programs, each by line, then all together; nothing without a profile."""
    found = [compiled for compiled in compiles if compiled.profile is not None]
    if not found:
        return []
    ranked = _alike(found)
    parts: list[Part] = []
    for compiled, *cheaper in ranked[:_MOST_PROGRAMS]:
        parts += _program(compiled)
        parts += _others(cheaper)
    if len(found) > 1:
        if rest := [compiled for group in ranked[_MOST_PROGRAMS:] for compiled in group]:
            parts.append(Note(f"… and {plural(len(rest), 'cheaper program')}, {_together(rest)}"))
        lines = [line for compiled in found for line in compiled.lines]
        parts.append(Heading(f"What took longest over all {plural(len(found), 'compile')}"))
        parts.append(_table(over_all(lines), {}, "line"))
    if any(isinstance(part, Table) for part in parts):
        parts.append(Note(ESTIMATE))
    return parts


def _alike(compiles: Sequence[Compile]) -> list[list[Compile]]:
    """The compiles by function and lines, apart from their shapes; the most expensive first."""
    found: dict[object, list[Compile]] = {}
    for compiled in sorted(compiles, key=lambda compiled: -compiled.total_s):
        lines = frozenset((line.file, line.line) for line in compiled.lines if line.operations)
        found.setdefault((compiled.function, lines), []).append(compiled)
    return list(found.values())


def _others(cheaper: Sequence[Compile]) -> list[Note]:
    """Notes on the cheaper compiles of the same function and lines."""
    if not cheaper:
        return []
    more = f"compiled {plural(len(cheaper), 'more time')} from the same lines"
    notes = Counter(
        note for compiled in cheaper if compiled.profile for note in compiled.profile.notes
    )
    return [
        Note(f"{more}, {_together(cheaper)}", depth=1),
        *(Note(f"of {count} of these: {note}", depth=2) for note, count in notes.items()),
    ]


def _together(compiles: Sequence[Compile]) -> str:
    return f"{seconds(sum(compiled.total_s for compiled in compiles))} together"


def _program(compiled: Compile) -> list[Part]:
    profile = compiled.profile
    if profile is None:
        return []
    phases = ", ".join(f"{phase.name} {seconds(phase.seconds)}" for phase in profile.phases)
    on = {name: found for name, found in compiled.on.items() if found.profile is not None}
    targets = "".join(f"; on {name} {seconds(each.compile_s)}" for name, each in on.items())
    heading = f"{compiled.function}: {seconds(compiled.total_s)} ({phases}){targets}"
    if (alone := _only_line(profile)) is not None and not on:
        return [Heading(f"{heading}, all of it at {alone.call_site}")]
    by_target = {
        name: {(line.file, line.line): line for line in each.lines} for name, each in on.items()
    }
    notes = [*_findings(profile), *(Note(note, depth=1) for note in profile.notes)]
    for name, each in on.items():
        notes += [
            Note(f"{name}: {note}", depth=1) for note in (each.profile and each.profile.notes) or ()
        ]
    passes = [part for phase in profile.phases for part in phase.inside]
    if passes:
        longest = ", ".join(f"{part.name} {seconds(part.seconds)}" for part in passes)
        notes.append(Note(f"the longest passes: {longest}", depth=1))
    table = _table(profile.lines, by_target, "where the time goes")
    return [Heading(heading), table, *notes]


def _only_line(profile: Profile) -> Line | None:
    """The line of a program that has only one, and nothing else to say: it needs no table."""
    users = [line for line in profile.lines if line.is_attributed]
    says_more = profile.loops or profile.constants or profile.notes
    return users[0] if len(users) == 1 and not (says_more or users[0].inside) else None


Lines = dict[tuple[str, int], "Line"]


def _table(lines: Sequence[Line], by_target: dict[str, Lines], name: str) -> Table:
    users = [line for line in lines if line.is_attributed]
    shown = users[:_MOST_LINES]
    rows: list[Row] = []
    for line in shown:
        rows.append(_row(line, f"{line.call_site}", by_target))
        worth_it = [part for part in line.inside if _is_worth_a_row(part, line)]
        for part in worth_it[:_MOST_PARTS]:
            name_of_part = part.part.partition(" in ")[0]  # a library's line is long enough
            rows.append(_row(part, f"  {name_of_part}", {}, 2 * len(by_target)))
    rows += [_row(line, str(line.call_site), by_target) for line in lines if not line.is_attributed]
    left_out = ""
    if more := users[_MOST_LINES:]:
        rest = seconds(sum(line.total_s for line in more))
        left_out = f"… and {plural(len(more), 'cheaper line')}, {rest} together"
    there = [column for target in by_target for column in (target, "estimated")]
    names = ("trace", "XLA", "estimated", *there, "operations")
    return Table(words(name) + long_words("calls") + figures(*names), rows, left_out)


def _is_worth_a_row(part: Line, line: Line) -> bool:
    """Whether a part says more than its line; that all of the line is under `vmap` does not."""
    measured = line.trace_s + line.compile_s
    if part.part == UNDER_VMAP and part.total_s > (1 - _WORTH_A_ROW) * measured:
        return False
    return _WORTH_A_ROW * measured < part.total_s < line.total_s


def _row(line: Line, name: str, by_target: dict[str, Lines], empty: int = 0) -> Row:
    there: list[Cell] = []
    for lines in by_target.values():
        found = lines.get((line.file, line.line))
        measured, estimate = (found.compile_s, found.share_s) if found is not None else (0.0, 0.0)
        there += [_spent(measured), _spent(estimate)]
    cells: list[Cell] = [_spent(line.trace_s), _spent(line.compile_s), _spent(line.share_s)]
    count: Cell = Count(line.operations) if line.operations else ""
    return (name, line.calls, *cells, *there, *[""] * empty, count)


def _spent(value: float) -> Seconds:
    """Seconds as a cell; empty for none, or for what rounding has left of none."""
    return Seconds(value if value > 1e-9 else None)


def _findings(profile: Profile) -> list[Note]:
    """Notes on what stands out: unrolled loops, large constants."""
    found = list(loop_notes(profile))
    for each in profile.constants[:_MOST_CONSTANTS]:
        what = (
            f"a constant inside the program: {each.type}, {size(each.bytes)}, at {each.call_site}"
        )
        found.append(Note(f"{what}; pass it as an argument", depth=1))
    if (more := len(profile.constants) - _MOST_CONSTANTS) > 0:
        found.append(Note(f"and {plural(more, 'more large constant')}", depth=1))
    return found


# --- Unrolled loops, and what each would cost as a scan -------------------------------------------

# Times that differ by less than this share are the same.
_APART = 0.1

# Said where the compiler of this machine, the only one whose programs are run, failed.
NOT_COMPARED = "its results were not compared"


def loops_table(compiles: Sequence[Compile]) -> list[Part]:
    """The unrolled loops of all programs, each program once."""
    parts: list[Part] = [Heading("Unrolled loops")]
    seen = set()
    for compiled in compiles:
        if compiled.loops and (compiled.call, compiled.loops) not in seen:
            seen.add((compiled.call, compiled.loops))
            parts.append(Note(compiled.function))
            parts += loop_notes(compiled.profile) if compiled.profile is not None else ()
    return parts if seen else [*parts, Note("none was found")]


def loop_notes(profile: Profile) -> Iterator[Note]:
    """Notes on a program's loops, and what each and all of them would cost as scans."""
    for loop in profile.loops:
        yield Note(loop_sentence(loop), depth=1)
        if loop.as_scan is not None:
            yield from (Note(sentence, depth=2) for sentence in scan_sentences(loop.as_scan))
    if (together := profile.as_scans) is not None:
        first, *others = scan_sentences(together)
        yield Note(f"all {together.loops} loops {first}", depth=1)
        yield from (Note(sentence, depth=2) for sentence in others)


def loop_sentence(loop: Loop) -> str:
    """A sentence that says which loop was unrolled, and into how many operations."""
    backward = loop.backward
    beside = f" (backward: {backward[0]:,} × {backward[1]:,})" if backward is not None else ""
    operations = "operation" if loop.operations == 1 else f"{loop.operations:,} operations"
    times = f"{loop.copies:,} times the same {operations}"
    return f"an unrolled loop: {loop.call_site}, {times}{beside}"


def scan_sentences(as_scan: AsScan) -> list[str]:
    """Sentences on what a scan would cost, also with its arguments stacked beforehand."""
    if as_scan.reason:
        return [f"as jax.lax.scan: not measured, {as_scan.reason}"]
    ways = [[(each, each.scan_s) for each in as_scan.measured]]
    if as_scan.stacked and not all(each.error for each in as_scan.measured):
        ways.append([(each, each.stacked_s or 0.0) for each in as_scan.measured])
    found = [verdict([(each.unrolled_s, after) for each, after in way]) for way in ways]
    if not any(each.startswith("faster") for each in found) and found[-1]:
        found[-1] += ": keep the loop" if as_scan.loops == 1 else ": keep the loops"
    if found[0]:
        found[0] = f"{as_scan.values or NOT_COMPARED}; {found[0]}"
    heads = ["as jax.lax.scan, measured", f"with {_stacked(as_scan.stacked)} beforehand"]
    return [
        f"{head}: {', '.join(_figure(*one) for one in way)}" + (f" ({follows})" if follows else "")
        for head, way, follows in zip(heads, ways, found, strict=False)
    ]


def _stacked(sizes: Sequence[int]) -> str:
    arrays = "one" if len(sizes) == 1 else str(len(sizes))
    return f"its {sum(sizes)} arguments stacked into {arrays}"


def _figure(measured: Measured, after_s: float) -> str:
    if measured.error:
        return f"{measured.compiler} not at all: {measured.error}"
    before, after = seconds(measured.unrolled_s), seconds(after_s)
    if before.split()[1:] == after.split()[1:]:  # the unit once
        before = before.split()[0]
    return f"{measured.compiler} {before} → {after}"


def verdict(pairs: Iterable[tuple[float, float]]) -> str:
    """What the seconds of each compiler, before and after, say about a scan."""
    ratios = [after / before for before, after in pairs if before]
    if not ratios:
        return ""
    if max(ratios) < 1 - _APART:
        return "faster as a scan"
    if min(ratios) > 1 + _APART:
        return "slower as a scan"
    if min(ratios) >= 1 - _APART:
        return "no faster as a scan"
    return "faster for some: choose by where you compile most"
