"""Expected compiles against found ones, and each surplus compile with its place and its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.explain.causes.cause import Kind
from jitcount.show.parts import Count, Heading, Note, Part, Table, figures, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jitcount.explain.compile import Compile


def differences(
    headline: str,
    expected: Mapping[str, int] | None,
    compiles: Sequence[Compile],
    for_first_calls: str = "",
) -> list[Part]:
    """A failure as people read it; without `expected` all compiles are surplus.

    A first call's own advice is that there is nothing to mend. That is no help in a failure: what
    the rule that failed wants instead is `for_first_calls`.
    """
    found: dict[str, int] = {}
    surplus: list[Part] = []
    for compiled in compiles:
        if compiled.from_disk:
            continue
        found[compiled.function] = found.get(compiled.function, 0) + 1
        if found[compiled.function] > (expected or {}).get(compiled.function, 0):
            surplus.append(Note(f"{compiled.call} at {compiled.call_site}"))
            surplus += _reasons(compiled, for_first_calls)
    if expected is None:
        return [Heading(headline), *surplus]
    rows = [
        (name, Count(expected.get(name, 0)), Count(found.get(name, 0)))
        for name in dict.fromkeys([*expected, *found])
    ]
    table = Table(words("function") + figures("expected", "found"), rows)
    return [Heading(headline), table, *surplus]


def _reasons(compiled: Compile, for_first_calls: str) -> Iterator[Part]:
    for cause in compiled.causes:
        yield Note(f"because: {cause.brief()}", depth=1)
        advice = for_first_calls if cause.kind is Kind.FIRST_CALL else cause.advice
        if advice:
            yield Note(f"→ {advice}", depth=1)
