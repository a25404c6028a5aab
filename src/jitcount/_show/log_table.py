"""What `print(log)` shows: what is worth fixing first, then what was compiled, and why.

Also what a notebook shows of a single compile.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jitcount._explain.fixes import OUTSIDE_JIT, Fix, fixes
from jitcount._explain.summary import is_first, sentences, sentences_of_many
from jitcount._show.parts import (
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
from jitcount._show.text import name_of, plural, seconds, signature_of, tone_of_causes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._explain.compile import Compile

# More rows than these nobody reads; the cheapest are left out.
_MOST_ROWS = 50

_MOST_FIXES = 3
_MOST_CAUSES = 4
_MOST_NAMES = 6


def log_table(
    compiles: Sequence[Compile], *, whole: bool = False, with_advice: bool = True
) -> list[Part]:
    """A headline with the totals, what to fix first, and the compiles.

    The user's own jits come first, one row for a function, a line and a kind of cause; operations
    outside of jit are summed up by line. The `whole` table has a row for each compile, in order.
    Without advice, what to fix is left out.
    """
    if not compiles:
        return [Note("nothing was compiled")]
    groups = [[compiled] for compiled in compiles] if whole else grouped(compiles)
    parts: list[Part] = [Heading(_headline(compiles))]
    if with_advice and (worst := fixes(compiles)[:_MOST_FIXES]):
        parts.append(Heading("Worth fixing first"))
        parts += [note for fix in worst for note in _notes(fix)]
    return [*parts, compiles_table(groups)]


def grouped(compiles: Sequence[Compile]) -> list[list[Compile]]:
    """Compiles that are one row: by function, line and what changed; eager operations by line."""
    groups: dict[object, list[Compile]] = {}
    for compiled in compiles:
        key: object = ("eager", compiled.call_site, compiled.from_disk)
        if not compiled.eager:
            changed = tuple(sorted({(cause.kind, cause.where) for cause in compiled.causes}))
            key = (compiled.function, compiled.call_site, compiled.from_disk, changed)
        groups.setdefault(key, []).append(compiled)
    return sorted(groups.values(), key=lambda group: group[0].eager)


def compiles_table(groups: Sequence[Sequence[Compile]]) -> Table:
    """A table with a row for each group of compiles; of very many, the most expensive ones."""
    shown = _costliest(groups)
    left_out = ""
    if more := len(groups) - len(shown):
        rest = _seconds(groups) - _seconds(shown)
        left_out = f"… and {more} cheaper ones, {seconds(rest)} together"
    columns = words("function") + long_words("signature") + figures("time")
    columns += words("call site") + long_words("cause")
    return Table(columns, [_toned_row(group) for group in shown], left_out)


def _toned_row(group: Sequence[Compile]) -> Row:
    """A row in which a first call is faint, and the cause of a recompile stands out."""
    row = _row(group)
    if all(map(is_first, group)):
        return toned(row, Tone.FAINT)
    *others, causes = row
    return *others, *toned((causes,), Tone.DIFFERENT)


def _row(group: Sequence[Compile]) -> Row:
    first, count = group[0], len(group)
    total = Seconds(sum(compiled.total_s for compiled in group))
    if count == 1:
        causes = _few(sentences(first.causes))
        return name_of(first), signature_of(first.signature), total, first.call_site, causes
    names = Counter(compiled.function for compiled in group)
    if len(names) > 1:
        operations = [name if n == 1 else f"{name} ×{n}" for name, n in names.most_common()]
        name = f"{count} operations (eager)"
        return name, "", total, first.call_site, _few(operations, ", ", _MOST_NAMES)
    again = [compiled.causes for compiled in group if not is_first(compiled)]
    causes = _few(sentences_of_many(again or [first.causes]))
    name = name_of(first).replace(first.function, f"{first.function} ×{count}", 1)
    return name, f"{signature_of(first.signature)}, …", total, first.call_site, causes


def _few(texts: Sequence[str], between: str = "; ", most: int = _MOST_CAUSES) -> str:
    if len(texts) <= most:
        return between.join(texts)
    return f"{between.join(texts[: most - 1])}{between}and {len(texts) - most + 1} more"


def _notes(fix: Fix) -> list[Note]:
    cost = f"{plural(fix.count, 'recompile')}, {seconds(fix.seconds)}"
    if fix.code == OUTSIDE_JIT:
        cost = seconds(fix.seconds)
    below = list(fix.changes[:_MOST_CAUSES])
    if (more := len(fix.changes) - _MOST_CAUSES) > 0:
        below.append(f"and {plural(more, 'other change')}")
    below.append(f"→ {fix.advice}")
    first = Note(f"{fix.what} at {fix.call_site}: {cost}", depth=1)
    return [first, *(Note(text, depth=2) for text in below)]


def _costliest(groups: Sequence[Sequence[Compile]]) -> Sequence[Sequence[Compile]]:
    if len(groups) <= _MOST_ROWS:
        return groups
    ranked = sorted(range(len(groups)), key=lambda index: -_seconds([groups[index]]))
    return [groups[index] for index in sorted(ranked[:_MOST_ROWS])]


def _seconds(groups: Iterable[Sequence[Compile]]) -> float:
    return sum(compiled.total_s for group in groups for compiled in group)


def _headline(compiles: Sequence[Compile]) -> str:
    made = [c for c in compiles if not c.from_disk]
    hits = len(compiles) - len(made)
    phases = ", ".join(
        f"{phase} {seconds(sum(getattr(c, f'{phase}_s') for c in compiles))}"
        for phase in ("trace", "lower", "compile")
    )
    also = f" and {plural(hits, 'disk hit')}" if hits else ""
    total = seconds(sum(c.total_s for c in compiles))
    return f"{plural(len(made), 'compile')}{also} in {total} ({phases})"


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
