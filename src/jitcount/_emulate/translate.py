"""From the HLO that a target's compiler made to StableHLO that this machine compiles.

`translate` goes through a module instruction by instruction. Each opcode has a rule, a function in
`rules` that takes a `Context` and writes the same operation with the `Writer`; where the target
rounds what it multiplies, the rule writes that rounding too, and it is noted as a `Site`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jitcount._emulate.arithmetic import BFLOAT16, EXACT, Rounding
from jitcount._emulate.product_source import written_name
from jitcount._emulate.writer import Value, Values, Writer, flat_values
from jitcount._hlo import parser
from jitcount._hlo.locations import SourceTables
from jitcount._hlo.parser import Shape, flat
from jitcount._observe.call_site import UNKNOWN_SITE, CallSite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from jitcount._emulate.arithmetic import Arithmetic
    from jitcount._hlo.locations import DeepStacks
    from jitcount._hlo.parser import Instruction, Shapes


class NotKnownError(Exception):
    """Something in a target's program has no meaning here; the text names it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A product whose inputs the target rounds."""

    place: CallSite
    what: str
    """The product as its line calls it: ``@``."""

    rounding: Rounding


@dataclass(frozen=True, slots=True)
class Translated:
    """A program that this machine can compile."""

    text: str
    """A module with one function, ``main``."""

    parameter_types: tuple[str, ...]
    """The MLIR types of what ``main`` takes: ``tensor<8x128xf32>``."""

    result_types: tuple[str, ...]
    """The MLIR types of what ``main`` returns."""

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
    perturbation_seed: int = 0,
    products: Collection[CallSite] = (),
    deep: DeepStacks | None = None,
) -> Translated:
    """Rewrite an optimised HLO module.

    Args:
        text: what the target's compiler made.
        arithmetic: how the target computes.
        exact: lines whose products keep all bits all the same.
        devices: the number of devices that it is sharded over.
        is_float32: the program itself has no bfloat16.
        perturbation_seed: seed for perturbing unknown hardware rounding; 0 disables it.
        products: the lines of the products that the program had before it was compiled.
        deep: the stacks of its equations, which complete those in the module.

    Raises:
        NotKnownError: something in the module has no meaning here; the text names it.
    """
    from jitcount._emulate import rules  # noqa: F401, PLC0415 (they declare themselves)

    try:
        module = parser.parse(text)
        # Some products are to keep all bits: so what is rounded for them before must keep them.
        if is_float32 and (arithmetic is EXACT or exact):
            module = _in_float32(module)
        translation = Translation(
            module, arithmetic, exact, devices, is_float32, perturbation_seed, products
        )
        translation.places.deep = deep or translation.places.deep
        return _translated(translation)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise NotKnownError(str(error)) from error


def _in_float32(module: parser.Module) -> parser.Module:
    """A module with float32 wherever a compiler put bfloat16: no product is to be rounded."""

    def wide(shapes: Shapes) -> Shapes:
        if isinstance(shapes, tuple):
            return tuple(map(wide, shapes))
        return replace(shapes, element="f32") if shapes.element == "bf16" else shapes

    computations = {}
    for name, computation in module.computations.items():
        instructions = {
            each.name: replace(
                each,
                shapes=wide(each.shapes),
                operand_shapes=tuple(map(wide, each.operand_shapes)),
            )
            for each in computation.instructions
        }
        root = instructions[computation.root.name]
        computations[name] = replace(
            computation, instructions=tuple(instructions.values()), root=root
        )
    return replace(module, computations=computations, entry=computations[module.entry.name])


