"""What ``--compiles`` shows at the end of a run: the costliest compiles, and those made twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._explain.summary import sentences
from jitcount._show.parts import (
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
    from collections.abc import Iterable, Mapping, Sequence

    from jitcount._explain.compile import Compile

# JAX's own limit: what is compiled faster is not cached, unless a setting says otherwise.
_CACHED_FROM_S = 1.0

_SETTINGS = "JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0"


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
    cached = [group[1:] for group in groups.values() if group[0].compile_s >= _CACHED_FROM_S]
    by_default = seconds(sum(compiled.compile_s for group in cached for compiled in group))
    served = seconds(sum(compiled.compile_s for compiled in again))
    spent = seconds(sum(compiled.total_s for compiled in again))
    are = "is" if len(again) == 1 else "are"
    compiled_before = f"{are} of a program that this run had compiled before: {spent}"
    lines = [
        f"a persistent cache would have served {served} of it: {_SETTINGS}",
        f"without the second, what compiles in less than 1 s is not kept: {by_default} of it",
    ]
    if are_cleared:
        why = "tests that hold a count begin with cleared caches"
        lines.append(f"{why}: --compile-isolation=none leaves them")
    head = Note(f"{len(again)} of {plural(len(made), 'compile')} {compiled_before}")
    return [head, *(Note(line, depth=1) for line in lines)]
