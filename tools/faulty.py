"""Gives the backend a fault for a block: a primitive is lowered to something else.

The suite must notice a backend that computes wrongly, and no such backend is available. JAX looks
up how a primitive is lowered in two tables of rules, one for all platforms and one for each. Here a
rule is replaced by one that lowers an ordinary JAX function instead. So the fault is in every
program that is compiled in the block, under jit, vmap, grad and scan, over several devices and
outside of jit, and the programs themselves stay as they are.

No public interface does this. It is the one use of JAX's own that is not read-only: only the score
of the faults and its tests open such a block, never a user's program. A release that has no such
tables raises `AttributeError` before anything is changed.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
from jax._src.interpreters import mlir as _mlir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # Takes the original and an operation's operands and parameters; returns the faulty result.
    Replacement = Callable[..., Any]


@dataclass(slots=True)
class Original:
    """A primitive as it should be; a fault can call it."""

    primitive: Any
    devices: int
    """The number of devices that the compiler spreads the program over; one under `shard_map`."""

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        """Compute the primitive correctly."""
        return self.primitive.bind(*operands, **parameters)


@dataclass(slots=True)
class _Watched(Original):
    """An original that remembers what it was called with, and what it returned."""

    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        self.given, self.named = operands, parameters
        self.result = self.primitive.bind(*operands, **parameters)
        return self.result

    def was_called_with(self, operands: tuple[Any, ...], parameters: Mapping[str, Any]) -> bool:
        """Whether it was called with exactly these objects."""
        return (
            len(self.given) == len(operands)
            and all(one is other for one, other in zip(self.given, operands, strict=True))
            and self.named.keys() == parameters.keys()
            and all(value is parameters[name] for name, value in self.named.items())
        )


class _Thread(threading.local):
    """Whether a fault's own computation is being lowered: inside it all primitives are correct."""

    in_fault = False


_thread = _Thread()


@contextlib.contextmanager
def primitives_replaced(replacements: Mapping[str, Replacement]) -> Iterator[None]:
    """Lower the named primitives to something else; all caches are cleared before and after.

    A replacement is a function that JAX can trace, `replacement(original, *operands, **more)`.
    Inside it the original rules hold for all primitives: a faulty sum may use sums.
    """

    def exchanged(primitive: Any, rule: Any) -> Any:
        replacement = replacements.get(primitive.name)
        return None if replacement is None else _faulty_rule(primitive, rule, replacement)

    with _rules_exchanged(exchanged):
        yield


@dataclass(frozen=True, slots=True)
class Operation:
    """A primitive that was lowered, with the types of its operands and its parameters."""

    primitive: Any
    operands: tuple[Any, ...]
    parameters: Mapping[str, Any]
    devices: int

    def is_left_alone_by(self, replacement: Replacement) -> bool:
        """Whether a replacement only calls the original here, with exactly its own arguments."""
        is_alone = False

        def traced(*given: Any) -> Any:
            nonlocal is_alone
            original = _Watched(self.primitive, self.devices)
            found = replacement(original, *given, **self.parameters)
            is_alone = found is original.result and original.was_called_with(given, self.parameters)
            return found

        try:
            jax.eval_shape(traced, *self.operands)
        except Exception:  # noqa: BLE001 (what only its own program can trace, over named axes)
            return False
        return is_alone


@contextlib.contextmanager
def operations_heard() -> Iterator[list[Operation]]:
    """Collect the operations that are lowered in a block; all caches are cleared before it."""
    heard: list[Operation] = []

    def exchanged(primitive: Any, rule: Any) -> Any:
        def hearing(context: Any, *operands: Any, **parameters: Any) -> Any:
            types = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in context.avals_in)
            heard.append(Operation(primitive, types, parameters, _devices(context)))
            return rule(context, *operands, **parameters)

        return hearing

    with _rules_exchanged(exchanged):
        yield heard


@contextlib.contextmanager
def _rules_exchanged(exchanged: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Put other rules into JAX's tables, and restore the old ones however the block ends.

    Rules that JAX adds meanwhile stay: some modules register theirs only when they are needed.
    """
    tables = [_mlir._lowerings, *_mlir._platform_specific_lowerings.values()]  # noqa: SLF001
    found = [(table, primitive, entry) for table in tables for primitive, entry in table.items()]
    jax.clear_caches()
    try:
        for table, primitive, entry in found:
            rule = exchanged(primitive, entry.rule)
            if rule is not None:
                table[primitive] = _mlir.LoweringRuleEntry(rule, entry.inline)
        yield
    finally:
        for table, primitive, entry in found:
            table[primitive] = entry
        jax.clear_caches()


def _faulty_rule(primitive: Any, rule: Any, replacement: Replacement) -> Any:
    def faulty(context: Any, *operands: Any, **parameters: Any) -> Any:
        if _thread.in_fault:
            return rule(context, *operands, **parameters)
        module = context.module_context
        original = Original(primitive, _devices(context))

        def instead(*arrays: Any, **named: Any) -> Any:
            return replacement(original, *arrays, **named)

        # A cached lowering from inside the fault must not be used outside of it, nor the reverse.
        apart = module.replace(lowering_cache={}, cached_primitive_lowerings={})
        lower = _mlir.lower_fun(instead, multiple_results=primitive.multiple_results)
        _thread.in_fault = True
        try:
            return lower(context.replace(module_context=apart), *operands, **parameters)
        finally:
            _thread.in_fault = False

    return faulty


def _devices(context: Any) -> int:
    return getattr(context.module_context.axis_context, "num_devices", 1)
