"""What `print(log)` shows: what to fix, by what it saves, then what was compiled, and why.

Also what a notebook shows of a single compile.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jitcount._explain.clock import clock_of_phases, clock_seconds
from jitcount._explain.fixes import Fix, fixes, worst
from jitcount._explain.summary import is_first, sentences, sentences_of_many
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
from jitcount._show.text import (
    arguments_of,
    name_of,
    plural,
    seconds,
    seconds_of,
    tone_of_causes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jitcount._explain.compile import Compile

# More rows than these nobody reads; the cheapest are left out.
_MOST_ROWS = 50

# A row that took less than this share of all is summed up with the others, past the first few.
_CHEAP = 0.01
_ALWAYS_SHOWN = 8

_MOST_CAUSES = 4
_MOST_NAMES = 6


def log_table(
    compiles: Sequence[Compile],
    *,
    whole: bool = False,
    with_advice: bool = True,
    duration: float = 0.0,
    next_steps: Sequence[str] = (),
) -> list[Part]:
    """A headline with the totals, what to fix, and the compiles.

    A function has one row for each line that calls it, operations outside of jit one for the call
    that made them; cheap ones are summed up. The `whole` table has a row for each compile.

    Args:
        compiles: all of them, in order.
        whole: a row for each.
        with_advice: whether to show what to fix.
        duration: how many seconds of the clock the program took, as far as that is known.
        next_steps: what else would help, below what to fix.
    """
    if not compiles:
        return [Note("nothing was compiled")]
    took = clock_seconds(compiles)
    found = fixes(compiles)
    listed = worst(found, took) if with_advice else []
    parts: list[Part] = [Heading(_headline(compiles, took, listed, duration))]
    if listed:
        parts.append(Heading("What to fix"))
        for number, fix in enumerate(listed, 1):
            parts += fix_notes(number, fix)
        parts += _rest(found, listed)
    parts += [Note(step) for step in next_steps]
    if whole:
        return [*parts, _whole_table(compiles), _phases(compiles)]
    return [*parts, compiles_table(compiles, found), _phases(compiles)]


def _headline(
    compiles: Sequence[Compile], took: float, listed: Sequence[Fix], duration: float
) -> str:
    made = [c for c in compiles if not c.from_disk]
    hits = len(compiles) - len(made)
    also = f" and {plural(hits, 'disk hit')}" if hits else ""
    time = seconds_of(took, duration) if duration >= took > 0 else seconds(took)
    text = f"{plural(len(made), 'compile')}{also} took {time}"
    if not listed:
        return text
    up_to = "up to " if any(fix.is_at_most for fix in listed) else ""
    saved = seconds(sum(fix.seconds for fix in listed))
    return f"{text}; what is listed below would save {up_to}{saved}"


def _phases(compiles: Sequence[Compile]) -> Note:
    """The seconds of each phase on the clock: together they are those of the headline."""
    found = clock_of_phases(compiles)
    phases = ("trace", "trace_s"), ("lower", "lower_s"), ("XLA", "compile_s")
    shown = ", ".join(f"{name} {seconds(found[key])}" for name, key in phases)
    return Note(f"in all: {shown}", tone=Tone.FAINT)


# --- What to fix ----------------------------------------------------------------------------------


def fix_notes(number: int, fix: Fix, *below: str) -> list[Note]:
    """What is to be fixed and what that saves, what changed, and what to do; then other lines."""
    up_to = "up to " if fix.is_at_most else ""
    title = f"{number}. {fix.in_words}, {up_to}{seconds(fix.seconds)} [{fix.code}]"
    lines = list(fix.changes[:_MOST_CAUSES])
    if (more := len(fix.changes) - _MOST_CAUSES) > 0:
        lines.append(f"and {plural(more, 'other change')}")
    lines += [f"→ {advice}" for advice in fix.advices]
    return [Note(title, depth=1), *(Note(text, depth=2) for text in (*lines, *below) if text)]


def _rest(found: Sequence[Fix], listed: Sequence[Fix]) -> list[Note]:
    """A line about what saves too little to be listed."""
    left = [fix for fix in found if fix not in listed and fix.seconds and not fix.is_only_kept]
    if not left:
        return []
    up_to = "up to " if any(fix.is_at_most for fix in left) else ""
    saved = seconds(sum(fix.seconds for fix in left))
    return [Note(f"and {len(left)} more that would save {up_to}{saved} besides", depth=1)]


# --- What was compiled ----------------------------------------------------------------------------


def compiles_table(compiles: Sequence[Compile], found: Sequence[Fix] = ()) -> Table:
    """A table with a row for each function and line, those of jitted functions first.

    Args:
        compiles: all of them, in order.
        found: what to fix: operations of one fix are one row, and what it saves is not faint.
    """
    fix_of = {id(compiled): fix for fix in found for compiled in fix.compiles}
    groups = sorted(_groups(compiles, fix_of), key=lambda group: group[0].eager)
    ranked = sorted(range(len(groups)), key=lambda number: -_seconds(groups[number]))
    limit = _CHEAP * _seconds(compiles)
    costly = [number for number in ranked if _seconds(groups[number]) >= limit]
    numbers = set(max(costly, ranked[:_ALWAYS_SHOWN], key=len)[:_MOST_ROWS])
    shown = [group for number, group in enumerate(groups) if number in numbers]
    left_out = ""
    if cheap := [c for n, group in enumerate(groups) if n not in numbers for c in group]:
        together = f"{plural(len(cheap), 'compile')} that took {seconds(_seconds(cheap))} together"
        left_out = f"… and {together}"
    columns = words("function") + long_words("arguments") + figures("compiles", "time")
    columns += words("call site") + long_words("cause")
    return Table(columns, [_toned_row(group, fix_of) for group in shown], left_out)


def _groups(compiles: Sequence[Compile], fix_of: Mapping[int, Fix]) -> list[list[Compile]]:
    """Compiles that are one row: by function and line, operations outside of jit by their call."""
    groups: dict[object, list[Compile]] = {}
    for compiled in compiles:
        key: object = (compiled.function, compiled.call_site, compiled.from_disk)
        if compiled.eager:
            fix = fix_of.get(id(compiled))
            key = ("eager", id(fix) if fix else compiled.call_site, compiled.from_disk)
        groups.setdefault(key, []).append(compiled)
    return list(groups.values())


def _whole_table(compiles: Sequence[Compile]) -> Table:
    """A table with a row for each compile, in order; of very many, the most expensive ones."""
    ranked = sorted(compiles, key=lambda compiled: -compiled.total_s)
    shown = set(map(id, ranked[:_MOST_ROWS]))
    left_out = ""
    if left := ranked[_MOST_ROWS:]:
        left_out = f"… and {len(left)} cheaper ones, {seconds(_seconds(left))} together"
    columns = words("function") + long_words("arguments") + figures("time")
    columns += words("call site") + long_words("cause")
    rows = []
    for compiled in compiles:
        if id(compiled) in shown:
            name, arguments, _, *rest = _row([compiled], {})
            row = (name, arguments, *rest)
            rows.append(_in_tone(row, tone_of_causes(compiled)))
    return Table(columns, rows, left_out)


def _toned_row(group: Sequence[Compile], fix_of: Mapping[int, Fix]) -> Row:
    """A row that is faint where all of it is needed; else what is avoidable stands out."""
    is_avoidable = any(id(compiled) in fix_of for compiled in group)
    return _in_tone(_row(group, fix_of), Tone.AVOIDABLE if is_avoidable else Tone.FAINT)


def _in_tone(row: Row, tone: Tone) -> Row:
    if tone is Tone.FAINT:
        return toned(row, tone)
    *others, causes = row
    return *others, *toned((causes,), tone)


def _row(group: Sequence[Compile], fix_of: Mapping[int, Fix]) -> Row:
    first = group[0]
    figures_of_row = Count(len(group)), Seconds(_seconds(group))
    names = Counter(compiled.function for compiled in group)
    fix = fix_of.get(id(first)) if first.eager else None
    if first.eager and (len(names) > 1 or (fix and fix.what)):
        operations = [name if n == 1 else f"{name} ×{n}" for name, n in names.most_common()]
        site = fix.call_site if fix else first.call_site
        what = fix.what if fix and fix.what else "operations"
        return f"{what} (eager)", "", *figures_of_row, site, _few(operations, ", ", _MOST_NAMES)
    again = [compiled.causes for compiled in group if not is_first(compiled)]
    if not again:
        causes = _few(list(dict.fromkeys(sentences(first.causes))))
    else:
        causes = _few(sentences_of_many(again))
    return name_of(first), arguments_of(first), *figures_of_row, first.call_site, causes


def _few(texts: Sequence[str], between: str = "; ", most: int = _MOST_CAUSES) -> str:
    if len(texts) <= most:
        return between.join(texts)
    return f"{between.join(texts[: most - 1])}{between}and {len(texts) - most + 1} more"


def _seconds(compiles: Iterable[Compile]) -> float:
    return sum(compiled.total_s for compiled in compiles)


def one_compile(compiled: Compile) -> list[Part]:
    """One compile by itself: what, where and how long, then each cause with its advice."""
    arrays = ", ".join(compiled.signature)
    phases = ("trace", compiled.trace_s), ("lower", compiled.lower_s), ("XLA", compiled.compile_s)
    took = ", ".join(f"{name} {seconds(value)}" for name, value in phases)
    via = f", asked for by {compiled.via}" if compiled.via else ""
    tone = tone_of_causes(compiled)
    parts: list[Part] = [
        Heading(f"{name_of(compiled)}({arrays})"),
        Note(f"at {compiled.call_site}{via}"),
        Note(f"{seconds(compiled.total_s)} on {compiled.platform} ({took})"),
    ]
    for cause in compiled.causes:
        parts.append(Note(str(cause), depth=1, tone=tone))
        parts += [Note(f"→ {cause.advice}", depth=2)] if cause.advice else []
    return parts
