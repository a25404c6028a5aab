"""A module that JAX has lowered, with operations added to it before it is compiled.

There is no public way to see a program between lowering and compiling, let alone to change it: a
transformation of the jaxpr would be traced as another function, with other names, call sites and
counts. So operations are put into a copy of the module; all else of it stays as JAX has made it.
Only what StableHLO itself promises to keep is written: its operations, by name.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jax._src.interpreters import mlir as _mlir
from jaxlib.mlir import ir

from jitcount._jax.lowering import bytecode_of
from jitcount._jax.replacing import main_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a program, with its element type as StableHLO writes it: ``"f32"``."""

    value: Any
    element: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are real numbers of 16 bits or more."""
        return self.element in _FLOATS

    @property
    def is_complex(self) -> bool:
        """Whether its elements are complex numbers."""
        return self.element.startswith("complex<")

    @property
    def splat(self) -> float | None:
        """The number that is in all places, where the program itself says so; else None."""
        owner = self.value.owner
        while getattr(owner, "name", "") == "stablehlo.broadcast_in_dim":
            owner = owner.operands[0].owner
        if getattr(owner, "name", "") != "stablehlo.constant":
            return None
        try:
            held = ir.DenseElementsAttr(owner.attributes["value"])
            return float(ir.FloatAttr(held.get_splat_value()).value) if held.is_splat else None
        except (TypeError, ValueError):  # whole numbers, or a constant in a form of its own
            return None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a program."""

    mlir: Any
    following: Any
    """The operation after it."""

    @property
    def name(self) -> str:
        """Its name without the dialect: ``"add"``."""
        return str(self.mlir.name.partition(".")[2])

    @property
    def operands(self) -> list[Array | None]:
        """What it is given; None for what is no array of a known shape."""
        return [_array(each) for each in self.mlir.operands]

    @property
    def results(self) -> list[Array | None]:
        """What it returns; None for what is no array of a known shape."""
        return [_array(each) for each in self.mlir.results]

    def attribute(self, name: str) -> str:
        """An attribute as text; empty where there is none."""
        return str(self.mlir.attributes[name]) if name in self.mlir.attributes else ""

    def integers(self, name: str) -> list[int]:
        """An attribute that is a list of integers."""
        return [int(each) for each in ir.DenseI64ArrayAttr(self.mlir.attributes[name])]

    def body(self) -> list[str]:
        """The names of the operations in its only region."""
        if len(self.mlir.regions) != 1 or len(self.mlir.regions[0].blocks) != 1:
            return []
        return [str(each.operation.name) for each in self.mlir.regions[0].blocks[0].operations]

    @property
    def call_target(self) -> str:
        """What a custom call calls."""
        return self.attribute("call_target_name").strip('"@')

    @property
    def callee(self) -> str:
        """The function of the module that it calls; empty for what calls none."""
        return self.attribute("callee").lstrip("@").strip('"') if self.name == "call" else ""

    def inner(self) -> list[Operation]:
        """The operations in the bodies of a loop or a branch, and in theirs."""
        return list(_operations_in(self.mlir)) if self.mlir.name in _HOLDERS else []

    @property
    def is_in_a_body(self) -> bool:
        """Whether it is in the body of a loop or a branch, or in a function that is called."""
        parent = self.mlir.parent.operation
        return parent.name != "func.func" or _sym_name(parent) != "main"

    def neighbours(self) -> list[str]:
        """The names of the operations that it has its operands from, and that use its result."""
        found: list[str] = []
        for operand in self.mlir.operands:
            owner = operand.owner
            while getattr(owner, "name", "") in _SHAPES:
                owner = owner.operands[0].owner
            found.append(str(getattr(owner, "name", "")))
        users = [use.owner for result in self.mlir.results for use in result.uses]
        while users:
            owner = getattr(users[-1], "operation", users[-1])
            users.pop()
            if owner.name in _SHAPES:
                users += [use.owner for use in owner.results[0].uses]
            found.append(str(owner.name))
        return [each.partition(".")[2] for each in found]

    def before(self) -> Builder:
        """Writes operations in front of this one."""
        return Builder(ir.InsertionPoint(self.mlir))

    def after(self) -> Builder:
        """Writes operations behind this one."""
        return Builder(ir.InsertionPoint(self.following))

    def uses(self) -> list[list[tuple[Any, int]]]:
        """Who uses each result now."""
        return [
            [(use.owner, use.operand_number) for use in result.uses] for result in self.mlir.results
        ]

    def give(self, operand: int, array: Array) -> None:
        """Let it compute with another operand."""
        self.mlir.operands[operand] = array.value


