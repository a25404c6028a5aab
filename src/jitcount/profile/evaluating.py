"""What one equation of a loop does in a turn, with the numbers that are of this turn alone.

A number that was written into an equation, or says where a slice begins, is an input of a scan
where it changes from turn to turn; what the equation did with it is done another way then.
"""

from __future__ import annotations

from typing import Any

import jax

from jitcount._jax import levels


class NotRolledError(Exception):
    """A loop that cannot be rolled up; the text says why."""


def done(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """What one equation makes, with the numbers of this turn."""
    name = equation.primitive.name
    if name == "slice" and (id(equation), "start_indices") in now:
        return [_sliced(equation, inputs[0], now[id(equation), "start_indices"])]
    if name == "pad" and (id(equation), "padding_config") in now:
        return [_padded(equation, inputs, now[id(equation), "padding_config"])]
    if name in levels.CALLS and _has_numbers(equation, now):
        return _called(equation, inputs, now)
    return levels.evaluate(equation, inputs)


def _has_numbers(equation: Any, now: dict[Any, Any]) -> bool:
    changed = {key[0] for key in now}
    return any(
        id(each) in changed or _has_numbers(each, now)
        for jaxpr in levels.inner_jaxprs(equation)
        for each in levels.equations_in(jaxpr)
    )


def _called(equation: Any, inputs: list[Any], now: dict[Any, Any]) -> list[Any]:
    """A call with numbers that change inside of it: in its place."""
    body = levels.body_of(equation)
    if equation.params.get("differentiated") and inputs:
        inputs = list(jax.lax.optimization_barrier(tuple(inputs)))
    held = dict(zip(body.jaxpr.constvars, body.consts, strict=True))
    held.update(zip(body.jaxpr.invars, inputs, strict=True))
    for each in levels.equations_in(body.jaxpr):
        given = [
            now.get((id(each), place), name.val if levels.is_literal(name) else held.get(name))
            if levels.is_literal(name)
            else held[name]
            for place, name in enumerate(each.invars)
        ]
        held.update(zip(each.outvars, done(each, given, now), strict=True))
    return [each.val if levels.is_literal(each) else held[each] for each in body.jaxpr.outvars]


def _sliced(equation: Any, operand: Any, begin: Any) -> Any:
    if any(step != 1 for step in equation.params["strides"] or ()):
        raise NotRolledError("it slices with strides, elsewhere in each turn")
    sizes = equation.outvars[0].aval.shape
    return jax.lax.dynamic_slice(operand, [begin[i] for i in range(len(sizes))], sizes)


def _padded(equation: Any, inputs: list[Any], config: Any) -> Any:
    """A pad whose widths change: the operand, put into an array of the padding."""
    if any(
        interior or low < 0 or high < 0 for low, high, interior in equation.params["padding_config"]
    ):
        raise NotRolledError("it pads in another way in each turn")
    operand, padding = inputs
    begin = [config[i, 0] for i in range(config.shape[0])]
    whole = jax.lax.full(equation.outvars[0].aval.shape, padding, operand.dtype)
    return jax.lax.dynamic_update_slice(whole, operand, begin)
