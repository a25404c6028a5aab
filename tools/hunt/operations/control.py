"""Loops, branches and `vmap` around programs of the same grammar."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import MOST_ELEMENTS, Builder, lifts, proposal
from tools.hunt.operations.elementwise import operation
from tools.hunt.program import OPERATIONS, Program, evaluate
from tools.hunt.values import Spec, bounds, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.hunt.program import Step

# A reference that takes row by row does so for at most as many.
_MOST_ROWS = 33


def _like_carry(inner: Builder, carry: Spec) -> int:
    """A value of a body that has the carry's type, shape and bound, so that it can come again."""
    fitting = [
        i
        for i in reversed(range(len(inner.made)))
        if inner.spec(i).shape == carry.shape and inner.spec(i).dtype == carry.dtype
    ]
    return inner.fit(fitting[0], carry.size, nonnegative=not carry.negative)


def _for_carry(build: Builder) -> int | None:
    """A value that a loop can begin with; the bound of a type that wraps is its range."""
    value = build.pick(lambda spec: spec.dtype != "bool" and spec.elements <= MOST_ELEMENTS // 8)
    if value is None:
        return None
    low, high = bounds(build.spec(value).dtype)
    return build.fit(value, min(1000, high), nonnegative=low == 0)


# --- fori_loop and while_loop ---------------------------------------------------------------------


def _loop(step: Step, x: Any) -> Any:
    for count in range(step["start"], step["stop"], step["by"]):
        (x,) = evaluate(step["body"], [x, np.asarray(count)])
    return x


def _loop_source(step: Step, x: str, body: str) -> str:
    start, stop, by = step["start"], step["stop"], step["by"]
    if step["form"] == "fori":
        return f"lax.fori_loop({start}, {stop}, lambda i, c: {body}(c, jnp.int32(i)), {x})"
    return (
        f"lax.while_loop(lambda s: s[1] < {stop}, lambda s: ({body}(*s), s[1] + {by}), "
        f"({x}, jnp.int32({start})))[0]"
    )


operation("loop", _loop, _loop_source)


@proposal(2, nests=True)
def _loops(build: Builder) -> object:
    value = _for_carry(build)
    if value is None:
        return None
    carry = build.spec(value)
    form = build.choose(("fori", "while"))
    start, by = build.integer(0, 3), 1 if form == "fori" else build.integer(1, 4)
    stop = start + build.integer(0, 7)
    count = Spec("int32", (), 16, negative=False)
    inner = build.body([carry, count])
    output = _like_carry(inner, carry)
    body = inner.program([output], keep_inputs=True)
    return build.add("loop", [value], carry, body=body, form=form, start=start, stop=stop, by=by)


# --- scan -----------------------------------------------------------------------------------------


def _scan(step: Step, x: Any, rows: Any) -> Any:
    made = []
    order = range(rows.shape[0])
    for number in reversed(order) if step["reverse"] else order:
        x, row = evaluate(step["body"], [x, rows[number]])
        made.append(row)
    return x if step["last"] else np.stack(made[::-1] if step["reverse"] else made)


operation(
    "scan",
    _scan,
    lambda step, x, rows, body: (
        f"lax.scan({body}, {x}, {rows}, reverse={step['reverse']}, unroll={step['unroll']})"
        f"[{0 if step['last'] else 1}]"
    ),
)


@proposal(2, nests=True)
def _scans(build: Builder) -> object:
    value = _for_carry(build)
    if value is None:
        return None
    carry = build.spec(value)
    rows = build.pick(lambda spec: spec.rank > 0 and spec.shape[0] <= _MOST_ROWS)
    if rows is None:
        shape = (build.integer(1, 8), *carry.shape)
        rows = build.fresh(shape, carry.dtype)
    spec = build.spec(rows)
    inner = build.body([carry, replace(spec, shape=spec.shape[1:])])
    small = [
        i
        for i in reversed(range(len(inner.made)))
        if inner.spec(i).elements * spec.shape[0] <= MOST_ELEMENTS and inner.spec(i).rank < 8
    ]
    if not small:
        return None
    row = inner.choose(small)
    output = _like_carry(inner, carry)
    body = inner.program([output, row], keep_inputs=True)
    last = build.sometimes(2)
    of_row = inner.spec(row)
    made = carry if last else replace(of_row, shape=(spec.shape[0], *of_row.shape))
    return build.add(
        "scan",
        [value, rows],
        made,
        body=body,
        reverse=build.sometimes(3),
        unroll=build.choose((1, 1, 2)),
        last=last,
    )


# --- cond -----------------------------------------------------------------------------------------


def _branch(step: Step, where: Any, x: Any) -> Any:
    return evaluate(step["then"] if where else step["else"], [x])[0]


operation(
    "cond",
    _branch,
    lambda _, where, x, then, other: f"lax.cond({where}, {then}, {other}, {x})",
)


@proposal(1, nests=True)
def _branches(build: Builder) -> object:
    value = _for_carry(build)
    if value is None:
        return None
    spec = build.spec(value)
    where = build.pick(lambda one: one.dtype == "bool" and one.shape == ())
    if where is None:
        where = build.fresh((), "bool")
    branches = []
    for _ in range(2):
        inner = build.body([spec])
        branches.append(inner.program([_like_carry(inner, spec)], keep_inputs=True))
    return build.add("cond", [where, value], spec, **{"then": branches[0], "else": branches[1]})


# --- vmap -----------------------------------------------------------------------------------------


def _vmap(step: Step, *values: Any) -> Any:
    axes, body = step["axes"], step["body"]
    count = step["count"]
    rows = [
        x if axis is None else np.moveaxis(x, axis, 0) for x, axis in zip(values, axes, strict=True)
    ]
    if lifts(body):
        found = _lifted(body, count, rows, axes)
    else:
        each = [
            evaluate(
                body,
                [x if axis is None else x[row] for x, axis in zip(rows, axes, strict=True)],
            )[0]
            for row in range(count)
        ]
        found = np.stack(each)
    return np.moveaxis(found, 0, step["out"])


def _lifted(body: Program, count: int, rows: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """All rows at once: every value has the rows as its first axis."""

    def in_all(x: Any) -> Any:
        return np.broadcast_to(x, (count, *x.shape))

    passed = iter([in_all(x) if axis is None else x for x, axis in zip(rows, axes, strict=True)])
    values = [in_all(one.data()) if one.constant else next(passed) for one in body.inputs]
    for step in body.steps:
        lift = OPERATIONS[step.operation].lift
        assert lift is not None  # noqa: S101 (asked before)
        made = OPERATIONS[step.operation].compute(lift(step), *(values[i] for i in step.operands))
        values.append(wrapped(made, step.spec.dtype))
    return values[body.outputs[0]]


operation(
    "vmap",
    _vmap,
    lambda step, *names: (
        f"jax.vmap({names[-1]}, in_axes={step['axes']}, out_axes={step['out']})"
        f"({', '.join(names[:-1])})"
    ),
)


@proposal(4, nests=True)
def _vmaps(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank > 0)
    if value is None:
        return None
    spec = build.spec(value)
    axis = build.integer(0, spec.rank - 1)
    count = spec.shape[axis]
    row = replace(spec, shape=spec.shape[:axis] + spec.shape[axis + 1 :])
    operands, specs, axes = [value], [row], [axis]
    if build.sometimes(2):
        other = build.like(value) if build.sometimes(2) else None
        if other is None:
            other = build.fresh(build.shape(None, 300), spec.dtype)
            axes.append(None)  # type: ignore[arg-type]
            specs.append(build.spec(other))
        else:
            axes.append(axis)
            specs.append(replace(build.spec(other), shape=row.shape))
        operands.append(other)
    inner = build.body(specs, lifted=count > _MOST_ROWS)
    small = [
        i
        for i in reversed(range(len(inner.made)))
        if inner.spec(i).elements * count <= MOST_ELEMENTS and inner.spec(i).rank < 8
    ]
    # All that the body makes exists once for every row.
    if not small or any(one.spec.elements * count > 4 * MOST_ELEMENTS for one in inner.made):
        return None
    output = small[0]
    made = inner.spec(output)
    out = build.integer(0, made.rank)
    shape = (*made.shape[:out], count, *made.shape[out:])
    body = inner.program([output], keep_inputs=True)
    return build.add(
        "vmap",
        operands,
        replace(made, shape=shape),
        body=body,
        axes=tuple(axes),
        out=out,
        count=count,
    )
