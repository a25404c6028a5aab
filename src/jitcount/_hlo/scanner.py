"""Splits the text of an HLO module into source tables, computations and instructions, line by line.

An optimised program can have many megabytes of text, and a profile needs only a few fields of each
instruction: those are read here, and nothing is refused. `parser` starts from the same scan and
reads the rest: shapes, and all attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TABLES = frozenset({"FileNames", "FunctionNames", "FileLocations", "StackFrames"})
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ([a-z][\w\-]*)\(")

_CALLED = re.compile(r"\b(?:calls|to_apply|body|condition|comparator)=\{?%?([\w.\-]+)")
_BRANCHES = re.compile(r"\b(?:branch_computations|called_computations)=\{([^}]*)\}")
_OPERAND = re.compile(r"%([\w.\-]+)")
_NAME = re.compile(r"%?([\w.\-]+)")
_METADATA = re.compile(r'\bmetadata=\{((?:"(?:[^"\\]|\\.)*"|[^"}]+)*)')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\d+)')
_OPENING, _CLOSING = "([{", ")]}"
_BRACKET_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]')
_COMMENT = re.compile(r"/\*.*?\*/")
_NOT_CLOSED = "a bracket that is not closed"

# What stands between the parentheses of these is no operand.
_WITHOUT_OPERANDS = frozenset({"", "parameter", "constant", "iota"})


@dataclass(slots=True)
class Instruction:
    """The line of one instruction, and where its parts begin."""

    name: str
    opcode: str
    """Empty for a line that has none."""

    line: str
    shape_at: int
    """Where its shape begins, which stands before its opcode."""

    inside_at: int
    """Where what is between its parentheses begins."""

    is_root: bool

    @property
    def inside(self) -> str:
        """All that stands between its parentheses: operands, a constant's value."""
        return self.line[self.inside_at : self.inside_end]

    @property
    def inside_end(self) -> int:
        """Where the parenthesis after its operands is.

        Raises:
            ValueError: there is none.
        """
        end = self.line.find(")", self.inside_at)
        is_nested = end < 0 or self.line.find("(", self.inside_at, end) >= 0
        return closing(self.line, self.inside_at - 1) if is_nested else end

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the instructions that it takes; a shape or a comment may precede a name."""
        if self.opcode in _WITHOUT_OPERANDS:
            return ()
        inside = self.inside
        if "%" in inside:
            return tuple(_OPERAND.findall(inside))
        return tuple(each.rpartition(" ")[2] for each in split(inside))

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the computations that it calls: a fusion's body, a sort's comparator."""
        end = self.line.find(", metadata={", self.inside_at)
        end = len(self.line) if end < 0 else end
        found = tuple(_CALLED.findall(self.line, self.inside_at, end))
        if branches := _BRANCHES.search(self.line, self.inside_at, end):
            found += tuple(_NAME.findall(branches[1]))
        return found

    @property
    def metadata(self) -> dict[str, str]:
        """Its name stack and where it comes from, as written: texts have quotes around them."""
        found = _METADATA.search(self.line, self.inside_at)
        return read_fields(found[1]) if found else {}


@dataclass(slots=True)
class Module:
    """A program as its lines."""

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""
    tables: dict[str, list[str]] = field(default_factory=dict)
    """The rows of files, functions, locations and frames, which ``stack_frame_id`` refers to."""

    unknown: list[str] = field(default_factory=list)
    """Lines of computations that are no instructions."""


def scan(text: str) -> Module:
    """Split a module into its parts."""
    found = Module()
    table: list[str] | None = None
    inside: list[Instruction] | None = None
    for line in text.splitlines():
        if inside is not None:
            if match := _INSTRUCTION.match(line):
                inside.append(_instruction(line, match))
            elif line.startswith("}"):
                inside = None
            else:
                found.unknown.append(line)
        elif table is not None:
            if line.strip():
                table.append(line.strip().partition(" ")[2])
            else:
                table = None
        elif line in _TABLES:
            table = found.tables[line] = []
        elif header := _HEADER.match(line):
            inside = found.computations[header[2]] = []
            found.entry = header[2] if header[1] else found.entry
    return found


def _instruction(line: str, match: re.Match[str]) -> Instruction:
    at = match.end()
    opcode = _OPCODE.search(line, at - 1)
    if opcode is None:
        return Instruction(match[2], "", line, at, at, is_root=match[1] is not None)
    return Instruction(match[2], opcode[1], line, at, opcode.end(), is_root=match[1] is not None)


def read_fields(metadata: str) -> dict[str, str]:
    """The texts and numbers of an instruction's metadata.

    >>> read_fields('op_name="jit(f)/mul" stack_frame_id=2')
    {'op_name': '"jit(f)/mul"', 'stack_frame_id': '2'}
    """
    return dict(_FIELD.findall(metadata))


def split(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets and quotes, without comments.

    Raises:
        ValueError: a bracket is not closed.
    """
    text = _COMMENT.sub("", text)
    parts, begin, depth = [], 0, 0
    for match in _BRACKET_OR_COMMA.finditer(text):
        if match[0] in _OPENING:
            depth += 1
        elif match[0] in _CLOSING:
            depth -= 1
        elif match[0] == "," and not depth:
            parts.append(text[begin : match.start()])
            begin = match.end()
    if depth:
        raise ValueError(_NOT_CLOSED)
    parts.append(text[begin:])
    return [stripped for each in parts if (stripped := each.strip())]


def closing(text: str, at: int) -> int:
    """Where the bracket that opens at a position is closed.

    Raises:
        ValueError: it is not closed.
    """
    depth = 0
    for match in _BRACKET_OR_COMMA.finditer(text, at):
        depth += (match[0] in _OPENING) - (match[0] in _CLOSING)
        if not depth:
            return match.end() - 1
    raise ValueError(_NOT_CLOSED)
