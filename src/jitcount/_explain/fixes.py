"""What to fix in a program, by what each fix saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._explain.causes.cause import Kind
from jitcount._explain.fix import IMPORTS, OUTSIDE_JIT, Fix
from jitcount._explain.outside_jit import outside_jit
from jitcount._explain.summary import advice_of, is_first, sentences_of_many

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._explain.compile import Compile

__all__ = ["IMPORTS", "OUTSIDE_JIT", "Fix", "fixes"]


def fixes(compiles: Iterable[Compile]) -> list[Fix]:
    """What to fix, by what each saves, most first."""
    made = [compiled for compiled in compiles if not compiled.from_disk]
    found = [*_recompiles(made), *outside_jit(made)]
    return sorted(found, key=lambda fix: -fix.seconds)


def _recompiles(compiles: Sequence[Compile]) -> list[Fix]:
    """A fix for each of the user's functions and each line that recompiles it."""
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        if not compiled.eager and not is_first(compiled):
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    return [fix for group in groups.values() if (fix := _fix(group)) is not None]


def _fix(group: Sequence[Compile]) -> Fix | None:
    advice = [advice for compiled in group for advice in advice_of(compiled.causes)]
    if not advice:
        return None
    most_often = max(advice, key=advice.count)
    kinds = [c.kind for compiled in group for c in compiled.causes if c.kind != Kind.FIRST_CALL]
    kind = max(kinds, key=kinds.count)
    return Fix(
        code=kind.code,
        title=kind.in_words,
        what=group[0].function,
        call_site=group[0].call_site,
        count=len(group),
        seconds=sum(compiled.total_s for compiled in group),
        is_at_most=False,
        changes=tuple(sentences_of_many([compiled.causes for compiled in group])),
        advice=most_often,
        compiles=tuple(group),
    )
