"""What is said of an emulation's programs together; several processes' sums are joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount.show.text import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount.emulate.result import EmulatedProgram


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
