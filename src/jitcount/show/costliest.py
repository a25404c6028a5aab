"""The costliest compiles of a whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain.summing import sentences
from jitcount.show.parts import Heading, Part, Seconds, Table, Toned, figures, long_words, words
from jitcount.show.text import seconds, times, tone_of_causes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount.explain.compile import Compile


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
        Heading(f"{times(made, 'compile')} in {times(len(found), 'test')}, {total}"),
        Table(figures("time") + words("function") + long_words("cause", "test"), rows),
    ]
