"""Every kind of operation on arrays that are spread over all devices, along the axis it works on.

Reductions of bits are not among them: XLA:CPU has no collective for those ("Unsupported reduction
computation").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from jitcount._numerics.expected import DECLARED, within, within_complex
from jitcount._numerics.rounding import Rounded
from jitcount._suite.arguments import binades, specials
from jitcount._suite.data import spread, whole
from jitcount._suite.function_cases import (
    expected_values,
    has_certain_result,
    may_be_off,
    true_values,
)
from jitcount._suite.functions import ONE_ARGUMENT, TWO_ARGUMENTS
from jitcount._suite.jitted import same_bits
from jitcount._suite.sharded_cases import sharded_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._numerics.expected import Expected

_ROWS, _COLUMNS = 64, 72
_BLOCK = whole(_ROWS, _COLUMNS, most=30, seed=110)
_SIGNS = whole(_ROWS, 5, most=1, seed=111)
_INTS = whole(_ROWS, 9, most=2**20, dtype="int32", seed=112)
_PLACES = (np.arange(130) * 37 % 80 - 8).astype(np.int32)  # some of them out of range
_DEFINITE = np.stack(
    [np.eye(5) * 4 + whole(5, 5, most=1, seed=s, dtype="float64") * 0.25 for s in range(_ROWS)]
)
_DEFINITE = ((_DEFINITE + _DEFINITE.transpose(0, 2, 1)) / 2).astype(np.float32)


def _mixed_arguments() -> tuple[np.ndarray, np.ndarray]:
    """Specials and numbers near one, as many as 64 devices can share, of two arguments."""
    x = np.concatenate([specials(), binades(count=0, near=8)])[:256]
    other = np.roll(x, 37)
    return x.astype(np.float32), other.astype(np.float32)


_X, _Y = _mixed_arguments()


_FUNCTIONS = (*ONE_ARGUMENT, *TWO_ARGUMENTS)
_ARGUMENTS = [(_X,)] * len(ONE_ARGUMENT) + [(_X, _Y)] * len(TWO_ARGUMENTS)


def _cleaned(function: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments, with ones in place of those that have no certain result.

    Nor has the sign of a zero: XLA:TPU joins what its devices have by adding it to zeros.
    """
    values = true_values(function, arguments)
    keep = has_certain_result(function, arguments) & ~(np.signbit(values) & (values == 0))
    return [np.where(keep, one, np.float32(1)) for one in arguments]


_CLEAN = [_cleaned(*each) for each in zip(_FUNCTIONS, _ARGUMENTS, strict=True)]


def _applied(*arrays: Any) -> list[Any]:
    found, at = [], 0
    for function, arguments in zip(_FUNCTIONS, _ARGUMENTS, strict=True):
        found.append(function.compute(*arrays[at : at + len(arguments)]))
        at += len(arguments)
    return found


def _applied_by_hand(*_: np.ndarray) -> list[Expected]:
    return [
        expected_values(function, *arguments)
        for function, arguments in zip(_FUNCTIONS, _CLEAN, strict=True)
    ]


def _arrays(x: Any, signs: Any, ints: Any, places: Any) -> list[Any]:
    """Operations along the axis that is spread."""
    start = places[1] + 60  # past the last row that it can begin at
    return [
        jnp.sum(x, 0),
        lax.reduce_max(x, (0,)),
        lax.reduce_min(x, (0,)),
        lax.reduce_prod(signs, (0,)),
        lax.argmax(x, 0, np.int32),
        lax.argmin(x, 0, np.int32),
        lax.reduce_and(ints > 0, (0,)),
        lax.reduce_or(ints > 2**19, (0,)),
        lax.cumsum(x, 0, reverse=True),
        lax.cummax(x + 1, 0),
        lax.cumprod(signs, 0),
        lax.sort(x, dimension=0),
        *lax.sort((x[:, 0], lax.iota(np.int32, _ROWS)), num_keys=1),
        lax.rev(x, (0,)),
        lax.transpose(x, (1, 0)),
        lax.reshape(x, (_COLUMNS, _ROWS)),
        lax.concatenate([x, x[3:10]], 0),
        lax.pad(x, np.float32(7), ((1, 2, 0), (0, 0, 1))),
        lax.slice(x, (5, 0), (61, 71), (3, 2)),
        lax.dynamic_slice(x, (start, places[0]), (9, 5)),
        lax.dynamic_update_slice(x, x[:7] * 2, (start, places[0])),
        x.at[places].get(mode="clip"),
        x.at[places].get(mode="fill", fill_value=-5),
        x.at[places].add(1, mode="drop"),
        x.at[places].max(9, mode="drop"),
        lax.reduce_window(x, -np.inf, lax.max, (3, 2), (2, 2), "SAME"),
        lax.select_n(x > x[::-1], x, -x),
        lax.broadcast_in_dim(x, (2, _ROWS, _COLUMNS), (1, 2)),
        lax.dot_general(x, x, (((0,), (0,)), ((), ()))),
        lax.cummin(-x, 0),
        x.at[places].set(3, mode="drop"),
        x.at[places].min(-9, mode="drop"),
        x.at[places].multiply(-1, mode="drop"),
        lax.conv_general_dilated(x[:, None], x[:6, None, :3], (2,), ((1, 0),)),
        lax.clamp(np.float32(-7), x, np.float32(9)),
        lax.convert_element_type(x, np.int32),
        lax.bitcast_convert_type(ints, np.uint32),
        jnp.stack(_of_bits(lax, ints)),
    ]