def use_instead(uses: Sequence[tuple[Any, int]], array: Array) -> None:
    """Let those who have used one array use another one."""
    for owner, operand in uses:
        getattr(owner, "operation", owner).operands[operand] = array.value


class Builder:
    """Writes operations of StableHLO at one place of a program."""

    def __init__(self, place: Any) -> None:
        self._place = place

    def apply(self, name: str, *arrays: Array, element: str = "", **attributes: str) -> Array:
        """Write an operation whose result has the shape of its last array.

        Attributes are written as StableHLO prints them.
        """
        last = arrays[-1]
        kind = _type(last.shape, element or last.element)
        read = {each: ir.Attribute.parse(text) for each, text in attributes.items()}
        return self._create(name, [each.value for each in arrays], kind, read)

    def compare(self, one: Array, direction: str, other: Array) -> Array:
        """Whether one array is less than another, ``"LT"``, or equal to it, ``"EQ"``."""
        text = f"#stablehlo<comparison_direction {direction}>"
        return self.apply("compare", one, other, element="i1", comparison_direction=text)

    def is_finite(self, array: Array) -> Array:
        """Where an array is neither infinite nor NaN."""
        return self.apply("is_finite", array, element="i1")

    def isnt_finite(self, array: Array) -> Array:
        """Where an array is infinite or NaN."""
        return self.apply("not", self.is_finite(array))

    def part_of(self, part: str, array: Array) -> Array:
        """The real or the imaginary part, ``"imag"``, of complex numbers."""
        return self.apply(part, array, element=array.element[len("complex<") : -1])

    def select(self, which: Array, one: Array, other: Array) -> Array:
        """One array where a condition holds, the other one elsewhere."""
        return self.apply("select", which, one, other)

    def full(self, number: float, like: Array, element: str = "") -> Array:
        """An array with one number in all places."""
        element = element or like.element
        kind = _type(like.shape, element)
        held: Any = (
            ir.IntegerAttr.get(kind.element_type, int(number))
            if element.startswith("i")
            else ir.FloatAttr.get(kind.element_type, float(number))
        )
        value = ir.DenseElementsAttr.get_splat(kind, held)
        return self._create("constant", [], kind, {"value": value})

    def convert(self, array: Array, element: str) -> Array:
        """An array with another type of elements."""
        return array if array.element == element else self.apply("convert", array, element=element)

    def bits(self, array: Array, element: str) -> Array:
        """The same bits as another type of elements."""
        return self.apply("bitcast_convert", array, element=element)

    def again(
        self, operation: Operation, operands: Sequence[Array], element: str, *, reduces: str = ""
    ) -> Array:
        """The same operation on other arrays, with a result of another element type.

        Where it has a body, that is `reduces`: an operation on two numbers.
        """
        shape = ir.RankedTensorType(operation.mlir.results[0].type).shape
        attributes = operation.mlir.attributes
        held = {attributes[i].name: attributes[i].attr for i in range(len(attributes))}
        for name in _ABOUT_RESULTS:
            held.pop(name, None)
        kind = _type(tuple(shape), element)
        values = [each.value for each in operands]
        made = self._create(operation.mlir.name, values, kind, held, regions=1 if reduces else 0)
        if reduces:
            self._write_body(made.value.owner, reduces, element)
        return made

    def reduce(self, array: Array, start: float, operation: str, dimensions: list[int]) -> Array:
        """All elements along some dimensions in one."""
        kept = tuple(n for i, n in enumerate(array.shape) if i not in dimensions)
        first = self.full(start, Array(None, array.element, ()))
        held = {"dimensions": ir.DenseI64ArrayAttr.get(dimensions)}
        kind = _type(kept, array.element)
        made = self._create("reduce", [array.value, first.value], kind, held, regions=1)
        self._write_body(made.value.owner, operation, array.element)
        return made

    def broadcast(self, array: Array, shape: tuple[int, ...], dimensions: list[int]) -> Array:
        """An array with more dimensions; `dimensions` are those that its own become."""
        held = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get(dimensions)}
        kind = _type(shape, array.element)
        return self._create("broadcast_in_dim", [array.value], kind, held)

    def iota(self, shape: tuple[int, ...], dimension: int) -> Array:
        """The place of each element along a dimension."""
        at = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
        return self._create("iota", [], _type(shape, "i32"), {"iota_dimension": at})

    def part(self, array: Array, begins: list[int], ends: list[int]) -> Array:
        """The elements from one corner up to another one."""
        held = {
            "start_indices": ir.DenseI64ArrayAttr.get(begins),
            "limit_indices": ir.DenseI64ArrayAttr.get(ends),
            "strides": ir.DenseI64ArrayAttr.get([1] * len(begins)),
        }
        shape = tuple(end - begin for begin, end in zip(begins, ends, strict=True))
        return self._create("slice", [array.value], _type(shape, array.element), held)

    def _create(
        self, name: str, operands: list[Any], kind: Any, held: dict[str, Any], regions: int = 0
    ) -> Array:
        with self._place:
            made = ir.Operation.create(
                name if "." in name else f"stablehlo.{name}",
                results=[kind],
                operands=operands,
                attributes=held,
                regions=regions,
            )
        return Array(made.results[0], str(kind.element_type), tuple(kind.shape))

    @staticmethod
    def _write_body(owner: Any, name: str, element: str) -> None:
        scalar = _type((), element)
        block = owner.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            made = ir.Operation.create(
                f"stablehlo.{name}", results=[scalar], operands=list(block.arguments)
            )
            ir.Operation.create("stablehlo.return", operands=[made.results[0]])


