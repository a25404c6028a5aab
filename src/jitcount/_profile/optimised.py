"""Reads an optimised program's text: which lines each of its instructions comes from.

Only what a profile needs is read, line by line: an optimised program can be of many megabytes.
`_hlo/parser.py` reads all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from jitcount._hlo.locations import DeepStacks, Places, called_in, copy_in
from jitcount._observe.call_site import UNKNOWN_SITES
from jitcount._profile.origin import NO_ORIGIN, Origin

_TABLES = frozenset({"FileNames", "FunctionNames", "FileLocations", "StackFrames"})
_HEADER = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|comparator)=\{?%?([\w.\-]+)")
_BRANCHES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_METADATA = re.compile(r"\bmetadata=\{(.*)")
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\d+)')

# What computes nothing.
_NO_WORK = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"}
)

# So many steps from an instruction without a place, one that has it is looked for.
_NEAR = 4


@dataclass(slots=True)
class _Instruction:
    """As much of it as is needed."""

    opcode: str
    computation: str
    metadata: str
    called: tuple[str, ...]
    operands: tuple[str, ...]


@dataclass
class Optimised:
    """The instructions of a program."""

    places: Places
    _instructions: dict[str, _Instruction] = field(default_factory=dict)
    _computations: dict[str, list[str]] = field(default_factory=dict)
    _callers: dict[str, str] = field(default_factory=dict)
    """Of a computation, an instruction that calls it."""

    _users: dict[str, list[str]] = field(default_factory=dict)
    """Of an instruction, those that take its value."""

    _origins: dict[str, Origin] = field(default_factory=dict)

    def counts(self) -> Counter[Origin]:
        """How many instructions there are from each place."""
        return Counter(
            self._origin(name, each)
            for name, each in self._instructions.items()
            if each.opcode not in _NO_WORK
        )

    def origins_of(self, unit: str) -> Counter[Origin]:
        """Where a unit of code comes from, each place with its weight; empty where it is not known.

        A unit is an instruction, a computation that one calls (a sort's comparison), or a part of
        one that the compiler has made a function of.
        """
        name = self._known(unit)
        if not name:
            return Counter()
        return self._known_inside(name) or self._of_neighbours(name) or Counter({NO_ORIGIN: 1})

    def _known_inside(self, name: str) -> Counter[Origin]:
        inside = Counter(self._inside(name))
        return Counter({origin: n for origin, n in inside.items() if origin != NO_ORIGIN})

    def _of_neighbours(self, name: str) -> Counter[Origin]:
        """What XLA has added has no place of its own: a copy, in the layout that its user wants.

        It belongs to what takes its value; where that is not known either, to what gave it.
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

    def _known(self, unit: str) -> str:
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

    def _inside(self, name: str, depth: int = 0) -> list[Origin]:
        """Of an instruction, or of those in the computations that it calls: a fusion's own."""
        each = self._instructions[name]
        if each.opcode != "fusion" or depth > 8:
            return [self._origin(name, each)]
        found = [
            origin
            for computation in each.called
            for inner in self._computations.get(computation, ())
            if self._instructions[inner].opcode not in _NO_WORK
            for origin in self._inside(inner, depth + 1)
        ]
        return found or [self._origin(name, each)]

    def _origin(self, name: str, each: _Instruction, depth: int = 0) -> Origin:
        """From its own metadata; a comparison or a reduction has none, but what calls it has."""
        if name in self._origins:
            return self._origins[name]
        metadata = {key: value.strip('"') for key, value in _FIELD.findall(each.metadata)}
        name_stack = metadata.get("op_name", "")
        sites = self.places.sites(metadata)
        found = Origin(sites, copy_in(name_stack), called_in(name_stack))
        if sites == UNKNOWN_SITES:
            caller = self._callers.get(each.computation)
            found = NO_ORIGIN
            if caller is not None and depth < 8:
                found = self._origin(caller, self._instructions[caller], depth + 1)
        self._origins[name] = found
        return found


def read_optimised(text: str, deep: DeepStacks | None = None) -> Optimised:
    """Read a module."""
    tables: dict[str, list[str]] = {}
    found = Optimised(Places(tables, deep or DeepStacks()))
    computation, table = "", None
    for line in text.splitlines():
        if table is not None:
            if line.strip():
                table.append(line.strip().partition(" ")[2])
            else:
                table = None
        elif line in _TABLES:
            table = tables.setdefault(line, [])
        elif match := _INSTRUCTION.match(line):
            _read_instruction(found, computation, match, line)
        elif line.endswith("{") and (header := _HEADER.match(line)):
            computation = header[1]
            found._computations[computation] = []  # noqa: SLF001 (this is what makes it)
    return found


def _read_instruction(found: Optimised, computation: str, match: re.Match[str], line: str) -> None:
    opcode = _OPCODE.search(line, match.end() - 1)
    metadata = _METADATA.search(line)
    called = tuple(_CALLED.findall(line))
    operands: tuple[str, ...] = ()
    if opcode and opcode[1] not in {"parameter", "constant", "iota"}:
        inside = line[opcode.end() : line.find(")", opcode.end())]
        operands = tuple(part.split()[-1].lstrip("%") for part in inside.split(",") if part.strip())
    if branches := _BRANCHES.search(line):
        called += tuple(re.findall(r"%?([\w.\-]+)", branches[1]))
    name = match[1]
    found._instructions[name] = _Instruction(  # noqa: SLF001
        opcode[1] if opcode else "", computation, metadata[1] if metadata else "", called, operands
    )
    found._computations.setdefault(computation, []).append(name)  # noqa: SLF001
    for each in operands:
        found._users.setdefault(each, []).append(name)  # noqa: SLF001
    for each in called:
        found._callers.setdefault(each, name)  # noqa: SLF001
