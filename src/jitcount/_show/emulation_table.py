"""The table of an emulation: which programs were faithful, and where the target rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount._show.parts import Heading, Note, Part, Row, Table, words
from jitcount._show.text import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._emulate.error import Shares
    from jitcount._emulate.facts import Facts
    from jitcount._emulate.result import EmulatedProgram, Emulation


def emulation_table(emulation: Emulation) -> list[Part]:
    """A line of sums, the lines that round, and what runs as on the CPU."""
    return sums_table(emulation.target, EmulationSums.of(emulation.programs))


def sums_table(target: str, sums: EmulationSums) -> list[Part]:
    """The same, for programs that were added up already."""
    if not sums.programs:
        return [Heading(f"As if on {target}: nothing was compiled")]
    heading = f"As if on {target}: {sums.faithful} of {sums.programs} programs faithful"
    parts: list[Part] = [Heading(heading)]
    rows: list[Row] = [(*key, ", ".join(sorted(names))) for key, names in sums.rounded.items()]
    if rows:
        parts.append(Table(words("line", "product", "rounded to", "in"), rows))
    parts += [Note(f"as on the CPU: {call}: {reason}") for call, reason in sums.as_on_cpu]
    return parts


def shares_table(shares: Shares) -> list[Part]:
    """How far a target's result is off, and which lines make that; what to do about them."""
    off = shares.change / shares.scale if shares.scale else shares.change
    heading = f"As if on {shares.target}: {shares.result} is {off:.2g} of its size off"
    parts: list[Part] = [Heading(heading)]
    if not shares.lines:
        parts.append(Note("no line rounds what it multiplies"))
    for line in shares.lines:
        parts.append(Note(str(line)))
        if line.advice:
            parts.append(Note(line.advice, depth=1))
    if shares.cycles is None and any(line.remedy for line in shares.lines):
        parts.append(Note(f"{shares.target} gives no estimate of what that costs"))
    return parts + [Note(f"as on the CPU, and not in this: {text}") for text in shares.as_on_cpu]


def facts_table(facts: Facts) -> list[Part]:
    """What is known of a target's arithmetic."""
    rows: list[Row] = [(each.subject, each.there, each.standing) for each in facts.facts]
    sources: list[Row] = [(each.subject, each.source) for each in facts.facts]
    return [
        Heading(f"The arithmetic of {facts.target}:"),
        Table(words("what", "there", "here"), rows),
        Table(words("what", "source"), sources),
        Note(
            "as there: the same bits here   bounded: emulation.leeway(f, x) says what that may "
            "change in a result"
        ),
    ]


# --- What is said of an emulation's programs together; several processes' sums are joined ---------


@dataclass(slots=True)
class EmulationSums:
    """Of the programs of one emulation, or of several of the same target."""

    programs: int = 0
    faithful: int = 0
    rounded: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)
    """By line, product and what it is rounded to: the functions."""

    as_on_cpu: dict[tuple[str, str], None] = field(default_factory=dict)
    """Calls with their reasons, in order."""

    @classmethod
    def of(cls, programs: Iterable[EmulatedProgram]) -> EmulationSums:
        """Add programs up."""
        sums = cls()
        for program in programs:
            sums.programs += 1
            sums.faithful += program.faithful
            for rounding in program.roundings:
                key = (str(rounding.place), rounding.what, rounding.to)
                sums.rounded.setdefault(key, set()).add(program.function)
            if not program.faithful:
                call = f"{program.function}({signature_of(program.signature)})"
                sums.as_on_cpu[call, program.reason] = None
        return sums

    def plain(self) -> dict[str, Any]:
        """As lists and texts, for another process."""
        return {
            "programs": self.programs,
            "faithful": self.faithful,
            "rounded": [[*key, *sorted(names)] for key, names in self.rounded.items()],
            "as_on_cpu": [list(each) for each in self.as_on_cpu],
        }

    def join(self, plain: dict[str, Any]) -> None:
        """Add what another process has sent."""
        self.programs += plain["programs"]
        self.faithful += plain["faithful"]
        for line, product, to, *names in plain["rounded"]:
            self.rounded.setdefault((line, product, to), set()).update(names)
        for call, reason in plain["as_on_cpu"]:
            self.as_on_cpu[call, reason] = None
