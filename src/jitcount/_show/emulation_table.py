"""The table of an emulation: which programs were faithful, and where the target rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount._show.parts import Heading, Note, Part, Row, Table, words
from jitcount._show.text import signature_of
from jitcount._targets.names import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._emulate.error import ErrorByLine
    from jitcount._emulate.result import EmulatedProgram, Emulation, Facts


def emulation_table(emulation: Emulation) -> list[Part]:
    """A line of sums, the lines that round, and the programs that run as on the CPU."""
    return sums_table(emulation.target, EmulationSums.from_programs(emulation.programs))


def is_rounding(target: str) -> bool:
    """Whether that is no target, but this machine with other roundings."""
    return target.partition(":")[0] == ROUNDING


def title_of(target: str) -> str:
    """How it was computed: ``"As if on tpu:v5e"``, ``"Computed with other rounding (seed 7)"``."""
    if not is_rounding(target):
        return f"As if on {target}"
    return f"Computed with other rounding (seed {target.partition(':')[2] or 0})"


def sums_table(target: str, sums: EmulationSums) -> list[Part]:
    """The table of an emulation, for programs that were added up already."""
    title = title_of(target)
    if not sums.programs:
        return [Heading(f"{title}: nothing was compiled")]
    there = "" if is_rounding(target) else " computed as there"
    heading = f"{title}: {sums.faithful} of {sums.programs} programs{there}"
    parts: list[Part] = [Heading(heading)]
    rows: list[Row] = [(*key, ", ".join(sorted(names))) for key, names in sums.rounded.items()]
    if rows:
        parts.append(Table(words("line", "operation", "inputs rounded to", "in function"), rows))
    parts += [Note(f"{call}: {how}") for call, how in sums.fallbacks]
    parts += [Note(f"as on the CPU: {call}: {reason}") for call, reason in sums.not_emulated]
    return parts


def error_table(error: ErrorByLine) -> list[Part]:
    """How far a target's result is off, and which lines make that; what to do about them."""
    off = error.change / error.scale if error.scale else error.change
    heading = f"As if on {error.target}: {error.result} is {off:.2g} of its size off"
    parts: list[Part] = [Heading(heading)]
    if not error.lines:
        parts.append(Note("no line rounds what it multiplies"))
    for line in error.lines:
        parts.append(Note(str(line)))
        if line.advice:
            parts.append(Note(line.advice, depth=1))
    if error.cycles is None and any(line.remedy for line in error.lines):
        parts.append(Note(f"{error.target} gives no estimate of what that costs"))
    return parts + [Note(f"as on the CPU, and not in this: {text}") for text in error.not_emulated]


def facts_table(facts: Facts) -> list[Part]:
    """What is known of a target's arithmetic."""
    rows: list[Row] = [(each.subject, each.there, each.standing) for each in facts.facts]
    sources: list[Row] = [(each.subject, each.source) for each in facts.facts]
    return [
        Heading(f"The arithmetic of {facts.target}:"),
        Table(words("what", "there", "here"), rows),
        Table(words("what", "source"), sources),
        Note(
            "as there: the same bits here   "
            "bounded: emulation.error_bound(f, x) says what that may change in a result"
        ),
    ]


@dataclass(slots=True)
class EmulationSums:
    """What is shown of the programs of one emulation, or of several processes' with one target."""

    programs: int = 0
    faithful: int = 0
    rounded: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)
    """The functions that round, by line, product and what it is rounded to."""

    not_emulated: dict[tuple[str, str], None] = field(default_factory=dict)
    """Calls that run as on the CPU, with their reasons, in order."""

    fallbacks: dict[tuple[str, str], None] = field(default_factory=dict)
    """Calls that were compiled otherwise than as they are, and how, in order."""

    @classmethod
    def from_programs(cls, programs: Iterable[EmulatedProgram]) -> EmulationSums:
        """The sums of some programs."""
        sums = cls()
        for program in programs:
            sums.programs += 1
            sums.faithful += program.faithful
            for rounding in program.roundings:
                key = (str(rounding.place), rounding.what, rounding.to)
                sums.rounded.setdefault(key, set()).add(program.function)
            call = f"{program.function}({signature_of(program.signature)})"
            if not program.faithful:
                sums.not_emulated[call, program.reason] = None
            elif program.fallback:
                sums.fallbacks[call, program.fallback] = None
        return sums

    def plain(self) -> dict[str, Any]:
        """The sums as lists and texts, for another process."""
        return {
            "programs": self.programs,
            "faithful": self.faithful,
            "rounded": [[*key, *sorted(names)] for key, names in self.rounded.items()],
            "not_emulated": [list(each) for each in self.not_emulated],
            "fallbacks": [list(each) for each in self.fallbacks],
        }

    def join(self, plain: dict[str, Any]) -> None:
        """Add the sums that another process has sent."""
        self.programs += plain["programs"]
        self.faithful += plain["faithful"]
        for line, product, to, *names in plain["rounded"]:
            self.rounded.setdefault((line, product, to), set()).update(names)
        for call, reason in plain["not_emulated"]:
            self.not_emulated[call, reason] = None
        for call, how in plain["fallbacks"]:
            self.fallbacks[call, how] = None
