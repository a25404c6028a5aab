"""The source lines that an optimised program's instructions come from, and its units of code."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from jitcount._hlo.locations import DeepStacks, SourceTables, called_in, transform_in
from jitcount._hlo.scanner import scan
from jitcount._observe.call_site import UNKNOWN_SITES
from jitcount._profile.origin import NO_ORIGIN, Origin

if TYPE_CHECKING:
    from jitcount._hlo.scanner import Instruction

# Operations that compute nothing.
_NO_WORK = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"}
)

# How many steps away from an instruction without a source line one that has it is looked for.
_NEAR = 4

# How deep calls of calls are followed.
_DEPTH = 8


class OptimisedProgram:
    """The instructions of an optimised program, and where they come from."""

    def __init__(self, text: str, deep: DeepStacks | None = None) -> None:
        module = scan(text)
        self._tables = SourceTables(module.tables, deep or DeepStacks())
        self._computations = module.computations
        self._instructions: dict[str, Instruction] = {}
        self._inside_of: dict[str, str] = {}
        """The computation that each instruction is in."""

        self._callers: dict[str, str] = {}
        """For each computation, the first instruction that calls it."""

        self._users: dict[str, list[str]] = {}
        """For each instruction, those that take its value."""

        self._origins: dict[str, Origin] = {}
        for computation, instructions in module.computations.items():
            for each in instructions:
                self._instructions[each.name] = each
                self._inside_of[each.name] = computation
                for operand in each.operands:
                    self._users.setdefault(operand, []).append(each.name)
                for called in each.called:
                    self._callers.setdefault(called, each.name)

    def counts(self) -> Counter[Origin]:
        """How many instructions there are from each origin."""
        return Counter(
            self._origin(name)
            for name, each in self._instructions.items()
            if each.opcode not in _NO_WORK
        )

    def origins_of(self, unit: str) -> Counter[Origin]:
        """Where a unit of code comes from, each origin with its weight; empty if it is unknown.

        A unit is an instruction, a computation that one calls (a sort's comparison), or a part of
        one that the compiler has made a function of.
        """
        name = self._instruction_of(unit)
        if not name:
            return Counter()
        return self._known_inside(name) or self._of_neighbours(name) or Counter({NO_ORIGIN: 1})

    def _instruction_of(self, unit: str) -> str:
        """The name of the instruction that a unit is, or that calls it; empty if there is none."""
        if unit in self._instructions:
            return unit
        computation = unit
        while computation and computation not in self._computations:
            # "fused_computation_4_add_6" is a part of "fused_computation.4".
            computation, _, part = computation.rpartition("_")
            numbered = re.sub(r"_(\d+)$", r".\1", computation)
            if part and numbered in self._computations:
                computation = numbered
        return self._callers.get(computation, "")

    def _known_inside(self, name: str) -> Counter[Origin]:
        inside = Counter(self._inside(name))
        return Counter({origin: n for origin, n in inside.items() if origin != NO_ORIGIN})

    def _of_neighbours(self, name: str) -> Counter[Origin]:
        """The origins near an instruction that XLA has added: a copy, in the layout of its user.

        It belongs to what takes its value; if that is unknown too, to what it takes.
        """
        for next_to in (self._users.get, lambda each: self._instructions[each].operands):
            around, seen = [name], {name}
            for _ in range(_NEAR):
                around = [
                    other
                    for each in around
                    for other in next_to(each) or ()
                    if other in self._instructions and other not in seen
                ]
                seen.update(around)
                found = sum((self._known_inside(each) for each in around[:8]), Counter[Origin]())
                if found:
                    return found
        return Counter()

    def _inside(self, name: str, depth: int = 0) -> list[Origin]:
        """The origin of an instruction; of a fusion, those of the instructions that it fuses."""
        each = self._instructions[name]
        if each.opcode != "fusion" or depth > _DEPTH:
            return [self._origin(name)]
        found = [
            origin
            for computation in each.called
            for inner in self._computations.get(computation, ())
            if inner.opcode not in _NO_WORK
            for origin in self._inside(inner.name, depth + 1)
        ]
        return found or [self._origin(name)]

    def _origin(self, name: str, depth: int = 0) -> Origin:
        """An instruction's own origin; inside a comparison or a reduction, that of its caller."""
        if name in self._origins:
            return self._origins[name]
        metadata = self._instructions[name].metadata
        name_stack = metadata.get("op_name", "").strip('"')
        sites = self._tables.sites_of(metadata)
        found = Origin(sites, transform_in(name_stack), called_in(name_stack))
        if sites == UNKNOWN_SITES:
            caller = self._callers.get(self._inside_of[name])
            found = self._origin(caller, depth + 1) if caller and depth < _DEPTH else NO_ORIGIN
        self._origins[name] = found
        return found
