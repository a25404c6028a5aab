"""What a run compiled although it had compiled the same before, and what would have spared it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.parts import Note, Part
from jitcount.show.text import seconds, times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount.explain.compile import Compile

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
            f"{len(again)} of {times(len(made), 'compile')} {are} of a program that this run had "
            f"compiled before: {spent}"
        ),
        Note(f"a persistent cache would have served {served} of it: {_SETTINGS}", depth=1),
        Note(
            "without the second, what compiles in less than 1 s is not kept: "
            f"{seconds(by_default)} of it",
            depth=1,
        ),
    ]
