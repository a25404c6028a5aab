"""Expected compiles against found ones, and each surplus compile with its place and its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain.causes.cause import Kind
from jitcount.explain.hotspots import is_first
from jitcount.explain.summing import in_a_line, sentences_of_many
from jitcount.show.parts import Count, Heading, Note, Part, Table, figures, words
from jitcount.show.text import times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jitcount.explain.compile import Compile


def differences(
    rule: str,
    expected: Mapping[str, int] | None,
    compiles: Sequence[Compile],
    for_first_calls: str = "",
) -> list[Part]:
    """What a rule wants against what was found; without `expected` all compiles are surplus.

    A first call's own advice is that there is nothing to mend. That is no help in a failure: what
    the rule that failed wants instead is `for_first_calls`.
    """
    below: list[Part] = []
    for compiled in surplus(expected, compiles):
        below.append(Note(f"{compiled.call} at {compiled.call_site}"))
        below += _reasons(compiled, for_first_calls)
    if expected is None:
        return [Heading(rule), *below]
    found = _counts(compiles)
    rows = [
        (name, Count(expected.get(name, 0)), Count(found.get(name, 0)))
        for name in dict.fromkeys([*expected, *found])
    ]
    table = Table(words("function") + figures("expected", "found"), rows)
    return [Heading(rule), table, *below]


def surplus(expected: Mapping[str, int] | None, compiles: Sequence[Compile]) -> list[Compile]:
    """What was compiled beyond what is expected; without that, all."""
    found: dict[str, int] = {}
    beyond = []
    for compiled in compiles:
        if not compiled.from_disk:
            found[compiled.function] = found.get(compiled.function, 0) + 1
            if found[compiled.function] > (expected or {}).get(compiled.function, 0):
                beyond.append(compiled)
    return beyond


def in_short(expected: Mapping[str, int], compiles: Sequence[Compile]) -> str:
    """All of it in one line: of which function how many, what was expected, and why."""
    found = _counts(compiles)
    beyond = surplus(expected, compiles)
    pieces = []
    for name in dict.fromkeys([*expected, *found]):
        wanted, count = expected.get(name, 0), found.get(name, 0)
        if wanted != count:
            why = _why([compiled for compiled in beyond if compiled.function == name])
            pieces.append(f"{name} ×{count}, expected {wanted}{why}")
    return "; ".join(pieces)


def too_many(limit: int, compiles: Sequence[Compile]) -> str:
    """The same for a limit: ``2 compiles, at most 1: step, axis 0 of x 3 → 4``."""
    made = [compiled for compiled in compiles if not compiled.from_disk]
    last = made[-1]
    what = f"{last.function}, {in_a_line(last.causes)}"
    return f"{times(len(made), 'compile')}, at most {limit}: {what}"


def _why(beyond: Sequence[Compile]) -> str:
    """Of recompiles, if there are some: that it was called at all explains little."""
    again = [compiled for compiled in beyond if not is_first(compiled)] or list(beyond)
    if not again:
        return ""
    if len(again) == 1:
        return f": {in_a_line(again[0].causes)}"
    return f": {'; '.join(sentences_of_many([compiled.causes for compiled in again]))}"


def _counts(compiles: Sequence[Compile]) -> dict[str, int]:
    found: dict[str, int] = {}
    for compiled in compiles:
        if not compiled.from_disk:
            found[compiled.function] = found.get(compiled.function, 0) + 1
    return found


def _reasons(compiled: Compile, for_first_calls: str) -> Iterator[Part]:
    for cause in compiled.causes:
        yield Note(f"because: {cause.brief()}", depth=1)
        advice = for_first_calls if cause.kind is Kind.FIRST_CALL else cause.advice
        if advice:
            yield Note(f"→ {advice}", depth=1)