def _of_bits(module: Any, ints: Any) -> list[Any]:
    """Operations of bits, by JAX or by NumPy."""
    left, right = (
        ("shift_left", "shift_right_arithmetic") if module is lax else ("left_shift", "right_shift")
    )
    five = np.full(ints.shape, 5, np.int32)
    return [
        module.bitwise_and(ints, five),
        module.bitwise_or(ints, five),
        module.bitwise_xor(ints, five),
        module.bitwise_not(ints),
        getattr(module, left)(ints, five),
        getattr(module, right)(ints, five),
    ]


def _arrays_by_hand(
    x: np.ndarray, signs: np.ndarray, ints: np.ndarray, places: np.ndarray
) -> list[np.ndarray]:
    rows = np.where(places < 0, places + _ROWS, places)
    is_inside = (rows >= 0) & (rows < _ROWS)
    inside = rows[is_inside]
    start = (
        min(int(places[1]) + 60, _ROWS - 9),
        min(max(int(places[0]) + _COLUMNS, 0), _COLUMNS - 5),
    )
    sliced = x[start[0] : start[0] + 9, start[1] : start[1] + 5]
    updated = x.copy()
    at = min(int(places[1]) + 60, _ROWS - 7)
    updated[at : at + 7] = x[:7] * 2
    added, raised = x.copy(), x.copy()
    np.add.at(added, inside, 1)
    np.maximum.at(raised, inside, 9)
    hits = np.bincount(inside, minlength=_ROWS)
    is_hit = (hits > 0)[:, None]
    order = np.argsort(x[:, 0], kind="stable")
    padded = np.full((_ROWS + 3, 2 * _COLUMNS - 1), 7.0)
    padded[1:-2, ::2] = x
    windows = np.full((_ROWS + 1, _COLUMNS), -np.inf)
    windows[:-1] = x
    pooled = np.stack([windows[k : k + _ROWS - 1 + (k == 2) : 2][: _ROWS // 2] for k in range(3)])
    pooled = pooled.max(0)
    return [
        x.sum(0),
        x.max(0),
        x.min(0),
        signs.prod(0),
        x.argmax(0).astype(np.int32),
        x.argmin(0).astype(np.int32),
        (ints > 0).all(0),
        (ints > 2**19).any(0),
        np.cumsum(x[::-1], 0)[::-1],
        np.maximum.accumulate(x + 1),
        np.cumprod(signs, 0),
        np.sort(x, 0),
        x[order, 0],
        order.astype(np.int32),
        x[::-1],
        x.T,
        x.reshape(_COLUMNS, _ROWS),
        np.concatenate([x, x[3:10]]),
        padded,
        x[5:61:3, 0:71:2],
        sliced,
        updated,
        x[np.clip(rows, 0, _ROWS - 1)],
        np.where(is_inside[:, None], x[np.clip(rows, 0, _ROWS - 1)], -5),
        added,
        raised,
        np.maximum(pooled[:, ::2], pooled[:, 1::2]),
        np.where(x > x[::-1], -x, x),
        np.broadcast_to(x, (2, _ROWS, _COLUMNS)),
        x.T @ x,
        np.minimum.accumulate(-x),
        np.where(is_hit, 3, x),
        np.where(is_hit, np.minimum(x, -9), x),
        x * np.where(hits % 2 == 1, -1, 1)[:, None],
        _convolved(x),
        np.clip(x, -7, 9),
        x.astype(np.int32),
        ints.view(np.uint32),
        np.stack(_of_bits(np, ints)),
    ]


def _convolved(x: np.ndarray) -> np.ndarray:
    """Rows convolved with the beginnings of the first six, with a stride of two."""
    padded = np.pad(x, ((0, 0), (1, 0)))
    windows = np.stack([padded[:, at : at + 3] for at in range(0, _COLUMNS - 1, 2)], 1)
    return (windows @ x[:6, :3].T).transpose(0, 2, 1)


def _algebra(x: Any, definite: Any) -> list[Any]:
    """A problem for each row, of which each device has some; and transforms along the rows."""
    factor = lax.linalg.cholesky(definite, symmetrize_input=False)
    right = x[:, :5, None]
    solution = lax.linalg.triangular_solve(factor, right, left_side=True, lower=True)
    turned = factor.transpose(0, 2, 1)
    return [
        jnp.matmul(factor, turned, precision="highest") - definite,
        jnp.matmul(factor, solution, precision="highest") - right,
        lax.fft(x.T, "RFFT", (_ROWS,)),
    ]


def _algebra_by_hand(x: np.ndarray, definite: np.ndarray) -> list[Expected]:
    wide = x.astype(np.float64)
    spectrum = np.fft.rfft(wide.T)
    size = np.sqrt(np.sum(wide.T**2, 1))[:, None] + 0 * spectrum.real
    bound = 8 * 2.0**-23 * size

    def near(values: np.ndarray, scale: float) -> Expected:
        off = np.full(values.shape, 8 * 2.0**-23 * scale)
        return within(
            DECLARED,
            Rounded(values, 4 * off, off, np.full(values.shape, scale), "float32"),
            may=may_be_off(),
        )

    return [
        near(np.zeros(definite.shape), 4.0),
        near(np.zeros((_ROWS, 5, 1)), 60.0),
        within_complex(
            DECLARED,
            *(
                Rounded(p, 4 * bound, bound, size, "float32")
                for p in (spectrum.real, spectrum.imag)
            ),
        ),
    ]


_TOP = 5


def _tops_by_hand(x: np.ndarray, row: np.ndarray) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for one in (x, row):
        order = np.argsort(-one, -1, kind="stable")[..., :_TOP]
        found += [np.take_along_axis(one, order, -1), order.astype(np.int32)]
    return found


def _exchanged(x: Any) -> list[Any]:
    """What devices exchange, of parts that fill no tile; the same for any number of devices."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, columns, nowhere = PartitionSpec("data"), PartitionSpec(None, "data"), PartitionSpec()
    count = jax.device_count()
    ring = [(at, (at + 1) % count) for at in range(count)]

    def turned(part: Any) -> Any:
        wide = lax.pad(part, np.float32(0), ((0, 0, 0), (0, -part.shape[1] % count, 0)))
        return lax.all_to_all(wide, "data", 1, 0, tiled=True)

    def on_each(function: Any, outside: PartitionSpec) -> Any:
        every: dict[str, Any] = {
            "mesh": mesh,
            "in_specs": rows,
            "out_specs": outside,
            "check_vma": False,
        }
        return jax.shard_map(function, **every)(x)

    moved = on_each(lambda part: lax.ppermute(part, "data", ring), rows)
    return [
        on_each(lambda part: lax.psum(part.sum(0), "data"), nowhere),
        on_each(lambda part: lax.pmax(part.max(0), "data"), nowhere),
        on_each(lambda part: lax.pmin(part.min(0), "data"), nowhere),
        on_each(lambda part: lax.all_gather(part, "data", tiled=True), nowhere),
        jnp.roll(moved, -(x.shape[0] // count), 0),
        on_each(turned, columns)[:, : x.shape[1]],
    ]


def _unless_several() -> str:
    return "" if jax.device_count() > 1 else "one device has nothing to exchange"


SHARDED_OPERATION_CASES = (
    sharded_case(
        id="op-sharded-collectives",
        claim="sums, extremes, gathers and exchanges between devices, of parts that fill no tile",
        compute=_exchanged,
        data=(whole(72, 141, most=30, seed=116),),
        axes=(0,),
        expected=same_bits(lambda x: [x.sum(0), x.max(0), x.min(0), x, x, x]),
    ),
    replace(
        sharded_case(
            id="op-sharded-windows",
            claim="windows of one spread array, filled up with different numbers at its ends",
            compute=lambda x: [lax.cumsum(x, 0), lax.cummin(x, 0), lax.cummax(x, 0)],
            data=(_BLOCK,),
            axes=(0,),
            expected=same_bits(
                lambda x: [x.cumsum(0), np.minimum.accumulate(x), np.maximum.accumulate(x)]
            ),
        ),
        unsupported=_unless_several,
    ),
    sharded_case(
        id="op-sharded-functions",
        claim="every function, of arrays that are spread over all devices",
        compute=_applied,
        data=[one for arguments in _CLEAN for one in arguments],
        axes=[0] * sum(map(len, _CLEAN)),
        expected=_applied_by_hand,
    ),
    sharded_case(
        id="op-sharded-arrays",
        claim="arrays moved, sorted and reduced along the axis that is spread",
        compute=_arrays,
        data=(_BLOCK, _SIGNS, _INTS, _PLACES),
        axes=(0, 0, 0, None),
        expected=same_bits(_arrays_by_hand),
    ),
    sharded_case(
        id="op-sharded-top-k",
        claim="the largest along the axis that is spread, and of equal ones the first",
        compute=lambda x, row: [*lax.top_k(x, _TOP), *lax.top_k(row, _TOP)],
        data=(whole(9, 1024, most=60, seed=113), whole(1024, most=200, seed=114)),
        axes=(1, 0),
        expected=same_bits(_tops_by_hand),
    ),
    sharded_case(
        id="op-sharded-algebra",
        claim="factorisations of matrices on all devices, and transforms along the spread axis",
        compute=_algebra,
        data=(spread(_ROWS, 9, seed=115) * 60, _DEFINITE),
        axes=(0, 0),
        expected=_algebra_by_hand,
    ),
)
