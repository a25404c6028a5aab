"""A backend with a fault, for the length of a block: a primitive that is lowered to something else.

The suite must notice a backend that computes wrongly, and there is none at hand. JAX looks up how a
primitive is lowered in two tables of rules, one for all platforms and one for each: here a rule is
exchanged for one that lowers an ordinary JAX function in its place. So the fault is in every
program that is compiled in the block, under jit, vmap, grad and scan, over several devices and
outside of jit, and the programs themselves stay as they are.

No public interface does this. It is the one use of JAX's own that is not read-only: only the score
of the faults and its tests open such a block, never a user's program. A release that has no such
tables raises `AttributeError` before anything is changed.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
from jax._src.interpreters import mlir as _mlir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # Given the original and an operation's operands and parameters, what it gives instead.
    Replacement = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Original:
    """A primitive as it should be; what a fault calls it with, it computes."""

    primitive: Any
    devices: int
    """Over how many devices the program is spread by the compiler; one under `shard_map`."""

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        return self.primitive.bind(*operands, **parameters)


class _Thread(threading.local):
    """Whether a fault's own computation is lowered just now: in it all is as it should be."""

    in_fault = False


_thread = _Thread()


@contextlib.contextmanager
def primitives_replaced(replacements: Mapping[str, Replacement]) -> Iterator[None]:
    """Lower the primitives of some names to something else; all caches are empty before and after.

    A replacement is a function that JAX can trace: `replacement(original, *operands, **parameters)`.
    Inside of it the original rules hold, for all primitives: a faulty sum may use sums.
    """

    def exchanged(primitive: Any, rule: Any) -> Any:
        replacement = replacements.get(primitive.name)
        return None if replacement is None else _faulty_rule(primitive, rule, replacement)

    with _rules_exchanged(exchanged):
        yield


@contextlib.contextmanager
def primitives_heard() -> Iterator[set[str]]:
    """The names of the primitives that are lowered in a block; all caches are empty before it."""
    names: set[str] = set()

    def exchanged(primitive: Any, rule: Any) -> Any:
        def heard(context: Any, *operands: Any, **parameters: Any) -> Any:
            names.add(primitive.name)
            return rule(context, *operands, **parameters)

        return heard

    with _rules_exchanged(exchanged):
        yield names


@contextlib.contextmanager
def _rules_exchanged(exchanged: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Put other rules into JAX's tables; they are out again however the block ends.

    Rules that JAX adds in the meantime stay: some modules come with theirs when they are needed.
    """
    tables = [_mlir._lowerings, *_mlir._platform_specific_lowerings.values()]
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
        original = Original(primitive, getattr(module.axis_context, "num_devices", 1))

        def instead(*arrays: Any, **named: Any) -> Any:
            return replacement(original, *arrays, **named)

        # What is lowered in there must not be taken for the same outside of it, nor the reverse.
        apart = module.replace(lowering_cache={}, cached_primitive_lowerings={})
        lower = _mlir.lower_fun(instead, multiple_results=primitive.multiple_results)
        _thread.in_fault = True
        try:
            return lower(context.replace(module_context=apart), *operands, **parameters)
        finally:
            _thread.in_fault = False

    return faulty
