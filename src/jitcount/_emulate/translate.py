"""From the HLO that a target's compiler made to StableHLO that this machine compiles."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount._emulate.arithmetic import BFLOAT16, EXACT, Rounding
from jitcount._emulate.writer import Value, Values, Writer, flat_values
from jitcount._hlo import parser
from jitcount._hlo.locations import Places
from jitcount._hlo.parser import flat
from jitcount._observe.call_site import UNKNOWN_SITE, CallSite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from jitcount._emulate.arithmetic import Arithmetic
    from jitcount._hlo.parser import Computation, Instruction, Shape


class NotKnownError(Exception):
    """Something in a target's program has no meaning here; the text names it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A product whose inputs the target rounds."""

    place: CallSite
    what: str
    """The operation as JAX calls it: ``dot_general``."""

    rounding: Rounding


@dataclass
class Translation:
    """One program on its way."""

    module: parser.Module
    arithmetic: Arithmetic
    exact: Collection[str] = ()
    """Lines whose products are computed without rounding."""

    devices: int = 1
    """Over how many it is sharded."""

    is_float32: bool = False
    """Whether the program itself has no bfloat16: then all of it is the compiler's rounding."""

    draw: int = 0
    """Which of some chances moves what is the hardware's own; 0 for none."""

    sites: list[Site] = field(default_factory=list)
    is_in_loop: bool = False
    """Whether the instruction at hand is part of a loop that the target made of a fusion."""

    is_wide: bool = False
    """Whether 16 bits are computed in float32 and stay so: inside of a reduction."""

    collected: dict[str, Values] = field(default_factory=dict)
    """Of operations between devices, what each was given; by their names."""

    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.module.tables)

    def run(self, writer: Writer, name: str, arguments: Sequence[Values], root: str = "") -> Values:
        """Write a computation's operations here, for arguments; it gives its root, or another."""
        computation = self.module.computations[name]
        found: dict[str, Values] = {}
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                found[instruction.name] = arguments[int(instruction.inside)]
            else:
                operands = [found[operand] for operand in instruction.operands]
                found[instruction.name] = self.write(writer, instruction, operands)
        return found[root or computation.root.name]

    def write(self, writer: Writer, instruction: Instruction, operands: list[Values]) -> Values:
        """Write one operation by the rule for its opcode."""
        rule = RULES.get(instruction.opcode)
        if rule is None:
            raise NotKnownError(f"the operation {instruction.opcode}")
        if instruction.opcode in COLLECTIVES:
            self.collected[instruction.name] = tuple(operands)
        return rule(self, writer, instruction, operands)

    def declared(self, writer: Writer, instruction: Instruction, value: Value) -> Value:
        """A value with the elements that an instruction declares.

        XLA:TPU rounds what a product takes already where it moves it: a copy of float32 may be one
        of bfloat16. That is a rounding as any other; where it is not to be, the value stays as it
        is, and what follows takes it so.
        """
        element = instruction.shape.element
        if value.shape.element == element:
            return value
        is_narrower = value.shape.element == "f32" and element == "bf16"
        if is_narrower and self.is_float32 and not self.site(instruction, _NARROWED):
            return value
        return writer.convert(value, element)

    def site(self, instruction: Instruction, rounding: Rounding) -> bool:
        """Note a product that is rounded; whether it is to be, this time."""
        what = instruction.metadata.get("op_name", '""').strip('"').rpartition("/")[2]
        place = self._place(instruction)
        self.sites.append(Site(place, what or instruction.opcode, rounding))
        return place not in self.exact

    def _place(self, instruction: Instruction) -> CallSite:
        """The line that it comes from; where a compiler made it up, near what it takes."""
        place = self.places.of(instruction.metadata)
        if place is not UNKNOWN_SITE:
            return place
        waiting, seen = list(instruction.operands), 0
        while waiting and seen < _MOST_LOOKED_AT:
            seen += 1
            other = self.module.instructions[waiting.pop(0)]
            place = self.places.of(other.metadata)
            if place is not UNKNOWN_SITE:
                return CallSite(f"{NEAR}{place}", place.file, place.line, place.function)
            waiting += other.operands
            if other.opcode == "fusion":
                (name,) = other.called("calls")
                waiting.append(self.module.computations[name].root.name)
        return UNKNOWN_SITE

    def folded(self, instruction: Instruction, shape: Shape) -> None:
        """Note a constant that the compiler has rounded itself; no line makes that exact again."""
        if shape.size > 1:
            self.site(instruction, _NARROWED)

    @contextlib.contextmanager
    def wide(self) -> Iterator[None]:
        """Let 16 bits be float32 for a block."""
        before, self.is_wide = self.is_wide, True
        try:
            yield
        finally:
            self.is_wide = before

    def apply(self, name: str) -> Callable[[Writer, list[Value]], Sequence[Value]]:
        """The body of a region that is a computation."""
        return lambda writer, values: flat_values(self.run(writer, name, values))