def _translated(translation: Translation) -> Translated:
    writer, entry = Writer(), translation.module.entry
    shapes = [flat(parameter.shapes) for parameter in entry.parameters]
    if any(len(each) != 1 for each in shapes):
        raise ValueError("arguments in a tuple")
    arguments = [Value(f"%arg{i}", shape.replace()) for i, (shape,) in enumerate(shapes)]
    made = flat_values(translation.run(writer, entry.name, arguments))
    wanted = flat(entry.root.shapes)
    results = [writer.convert(v, shape.element) for v, shape in zip(made, wanted, strict=True)]
    heads = ", ".join(f"{value.name}: {value.shape.type}" for value in arguments)
    names = ", ".join(value.name for value in results)
    result_types = tuple(value.shape.type for value in results)
    types = ", ".join(result_types)
    lines = [*writer.lines, f'"func.return"({names}) : ({types}) -> ()']
    return Translated(
        f"func.func public @main({heads}) -> ({types}) {{\n" + "\n".join(lines) + "\n}\n",
        tuple(value.shape.type for value in arguments),
        result_types,
        tuple(translation.sites),
        _longest_chain(translation.module) >= _LONG,
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


@dataclass
class Translation:
    """The state of one `translate`: the module, how to compute it, and what was found so far."""

    module: parser.Module
    arithmetic: Arithmetic
    exact: Collection[str] = ()
    """Lines whose products are computed without rounding."""

    devices: int = 1
    """The number of devices that the program is sharded over."""

    is_float32: bool = False
    """Whether the program itself has no bfloat16: then all of it is the compiler's rounding."""

    perturbation_seed: int = 0
    """Seed for perturbing unknown hardware rounding; 0 disables it."""

    products: Collection[CallSite] = ()
    """The lines of the products that the program had before it was compiled."""

    sites: list[Site] = field(default_factory=list)
    noted: set[str] = field(default_factory=set)
    """The names of the products that are in `sites`."""

    is_in_loop: bool = False
    """Whether the instruction at hand is part of a loop that the target made of a fusion."""

    is_wide: bool = False
    """Whether 16 bits are computed in float32 and stay so: inside of a reduction."""

    collected: dict[str, Values] = field(default_factory=dict)
    """The operands of each operation between devices, by its name."""

    places: SourceTables = field(init=False)

    def __post_init__(self) -> None:
        self.places = SourceTables(self.module.tables)

    def run(self, writer: Writer, name: str, arguments: Sequence[Values], root: str = "") -> Values:
        """Write a computation's operations, for arguments; returns its root, or another."""
        computation = self.module.computations[name]
        found: dict[str, Values] = {}
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                found[instruction.name] = arguments[int(instruction.inside)]
            else:
                operands = [found[operand] for operand in instruction.operands]
                found[instruction.name] = self._write(Context(self, writer, instruction, operands))
        return found[root or computation.root.name]

    def _write(self, context: Context) -> Values:
        rule = RULES.get(context.opcode)
        if rule is None:
            raise NotKnownError(f"the operation {context.opcode}")
        if context.opcode in _COLLECTIVES:
            self.collected[context.instruction.name] = tuple(context.operands)
        return rule(context)

    def note_rounding(self, product: Instruction, rounding: Rounding) -> bool:
        """Note that a product rounds; returns whether it is to be rounded in this run."""
        place = self._place(product)
        if product.name not in self.noted:  # a kernel multiplies block by block
            self.noted.add(product.name)
            self.sites.append(Site(place, self._name_of(product, place), rounding))
        return place not in self.exact

    def note_narrowed(self, product: Instruction) -> None:
        """Note a product that takes only what was rounded for it before, wherever that was."""
        shapes = product.operand_shapes
        is_narrow = all(isinstance(each, Shape) and each.element == "bf16" for each in shapes)
        if self.is_float32 and is_narrow:
            self.note_rounding(product, _NARROWED)

    def _name_of(self, product: Instruction, place: CallSite) -> str:
        """What people call a product: as its line does."""
        op_name = product.metadata.get("op_name", '""').strip('"')
        if place.startswith(NEAR):
            return op_name.rpartition("/")[2] or product.opcode
        return written_name(place, self.places.stack_of(product.metadata), op_name)

    def _place(self, product: Instruction) -> CallSite:
        """The line that a product comes from.

        A kernel that a compiler makes of several lines says none. It has that of the one line near
        it of whose products some are nowhere else; where there are more, it is near a line.
        """
        place = self.places.site_of(product.metadata)
        if place is not UNKNOWN_SITE:
            return place
        near = self._place_near(product)
        missing = {
            line
            for line, count in Counter(self.products).items()
            if (line.file, line.function) == (near.file, near.function)
            and count > self._products_at[line]
        }
        if len(missing) == 1:
            return missing.pop()
        if near is UNKNOWN_SITE:
            return near
        return CallSite(f"{NEAR}{near}", near.file, near.line, near.function)

    @cached_property
    def _products_at(self) -> Counter[CallSite]:
        """How many products of the target's program come from each line."""
        every = self.module.instructions.values()
        products = (each for each in every if each.opcode in _PRODUCTS)
        return Counter(self.places.site_of(each.metadata) for each in products)

    def _place_near(self, instruction: Instruction) -> CallSite:
        """The line of what an instruction takes, or of what that takes."""
        waiting, seen = list(instruction.operands), 0
        while waiting and seen < _MOST_LOOKED_AT:
            seen += 1
            other = self.module.instructions[waiting.pop(0)]
            place = self.places.site_of(other.metadata)
            if place is not UNKNOWN_SITE:
                return place
            waiting += other.operands
            if other.opcode == "fusion":
                (name,) = other.called("calls")
                waiting.append(self.module.computations[name].root.name)
        return UNKNOWN_SITE

    @contextlib.contextmanager
    def wide(self) -> Iterator[None]:
        """Compute 16 bits in float32, without rounding them, until the block ends."""
        before, self.is_wide = self.is_wide, True
        try:
            yield
        finally:
            self.is_wide = before


# How a line is called that an instruction only comes near to, and how far that is looked for.
NEAR = "near "
_MOST_LOOKED_AT = 16

_PRODUCTS = frozenset({"convolution", "dot"})

_NARROWED = Rounding(BFLOAT16)
"""What XLA:TPU does to the inputs of a product already where it moves them."""

_COLLECTIVES = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all"}
)


