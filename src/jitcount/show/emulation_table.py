"""The table of an emulation: which programs were faithful, and where the target rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.parts import Heading, Note, Part, Row, Table, words
from jitcount.show.text import signature_of

if TYPE_CHECKING:
    from jitcount.emulate.result import Emulation


def emulation_table(emulation: Emulation) -> list[Part]:
    """A line of sums, the lines that round, and what runs as on the CPU."""
    programs = emulation.programs
    if not programs:
        return [Heading(f"As if on {emulation.target}: nothing was compiled")]
    faithful = sum(program.faithful for program in programs)
    parts: list[Part] = [
        Heading(f"As if on {emulation.target}: {faithful} of {len(programs)} programs faithful")
    ]
    rounded: dict[tuple[str, str, str], set[str]] = {}
    for program in programs:
        for rounding in program.roundings:
            key = (rounding.place, rounding.what, rounding.to)
            rounded.setdefault(key, set()).add(program.function)
    rows: list[Row] = [(*key, ", ".join(sorted(names))) for key, names in rounded.items()]
    if rows:
        parts.append(Table(words("line", "product", "rounded to", "in"), rows))
    left: dict[tuple[str, str], int] = {}
    for program in programs:
        if not program.faithful:
            call = f"{program.function}({signature_of(program.signature)})"
            left[call, program.reason] = left.get((call, program.reason), 0) + 1
    parts += [Note(f"as on the CPU: {call}: {reason}") for call, reason in left]
    return parts
