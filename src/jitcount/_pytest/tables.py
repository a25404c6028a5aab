"""Expected compiles against found ones, and each surplus compile with its place and its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._explain.causes.cause import Kind
from jitcount._explain.compile import count_compiles
from jitcount._explain.summary import in_a_line, is_first, sentences, sentences_of_many
from jitcount._show.parts import (
    Count,
    Heading,
    Note,
    Part,
    Seconds,
    Table,
    Toned,
    figures,
    long_words,
    words,
)
from jitcount._show.text import plural, seconds, tone_of_causes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jitcount._explain.compile import Compile


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
    found = count_compiles(compiles)
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
    found = count_compiles(compiles)
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
    return f"{plural(len(made), 'compile')}, at most {limit}: {what}"


def _why(beyond: Sequence[Compile]) -> str:
    """Of recompiles, if there are some: that it was called at all explains little."""
    again = [compiled for compiled in beyond if not is_first(compiled)] or list(beyond)
    if not again:
        return ""
    if len(again) == 1:
        return f": {in_a_line(again[0].causes)}"
    return f": {'; '.join(sentences_of_many([compiled.causes for compiled in again]))}"


def _reasons(compiled: Compile, for_first_calls: str) -> Iterator[Part]:
    for cause in compiled.causes:
        yield Note(f"because: {cause.brief()}", depth=1)
        advice = for_first_calls if cause.kind is Kind.FIRST_CALL else cause.advice
        if advice:
            yield Note(f"→ {advice}", depth=1)


# --- What a run compiled although it had compiled the same before, and what would have spared i


# JAX's own limit: what is compiled faster is not kept, unless a setting says otherwise.
_KEPT_FROM_S = 1.0

_SETTINGS = "JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0"


def compiled_again(compiles: Iterable[Compile]) -> list[Part]:
    """How long the same programs took again, wherever they came from; nothing if none did."""
    made = [compiled for compiled in compiles if not compiled.from_disk]
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in sorted(made, key=lambda compiled: compiled.started_at):
        if compiled.fingerprint:
            groups.setdefault((compiled.platform, compiled.fingerprint), []).append(compiled)
    again = [compiled for group in groups.values() for compiled in group[1:]]
    if not again:
        return []
    kept = [group[1:] for group in groups.values() if group[0].compile_s >= _KEPT_FROM_S]
    by_default = sum(compiled.compile_s for group in kept for compiled in group)
    served = seconds(sum(compiled.compile_s for compiled in again))
    spent = seconds(sum(compiled.total_s for compiled in again))
    are = "is" if len(again) == 1 else "are"
    return [
        Note(
            f"{len(again)} of {plural(len(made), 'compile')} {are} of a program that this run had "
            f"compiled before: {spent}"
        ),
        Note(f"a persistent cache would have served {served} of it: {_SETTINGS}", depth=1),
        Note(
            "without the second, what compiles in less than 1 s is not kept: "
            f"{seconds(by_default)} of it",
            depth=1,
        ),
    ]


# --- The costliest compiles of a whole run --------------------------------------------------------


def costliest(found: Mapping[str, Sequence[Compile]], most: int) -> list[Part]:
    """A headline with the totals of all tests, then the costliest compiles."""
    every = [(test, compiled) for test, compiles in found.items() for compiled in compiles]
    made = sum(not compiled.from_disk for _, compiled in every)
    total = seconds(sum(compiled.total_s for _, compiled in every))
    rows = [
        (
            Seconds(compiled.total_s),
            compiled.function,
            Toned("; ".join(sentences(compiled.causes)), tone_of_causes(compiled)),
            test,
        )
        for test, compiled in sorted(every, key=lambda pair: -pair[1].total_s)[:most]
    ]
    return [
        Heading(f"{plural(made, 'compile')} in {plural(len(found), 'test')}, {total}"),
        Table(figures("time") + words("function") + long_words("cause", "test"), rows),
    ]
