"""The text of a module that JAX has made, with another function in place of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Shards:
    """How a program's arguments and results are divided among devices."""

    arguments: tuple[str, ...]
    """Shardings as XLA writes them: ``{devices=[8,1]<=[8]}``."""

    results: tuple[str, ...]
    argument_types: tuple[str, ...]
    """MLIR types of the parts that one device has: ``tensor<8x128xf32>``."""

    result_types: tuple[str, ...]


def main_function(module: Any) -> Any:
    """The function that a module runs."""
    for operation in module.body.operations:
        if operation.operation.name == "func.func" and _name(operation) == "main":
            return operation
    raise ValueError("a module without a main function")


def with_body(module: Any, text: str, shards: Shards | None) -> str:
    """A module's text with another function as its body; with shards, that of one device."""
    main = main_function(module)
    inputs, outputs = list(map(str, main.type.inputs)), list(map(str, main.type.results))
    attributes = main.operation.attributes
    given, made = (None, None) if shards is None else (shards.arguments, shards.results)
    heads = _attributed(inputs, attributes, "arg_attrs", given)
    results = _attributed(outputs, attributes, "res_attrs", made)
    held = ", ".join(f"{each.name} = {each.attr}" for each in _attributes(module.operation))
    left_out = {"func.func"} if shards is None else {"func.func", "sdy.mesh"}
    beside = [
        str(operation)
        for operation in module.body.operations
        if operation.operation.name not in left_out
    ]
    arguments = ", ".join(f"%arg{i}: {each}" for i, each in enumerate(heads))
    body = _call(inputs, outputs) if shards is None else _sharded(inputs, outputs, shards)
    return "\n".join(
        [
            f'module @"{_name(module)}" attributes {{{held}}} {{',
            *beside,
            f"func.func public @main({arguments}) -> ({', '.join(results)}) {{\n{body}\n}}",
            text.replace("func.func public @main", "func.func private @emulated", 1),
            "}",
        ]
    )


def _call(inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """The body of a function that calls another one."""
    call, made = _called([f"%arg{i}" for i in range(len(inputs))], inputs, outputs)
    returned = f"{', '.join(made)} : {', '.join(outputs)}" if outputs else ""
    return f"{call}\nfunc.return {returned}"


def _sharded(inputs: Sequence[str], outputs: Sequence[str], shards: Shards) -> str:
    """A body that calls another function on each device, with its part of the arguments.

    As `jax.shard_map` was written before Shardy.
    """
    lines = []
    for i, (whole, part, sharding) in enumerate(
        zip(inputs, shards.argument_types, shards.arguments, strict=True)
    ):
        lines += [
            _annotated(f"%whole{i}", "Sharding", f"%arg{i}", sharding, (whole, whole)),
            _annotated(f"%part{i}", "SPMDFullToShardShape", f"%whole{i}", _MANUAL, (whole, part)),
        ]
    given = [f"%part{i}" for i in range(len(inputs))]
    call, made = _called(given, shards.argument_types, shards.result_types)
    lines.append(call)
    for i, (name, part, whole, sharding) in enumerate(
        zip(made, shards.result_types, outputs, shards.results, strict=True)
    ):
        lines += [
            _annotated(f"%own{i}", "Sharding", name, _MANUAL, (part, part)),
            _annotated(f"%back{i}", "SPMDShardToFullShape", f"%own{i}", sharding, (part, whole)),
        ]
    back = ", ".join(f"%back{i}" for i in range(len(outputs)))
    lines.append(f"func.return {back} : {', '.join(outputs)}" if outputs else "func.return")
    return "\n".join(lines)


_MANUAL = "{manual}"


def _annotated(made: str, call: str, given: str, sharding: str, types: tuple[str, str]) -> str:
    return (
        f'{made} = stablehlo.custom_call @{call}({given}) {{mhlo.sharding = "{sharding}"}} : '
        f"({types[0]}) -> {types[1]}"
    )


def _called(
    given: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[str, list[str]]:
    """A call of the emulated function, and the names of its results."""
    count = len(outputs)
    head = {0: "", 1: "%made = "}.get(count, f"%made:{count} = ")
    types = f"({', '.join(inputs)}) -> ({', '.join(outputs)})"
    made = ["%made"] if count == 1 else [f"%made#{i}" for i in range(count)]
    return f"{head}func.call @emulated({', '.join(given)}) : {types}", made


def _name(operation: Any) -> str:
    return str(ir.StringAttr(operation.operation.attributes["sym_name"]).value)


def _attributes(operation: Any) -> list[Any]:
    attributes = operation.attributes
    found = (attributes[i] for i in range(len(attributes)))
    return [each for each in found if each.name != "sym_name"]


_SHARDINGS = frozenset({"sdy.sharding", "mhlo.sharding"})


def _attributed(
    types: Sequence[str], attributes: Any, name: str, shardings: Sequence[str] | None
) -> list[str]:
    """Types with their attributes, as in a function's head; with other shardings if given."""
    held = list(attributes[name]) if name in attributes else [None] * len(types)
    if shardings is not None:
        return [
            f"{kind} {{{', '.join([*_without_sharding(each), _sharding(sharding)])}}}"
            for kind, each, sharding in zip(types, held, shardings, strict=True)
        ]
    return [
        f"{kind} {each}" if str(each) not in {"None", "{}"} else kind
        for kind, each in zip(types, held, strict=True)
    ]


def _without_sharding(held: Any) -> list[str]:
    if held is None:
        return []
    found = (held[i] for i in range(len(held)))
    return [f"{each.name} = {each.attr}" for each in found if each.name not in _SHARDINGS]


def _sharding(text: str) -> str:
    return f'mhlo.sharding = "{text}"'