# An attribute that belongs to what an operation returned as it was.
_ABOUT_RESULTS = ("result_layouts", "mhlo.sharding", "sdy.sharding")

# Operations that only say which shape an array has.
_SHAPES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape"})

# Operations whose regions are a part of the program; those of others say how two numbers combine.
_HOLDERS = frozenset(
    {"func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case", "sdy.manual_computation"}
)


def operations_in(module: Any) -> Iterator[Operation]:
    """The operations of a module, those in the bodies of its loops and branches among them."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            yield from _operations_in(function.operation)


def functions_in(module: Any) -> dict[str, list[Operation]]:
    """The operations of each function of a module, by its name, without those in bodies."""
    return {
        _sym_name(each.operation): [
            Operation(operation.operation, None)
            for block in each.operation.regions[0].blocks
            for operation in block.operations
        ]
        for each in module.body.operations
        if each.operation.name == "func.func"
    }


def elements_passed(module: Any) -> int:
    """How many elements a module is given, and returns."""
    kind = main_function(module).type
    arrays = (_shape(each) for each in (*kind.inputs, *kind.results))
    return sum(math.prod(shape) for shape in arrays if shape is not None)


def _operations_in(holder: Any) -> Iterator[Operation]:
    for region in holder.regions:
        for block in region.blocks:
            every = [each.operation for each in block.operations]
            for operation, following in itertools.pairwise(every):
                yield Operation(operation, following)
                if operation.name in _HOLDERS:
                    yield from _operations_in(operation)


def rewritten(module: Any, rewrite: Callable[[Any], None] | None) -> bytes:
    """The bytecode of a copy of a module that a function has changed; without one, of the same."""
    if rewrite is None:
        return bytecode_of(module.operation)
    with _mlir.make_ir_context(), ir.Location.unknown():
        copy = ir.Module.parse(bytecode_of(module.operation))
        rewrite(copy)
        copy.operation.verify()
        return bytecode_of(copy.operation)


_ELEMENTS: dict[str, Callable[[], Any]] = {
    "f16": ir.F16Type.get,
    "bf16": ir.BF16Type.get,
    "f32": ir.F32Type.get,
    "f64": ir.F64Type.get,
    "i1": lambda: ir.IntegerType.get_signless(1),
    "i16": lambda: ir.IntegerType.get_signless(16),
    "i32": lambda: ir.IntegerType.get_signless(32),
    "i64": lambda: ir.IntegerType.get_signless(64),
    "complex<f32>": lambda: ir.ComplexType.get(ir.F32Type.get()),
    "complex<f64>": lambda: ir.ComplexType.get(ir.F64Type.get()),
}


def _sym_name(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _type(shape: Sequence[int], element: str) -> Any:
    return ir.RankedTensorType.get(list(shape), _ELEMENTS[element]())


def _array(value: Any) -> Array | None:
    shape = _shape(value.type)
    if shape is None:
        return None
    return Array(value, str(ir.RankedTensorType(value.type).element_type), shape)


def _shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of an array's type; None for a token or a tuple, or where it is not known yet."""
    try:
        ranked = ir.RankedTensorType(kind)
    except (TypeError, ValueError):
        return None
    return tuple(ranked.shape) if ranked.has_static_shape else None


def numbers_in(text: str) -> list[int]:
    """The whole numbers in an attribute's text."""
    return [int(each) for each in re.findall(r"-?\d+", text)]
