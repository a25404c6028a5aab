"""Products: `dot_general` with any contracted and batch axes, and operands that are broadcast."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.hunt.grammar import MOST_ELEMENTS, MOST_PRODUCTS, Builder, proposal
from tools.hunt.operations.elementwise import operation, unchanged
from tools.hunt.operations.shapes import MOST_AXES
from tools.hunt.values import EXACT_IN_PRODUCTS, FLOATS, Spec

if TYPE_CHECKING:
    from tools.hunt.program import Step

_LETTERS = "abcdefghijklmnopqrstuvw"


def equation(step: Step) -> str:
    """The product in Einstein's notation; the rows of a lifted one are "..."."""
    (left, right), (left_batch, right_batch) = step["contract"], step["batch"]
    ranks = step["ranks"]
    one = list(_LETTERS[: ranks[0]])
    other = list(_LETTERS[ranks[0] : sum(ranks)])
    for mine, its in (*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)):
        other[its] = one[mine]
    result = [one[axis] for axis in left_batch]
    result += [x for axis, x in enumerate(one) if axis not in (*left, *left_batch)]
    result += [x for axis, x in enumerate(other) if axis not in (*right, *right_batch)]
    return f"...{''.join(one)},...{''.join(other)}->...{''.join(result)}"


def _dot(step: Step, x: Any, y: Any) -> Any:
    if step["exact"]:  # in float64, which has fast products
        found = np.einsum(equation(step), x.astype(float), y.astype(float), optimize=True)
        return np.rint(found).astype(np.int64)
    return np.einsum(equation(step), x, y)


operation(
    "dot",
    _dot,
    lambda step, x, y: (
        f"lax.dot_general({x}, {y}, ({step['contract']}, {step['batch']})"
        f", preferred_element_type={step.spec.dtype!r})"
    ),
    unchanged,
)


@proposal(14, liftable=True)
def _product(build: Builder) -> object:
    left = build.pick(lambda spec: spec.dtype != "bool" and spec.rank > 0)
    if left is None:
        return None
    spread = build.spec(left).rank < MOST_AXES - 1 and build.sometimes(2)
    if spread:
        left = _spread(build, left)
    spec = build.spec(left)
    roles = _roles(build, spec.rank)
    if spread:
        roles[0] = "batch"
    contract = [axis for axis, role in enumerate(roles) if role == "contract"]
    batch = [axis for axis, role in enumerate(roles) if role == "batch"]
    shared = [*batch, *contract]
    free = build.choose((1, 0, 1, 2) if spec.rank < MOST_AXES - 1 else (1, 0))
    depth = math.prod(spec.shape[axis] for axis in contract)
    room = min(MOST_ELEMENTS * depth, MOST_PRODUCTS) // max(1, spec.elements)
    ours = [spec.shape[axis] for axis in shared]
    if math.prod(ours) > MOST_ELEMENTS:
        return None
    room = max(1, min(room, MOST_ELEMENTS // math.prod(ours)))
    theirs = build.shape(free, room) if free else ()
    if len(batch) + (spec.rank - len(shared)) + len(theirs) > MOST_AXES:
        theirs = ()
    shape = (*theirs, *ours)
    order = _order(build, len(theirs), len(batch), len(contract))
    where = {place: axis for axis, place in enumerate(order)}
    wanted = tuple(shape[place] for place in order)
    right_of = {axis: where[len(theirs) + place] for place, axis in enumerate(shared)}
    right = _operand(build, wanted, spec.dtype, [right_of[axis] for axis in batch])
    most = FLOATS.get(spec.dtype, 1 << 62)
    limit = min(EXACT_IN_PRODUCTS, math.isqrt(most // depth)) if spec.is_float else most
    if limit < 1:
        return None
    left, right = build.fit(left, limit), build.fit(right, limit)
    one, other = build.spec(left), build.spec(right)
    kept = [extent for axis, extent in enumerate(one.shape) if roles[axis] == "free"]
    new = [wanted[where[place]] for place in range(len(theirs))]
    new_axes = sorted((where[place], extent) for place, extent in enumerate(new))
    result = (*(one.shape[axis] for axis in batch), *kept, *(extent for _, extent in new_axes))
    size = one.size * other.size * depth
    made = Spec(one.dtype, result, 0, one.negative or other.negative).with_(size=size)
    return build.add(
        "dot",
        [left, right],
        made,
        contract=(tuple(contract), tuple(right_of[axis] for axis in contract)),
        batch=(tuple(batch), tuple(right_of[axis] for axis in batch)),
        ranks=(one.rank, other.rank),
        exact=size < 1 << 53,
    )


def _roles(build: Builder, rank: int) -> list[str]:
    """What becomes of each axis: mostly the last is contracted, as in a product of matrices."""
    if build.sometimes(4):
        roles = [build.choose(("contract", "free", "free", "batch")) for _ in range(rank)]
        return roles if "contract" in roles or build.sometimes(6) else [*roles[:-1], "contract"]
    roles = ["free"] * rank
    roles[-2 if rank > 1 and build.sometimes(3) else -1] = "contract"
    for axis in range(rank - 2):
        if build.sometimes(2):
            roles[axis] = "batch"
    return roles


def _order(build: Builder, free: int, batch: int, contracted: int) -> tuple[int, ...]:
    """The order of the other operand's axes, which are numbered free, batch, contracted.

    Mostly as people write products: a batch of rows (q @ k.T), or of columns (x @ w).
    """
    theirs, rows = range(free), range(free, free + batch)
    depth = range(free + batch, free + batch + contracted)
    way = build.choose(("rows", "rows", "rows", "columns", "any"))
    if way == "rows":
        return (*rows, *theirs, *depth)
    if way == "columns":
        return (*rows, *depth, *theirs)
    return build.order(range(free + batch + contracted))


def _spread(build: Builder, value: int) -> int:
    """The value once for each row of a batch, as `vmap` makes it of what is not mapped."""
    spec = build.spec(value)
    rows = build.extent(max(1, MOST_ELEMENTS // (4 * spec.elements)))
    axes = tuple(range(1, spec.rank + 1))
    return build.add("broadcast", [value], replace(spec, shape=(rows, *spec.shape)), axes=axes)


def _operand(build: Builder, shape: tuple[int, ...], dtype: str, batch: list[int]) -> int:
    """The other operand: an earlier value, a new one, or one that is broadcast along its batch."""
    earlier = build.pick(lambda spec: spec.shape == shape and spec.dtype == dtype)
    if earlier is not None and not build.sometimes(3):
        return earlier
    if not batch or build.sometimes(3):
        return build.fresh(shape, dtype)
    axes = tuple(axis for axis in range(len(shape)) if axis not in batch)
    row = build.fresh(tuple(shape[axis] for axis in axes), dtype)
    spec = build.spec(row)
    return build.add("broadcast", [row], Spec(dtype, shape, spec.size, spec.negative), axes=axes)
