"""Operations on each element: arithmetic, comparisons, choices, conversions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import Builder, proposal
from tools.hunt.program import OPERATIONS, Operation, Step
from tools.hunt.values import FLOATS, Spec, bounds

if TYPE_CHECKING:
    from collections.abc import Callable


def unchanged(step: Step) -> Step:
    """The step itself, which is the same on rows."""
    return step


def operation(
    name: str,
    compute: Callable[..., Any],
    source: Callable[..., str],
    lift: Callable[[Step], Step] | None = None,
) -> None:
    """Enter an operation into the table."""
    OPERATIONS[name] = Operation(name, compute, source, lift)


# --- Of one value, with constants ---------------------------------------------------------------


def _constant(step: Step, value: int) -> str:
    return f"jnp.{step.spec.dtype}({value})"


operation("neg", lambda _, x: -x, lambda _, x: f"-{x}", unchanged)
operation("abs", lambda _, x: np.abs(x), lambda _, x: f"lax.abs({x})", unchanged)
operation("sign", lambda _, x: np.sign(x), lambda _, x: f"lax.sign({x})", unchanged)
operation("floor", lambda _, x: x, lambda _, x: f"lax.floor({x})", unchanged)
operation("round", lambda _, x: x, lambda _, x: f"lax.round({x})", unchanged)
operation("square", lambda _, x: x * x, lambda _, x: f"lax.square({x})", unchanged)
operation("cube", lambda _, x: x**3, lambda _, x: f"lax.integer_pow({x}, 3)", unchanged)
operation(
    "not",
    lambda step, x: 1 - x if step.spec.dtype == "bool" else ~x,
    lambda _, x: f"~{x}",
    unchanged,
)
operation(
    "rem",
    lambda step, x: np.fmod(x, step["divisor"]),
    lambda step, x: f"lax.rem({x}, {_constant(step, step['divisor'])})",
    unchanged,
)
operation(
    "div",
    lambda step, x: np.sign(x) * (np.abs(x) // step["divisor"]),
    lambda step, x: f"lax.div({x}, {_constant(step, step['divisor'])})",
    unchanged,
)
operation(
    "clamp",
    lambda step, x: np.clip(x, step["low"], step["high"]),
    lambda step, x: (
        f"lax.clamp({_constant(step, step['low'])}, {x}, {_constant(step, step['high'])})"
    ),
    unchanged,
)
operation(
    "shift_left",
    lambda step, x: x << step["by"],
    lambda step, x: f"{x} << {_constant(step, step['by'])}",
    unchanged,
)
operation(
    "shift_right",
    lambda step, x: x >> step["by"],
    lambda step, x: f"{x} >> {_constant(step, step['by'])}",
    unchanged,
)
operation(
    "plus_constant",
    lambda step, x: x + step["value"],
    lambda step, x: f"{x} + {_constant(step, step['value'])}",
    unchanged,
)
operation(
    "times_constant",
    lambda step, x: x * step["value"],
    lambda step, x: f"{x} * {_constant(step, step['value'])}",
    unchanged,
)
operation(
    "convert",
    lambda step, x: (x != 0) if step.spec.dtype == "bool" else x,
    lambda step, x: f"{x}.astype({step.spec.dtype!r})",
    unchanged,
)


@proposal(4, liftable=True)
def _of_one(build: Builder) -> object:
    value = build.pick(lambda spec: spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    makers = [_power, _with_constant, _fitted, _sign_or_opposite]
    makers += [_rounded] if spec.is_float else []
    makers += [_of_integer] if spec.is_integer else []
    return build.choose(makers)(build, value)


def _fitted(build: Builder, value: int) -> int:
    return build.fit(value, build.choose((1, 2, 6, 100)), nonnegative=build.sometimes(3))


def _power(build: Builder, value: int) -> int:
    most = FLOATS.get(build.spec(value).dtype, 1 << 62)
    if build.sometimes(4):
        value = build.fit(value, round(most ** (1 / 3)) - 1)
        spec = build.spec(value)
        return build.add("cube", [value], spec.with_(size=spec.size**3))
    value = build.fit(value, int(most**0.5) - 1)
    spec = build.spec(value)
    negative = spec.negative and spec.is_integer  # it may wrap around
    return build.add("square", [value], spec.with_(size=spec.size**2, negative=negative))


def _with_constant(build: Builder, value: int) -> int:
    times = build.sometimes(2)
    dtype = build.spec(value).dtype
    most = FLOATS.get(dtype, 1 << 62)
    number = build.integer(max(-5, bounds(dtype)[0]), 7)
    value = build.fit(value, most // 7 if times else most - 7)
    spec = build.spec(value)
    size = spec.size * max(1, abs(number)) if times else spec.size + abs(number)
    changed = spec.with_(size=size, negative=spec.negative or number < 0)
    return build.add("times_constant" if times else "plus_constant", [value], changed, value=number)


def _sign_or_opposite(build: Builder, value: int) -> int:
    spec = build.spec(value)
    name = build.choose(("neg", "sign", "abs") if bounds(spec.dtype)[0] < 0 else ("neg", "sign"))
    if name == "sign":
        return build.add(name, [value], replace(spec, size=1))
    # The smallest integer has no opposite: it wraps around.
    size = spec.size + 1 if spec.is_integer and name == "neg" else spec.size
    full = spec.is_integer and spec.size >= bounds(spec.dtype)[1]
    negative = (name == "neg" and spec.size > 0) or (full and spec.negative)
    return build.add(name, [value], spec.with_(size=size, negative=negative))


def _rounded(build: Builder, value: int) -> int:
    return build.add(build.choose(("floor", "round")), [value], build.spec(value))


def _of_integer(build: Builder, value: int) -> int:
    spec = build.spec(value)
    name = build.choose(("not", "div", "shift_left", "shift_right"))
    if name == "not":
        return build.add(name, [value], spec.with_(size=1 << 40, negative=True))
    if name == "div":
        return build.add(name, [value], spec, divisor=build.choose((1, 2, 3, 7, 16)))
    by = build.integer(0, np.iinfo(spec.dtype).bits - 1)
    size = spec.size << by if name == "shift_left" else spec.size
    return build.add(name, [value], spec.with_(size=size), by=by)


@proposal(3, liftable=True)
def _convert(build: Builder) -> object:
    value = build.pick()
    assert value is not None  # noqa: S101 (there is at least one)
    for _ in range(1 + build.integer(0, 2)):
        value = build.cast(value, build.dtype())
    return value


# --- Of two values --------------------------------------------------------------------------------

_ARITHMETIC: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("{} + {}", np.add),
    "subtract": ("{} - {}", np.subtract),
    "multiply": ("{} * {}", np.multiply),
    "maximum": ("lax.max({}, {})", np.maximum),
    "minimum": ("lax.min({}, {})", np.minimum),
}
_BITWISE: dict[str, tuple[str, Callable[..., Any]]] = {
    "and": ("{} & {}", np.bitwise_and),
    "or": ("{} | {}", np.bitwise_or),
    "xor": ("{} ^ {}", np.bitwise_xor),
}
_COMPARISONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "equal": ("{} == {}", np.equal),
    "less": ("{} < {}", np.less),
    "at_least": ("{} >= {}", np.greater_equal),
    "not_equal": ("{} != {}", np.not_equal),
}


def _of_two_values(name: str, form: str, function: Callable[..., Any]) -> None:
    operation(name, lambda _, x, y: function(x, y), lambda _, x, y: form.format(x, y), unchanged)


for _name, (_form, _function) in (_ARITHMETIC | _BITWISE | _COMPARISONS).items():
    _of_two_values(_name, _form, _function)


@proposal(8, liftable=True)
def _arithmetic(build: Builder) -> object:
    left = build.pick(lambda spec: spec.dtype != "bool")
    if left is None:
        return None
    right = build.like(left)
    name = build.choose(list(_ARITHMETIC))
    most = FLOATS.get(build.spec(left).dtype, 1 << 62)
    if name == "multiply":
        most = int(most**0.5) - 1
    elif name in {"add", "subtract"}:
        most //= 2
    left, right = build.fit(left, most), build.fit(right, most)
    one, other = build.spec(left), build.spec(right)
    if name == "multiply":
        size = one.size * other.size
    elif name in {"add", "subtract"}:
        size = one.size + other.size
    else:
        size = max(one.size, other.size)
    negative = one.negative or other.negative or name == "subtract"
    spec = one.with_(size=size, negative=negative)
    return build.add(name, [left, right], spec)


@proposal(2, liftable=True)
def _bitwise(build: Builder) -> object:
    left = build.pick(lambda spec: not spec.is_float)
    if left is None:
        return None
    right = build.like(left)
    one, other = build.spec(left), build.spec(right)
    size = (1 << max(one.size, other.size).bit_length()) - 1
    negative = one.negative or other.negative
    spec = one.with_(size=size + negative, negative=negative)
    spec = replace(spec, size=1) if spec.dtype == "bool" else spec
    return build.add(build.choose(list(_BITWISE)), [left, right], spec)


@proposal(2, liftable=True)
def _compare(build: Builder) -> object:
    left = build.pick()
    assert left is not None  # noqa: S101
    right = build.like(left)
    spec = Spec("bool", build.spec(left).shape, 1, negative=False)
    return build.add(build.choose(list(_COMPARISONS)), [left, right], spec)


operation(
    "select",
    lambda _, where, x, y: np.where(where, x, y),
    lambda _, where, x, y: f"jnp.where({where}, {x}, {y})",
    unchanged,
)


@proposal(3, liftable=True)
def _select(build: Builder) -> object:
    left = build.pick()
    assert left is not None  # noqa: S101
    right, one = build.like(left), build.spec(left)
    other = build.spec(right)
    masks = [
        i
        for i in range(len(build.made))
        if build.spec(i).dtype == "bool" and build.spec(i).shape == one.shape
    ]
    if masks and build.sometimes(2):
        where = build.choose(masks)
    else:
        spec = Spec("bool", one.shape, 1, negative=False)
        where = build.add(build.choose(list(_COMPARISONS)), [left, right], spec)
    spec = replace(one, size=max(one.size, other.size), negative=one.negative or other.negative)
    return build.add("select", [where, left, right], spec)