@dataclass(slots=True)
class Context:
    """What a rule needs: an instruction, what its operands became, and where to write."""

    translation: Translation
    writer: Writer
    instruction: Instruction
    operands: list[Values]
    """Arrays, or tuples of arrays."""

    @property
    def arrays(self) -> list[Value]:
        """The operands of an instruction that takes no tuple."""
        found = [each for each in self.operands if isinstance(each, Value)]
        if len(found) != len(self.operands):
            raise TypeError(f"{self.opcode} of a tuple")
        return found

    @property
    def opcode(self) -> str:
        """The instruction's name in HLO."""
        return self.instruction.opcode

    @property
    def attributes(self) -> dict[str, str]:
        """The instruction's attributes, as HLO writes them."""
        return self.instruction.attributes

    def numbers(self, name: str) -> tuple[int, ...]:
        """The numbers in an attribute; empty where the instruction has no such attribute."""
        return self.instruction.numbers(name)

    def called(self, name: str) -> str:
        """The name of the one computation in an attribute."""
        (found,) = self.instruction.called(name)
        return found

    @property
    def result(self) -> Shape:
        """The shape of the one array that the instruction returns, without its layout."""
        return self.instruction.shape.replace()

    @property
    def results(self) -> list[Shape]:
        """The shapes of all arrays that the instruction returns, without their layouts."""
        return [shape.replace() for shape in flat(self.instruction.shapes)]

    def structured(self, values: Sequence[Value]) -> Values:
        """The arrays that were made, as the instruction returns them: one, or a tuple."""
        return values[0] if isinstance(self.instruction.shapes, Shape) else tuple(values)

    def changed(self, **changes: Any) -> Context:
        """A context with some fields of its instruction changed."""
        return replace(self, instruction=replace(self.instruction, **changes))

    def same(self, attributes: str = "") -> Value:
        """Write the operation that StableHLO has by the same name, with the same operands."""
        name = self.opcode.replace("-", "_")
        return self.writer.op(name, self.arrays, self.result, attributes)

    def run(self, name: str) -> Values:
        """Write the computation in an attribute, for the instruction's operands."""
        return self.translation.run(self.writer, self.called(name), self.operands)

    def region(self, name: str) -> Callable[[Writer, list[Value]], Sequence[Value]]:
        """A function that writes the computation in an attribute, as `Writer.region` takes it."""
        called = self.called(name)
        return lambda inner, values: flat_values(self.translation.run(inner, called, values))

    def as_declared(self, value: Value) -> Value:
        """A value with the elements that the instruction declares.

        XLA:TPU rounds what a product takes already where it moves it: a copy of float32 may be one
        of bfloat16.
        """
        return self.writer.convert(value, self.instruction.shape.element)


Rule = Callable[[Context], Values]

RULES: dict[str, Rule] = {}
"""The rule of each opcode."""


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Declare a rule for opcodes."""

    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return declare