_NARROWED = Rounding(BFLOAT16)

COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all"}
)

# How a line is called that an instruction only comes near to, and how far that is looked for.
NEAR = "near "
_MOST_LOOKED_AT = 16

RULES: dict[str, Callable[[Translation, Writer, Instruction, list[Values]], Values]] = {}


def rule(*opcodes: str) -> Callable[..., Callable[..., Values]]:
    """Declare a rule for opcodes."""

    def declare(function: Callable[..., Values]) -> Callable[..., Values]:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return declare


@dataclass(frozen=True, slots=True)
class Translated:
    """A program that this machine can compile."""

    text: str
    """A module with one function, ``main``."""

    parameter_types: tuple[str, ...]
    """The MLIR types of its arguments: ``tensor<8x4xf32>``."""

    result_types: tuple[str, ...]

    sites: tuple[Site, ...]

    has_long_chains: bool = False
    """Whether a thousand operations on elements and more follow each other."""


def translate(  # noqa: PLR0913 (each is one more way to run the same text)
    text: str,
    arithmetic: Arithmetic = EXACT,
    *,
    exact: Collection[str] = (),
    devices: int = 1,
    is_float32: bool = False,
    draw: int = 0,
) -> Translated:
    """Rewrite an optimised HLO module.

    Args:
        text: what the target's compiler made.
        arithmetic: how the target computes.
        exact: lines whose products keep all bits all the same.
        devices: over how many it is sharded.
        is_float32: the program itself has no bfloat16.
        draw: which of some chances moves what is the hardware's own; 0 for none.

    Raises:
        NotKnownError: what it is that has no meaning here.
    """
    from jitcount._emulate import rules  # noqa: F401, PLC0415 (they declare themselves)

    if is_float32 and arithmetic is EXACT:
        text = text.replace("bf16[", "f32[")
    try:
        module = parser.parse(text)
        translation = Translation(module, arithmetic, exact, devices, is_float32, draw)
        body, parameter_types, result_types = _main(translation, module.entry)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise NotKnownError(str(error)) from error
    has_long_chains = _longest_chain(module) >= _LONG
    return Translated(
        body, parameter_types, result_types, tuple(translation.sites), has_long_chains
    )


def _longest_chain(module: parser.Module) -> int:
    """The most operations on elements that stand side by side, for XLA:CPU to fuse."""
    return max(
        sum(each.opcode in _ON_ELEMENTS for each in computation.instructions)
        for computation in module.computations.values()
    )


_ON_ELEMENTS = frozenset(
    {"add", "and", "compare", "multiply", "or", "select", "subtract", "xor"}
    | {"shift-left", "shift-right-logical"}
)
_LONG = 1000


def _main(
    translation: Translation, entry: Computation
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The function, and the types of its arguments and results."""
    writer = Writer()
    shapes = [flat(parameter.shapes) for parameter in entry.parameters]
    if any(len(each) != 1 for each in shapes):
        raise ValueError("arguments in a tuple")
    arguments = [Value(f"%arg{i}", each.of()) for i, (each,) in enumerate(shapes)]
    made = flat_values(translation.run(writer, entry.name, arguments))
    wanted = flat(entry.root.shapes)
    results = [writer.convert(v, shape.element) for v, shape in zip(made, wanted, strict=True)]
    heads = ", ".join(f"{value.name}: {value.shape.type}" for value in arguments)
    result_types = tuple(value.shape.type for value in results)
    types, given = ", ".join(result_types), ", ".join(value.name for value in results)
    lines = [*writer.lines, f'"func.return"({given}) : ({types}) -> ()']
    text = f"func.func public @main({heads}) -> ({types}) {{\n" + "\n".join(lines) + "\n}\n"
    return text, tuple(value.shape.type for value in arguments), result_types
