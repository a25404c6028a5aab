"""Expected compiles against found ones, and each surplus compile with its place and its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.text import render, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount.explain.compile import Compile


def differences_text(
    headline: str, expected: Mapping[str, int] | None, compiles: Sequence[Compile]
) -> str:
    """A failure as people read it; without `expected` all compiles are surplus."""
    made = [c for c in compiles if not c.from_disk]
    found: dict[str, int] = {}
    surplus = []
    for compiled in made:
        found[compiled.function] = found.get(compiled.function, 0) + 1
        if found[compiled.function] > (expected or {}).get(compiled.function, 0):
            surplus.append(compiled)
    parts = [headline]
    if expected is not None:
        rows = table("function", "expected", "found", right=("expected", "found"))
        for name in dict.fromkeys([*expected, *found]):
            rows.add_row(name, str(expected.get(name, 0)), str(found.get(name, 0)))
        parts.append(render(rows))
    for compiled in surplus:
        parts += [f"{compiled.call} at {compiled.call_site}", *compiled.reasons()]
    return "\n".join(parts)
