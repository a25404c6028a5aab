"""Classes of sharded programs that a released compiler of a TPU or GPU got wrong.

Loops whose arrays are spread over devices: compilers move communication out of them. And the
largest of an axis that is spread: compilers look for them on each device first. All numbers are
whole, so that every order of additions must return the same bits. `jitcount._miscompiles.known`
names the cases that are wrong where, and docs/as-if.md shows how that is seen without a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import whole
from jitcount._suite.jitted import same_bits
from jitcount._suite.sharded_cases import sharded_case

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS, _ROWS, _WIDTH = 3, 32, 5

_TABLE = whole(_ROWS, _WIDTH, most=8, seed=41)
_UPDATES = whole(_STEPS, 24, _WIDTH, most=8, seed=42)

# Many of them are the same, in one step and on one device as well as in several.
_PLACES = (np.arange(_STEPS * 24) ** 2 % 29).astype(np.int32).reshape(_STEPS, 24)


# --- Scatters -------------------------------------------------------------------------------------


def _added_in_loops(table: jax.Array, places: jax.Array, updates: jax.Array) -> list[jax.Array]:
    """Rows added to a table that each step carries whole, in each kind of loop."""

    def gradient(rows: tuple[jax.Array, jax.Array]) -> jax.Array:
        return jax.grad(lambda table: jnp.sum(table[rows[0]] * rows[1]))(table)

    def is_on(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        return (state[0] < _STEPS) & (state[1][0, 0] < 2**20)

    start, steps = jnp.zeros_like(table), (places, updates)
    return [
        lax.scan(lambda sums, rows: (sums.at[rows[0]].add(rows[1]), None), table, steps)[0],
        lax.scan(lambda sums, rows: (sums + gradient(rows), None), start, steps)[0],
        lax.fori_loop(
            0, _STEPS, lambda step, sums: sums.at[places[step]].add(updates[step]), table
        ),
        lax.while_loop(
            is_on,
            lambda state: (
                state[0] + 1,
                state[1].at[places[state[0]]].add(updates[state[0]]),
            ),
            (jnp.int32(0), table),
        )[1],
    ]


def _added_by_hand(table: np.ndarray, places: np.ndarray, updates: np.ndarray) -> list[np.ndarray]:
    sums = _step_by_step(np.add)(table, places, updates)[-1]
    return [sums, sums - table, sums, sums]


def _step_by_step(
    combine: np.ufunc,
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], list[np.ndarray]]:
    """Return a function that scatters, step by step, and returns the table after each of them."""

    def scatter(table: np.ndarray, places: np.ndarray, updates: np.ndarray) -> list[np.ndarray]:
        tables = [table]
        for at, rows in zip(places, updates, strict=True):
            tables.append(tables[-1].copy())
            combine.at(tables[-1], at, rows)
        return tables[1:]

    return scatter


def _scattered_in_scans(table: jax.Array, places: jax.Array, updates: jax.Array) -> list[jax.Array]:
    """Scatters that no sum after the loop can stand for."""

    def shown(sums: jax.Array, rows: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        sums = sums.at[rows[0]].add(rows[1])
        return sums, sums[:3]

    steps = (places, updates)
    return [
        lax.scan(lambda most, rows: (most.at[rows[0]].max(rows[1]), None), table, steps)[0],
        lax.scan(lambda least, rows: (least.at[rows[0]].min(rows[1]), None), table, steps)[0],
        *lax.scan(shown, table, steps),
    ]


def _scattered_by_hand(
    table: np.ndarray, places: np.ndarray, updates: np.ndarray
) -> list[np.ndarray]:
    sums = _step_by_step(np.add)(table, places, updates)
    return [
        _step_by_step(np.maximum)(table, places, updates)[-1],
        _step_by_step(np.minimum)(table, places, updates)[-1],
        sums[-1],
        np.stack([each[:3] for each in sums]),
    ]


# --- Sums, gathers and slices ---------------------------------------------------------------------


def _summed_in_scans(updates: jax.Array) -> list[jax.Array]:
    """Sums over the axis that is spread: added up, stacked, scaled, and of products."""
    nothing, square = jnp.zeros(_WIDTH, updates.dtype), jnp.zeros((5, 5), updates.dtype)
    return [
        lax.scan(lambda sums, rows: (sums + rows.sum(0), None), nothing, updates)[0],
        lax.scan(lambda count, rows: (count + 1, rows.sum(0)), 0, updates)[1],
        lax.scan(lambda s, rows: (s + rows.sum(0) * rows[:, 0].sum(), None), nothing, updates)[0],
        lax.scan(lambda s, rows: (s + rows.T @ rows, None), square, updates)[0],
    ]


def _summed_by_hand(updates: np.ndarray) -> list[np.ndarray]:
    each = updates.sum(1)
    return [
        each.sum(0),
        each,
        (each * each[:, :1]).sum(0),
        np.einsum("srw,srv->wv", updates, updates),
    ]


# Starts in one part, across two, at the last place, and before and behind all of them.
_STARTS = np.array([0, 3, 6, 13, 22, 27, 28, 31, 40, -3, -99], np.int32)
_PIECES = whole(len(_STARTS), _WIDTH, _WIDTH, most=8, seed=43)
_LAST_START = _ROWS - _WIDTH


def _picked_in_scans(table: jax.Array, places: jax.Array, starts: jax.Array) -> list[jax.Array]:
    """Rows and slices of a table that is spread."""

    def gather(sums: jax.Array, at: jax.Array) -> tuple[jax.Array, jax.Array]:
        return sums + table[at].sum(0), table[at]

    sums, rows = lax.scan(gather, jnp.zeros(_WIDTH, table.dtype), places)
    slices = lax.map(lambda start: lax.dynamic_slice_in_dim(table, start, _WIDTH), starts)
    return [sums, rows, slices]


def _clamped(starts: np.ndarray) -> list[int]:
    """Where slices really begin: from the end if negative, and at most where the last one fits."""
    return [min(max(start + _ROWS * (start < 0), 0), _LAST_START) for start in starts.tolist()]


def _picked_by_hand(table: np.ndarray, places: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    rows = table[places]
    slices = [table[start : start + _WIDTH] for start in _clamped(starts)]
    return [rows.sum((0, 1)), rows, np.stack(slices)]


def _updated_in_scan(table: jax.Array, starts: jax.Array, pieces: jax.Array) -> jax.Array:
    def update(table: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return lax.dynamic_update_slice_in_dim(table, step[1], step[0], 0), None

    return lax.scan(update, table, (starts, pieces))[0]


def _updated_by_hand(table: np.ndarray, starts: np.ndarray, pieces: np.ndarray) -> list[np.ndarray]:
    made = table.copy()
    for start, piece in zip(_clamped(starts), pieces, strict=True):
        made[start : start + _WIDTH] = piece
    return [made]


# --- The largest ----------------------------------------------------------------------------------

_LONG = 1024
_SHUFFLED = (np.arange(8 * _LONG) * 389 % _LONG + np.repeat(np.arange(8) % 3, _LONG)).astype(
    np.float32
).reshape(8, _LONG)  # fmt: skip


def _largest_by_hand(x: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    return [np.take_along_axis(x, order, 1), order.astype(np.int32)]


def _ordered(x: jax.Array) -> list[jax.Array]:
    return [
        jnp.argsort(x, 1).astype("int32"),
        lax.top_k(x, 4)[1] + 1,
    ]


def _ordered_by_hand(x: np.ndarray) -> list[np.ndarray]:
    return [
        np.argsort(x, axis=1, kind="stable").astype(np.int32),
        _largest_by_hand(x)[1] + 1,
    ]


# --- Pieces with and without margins --------------------------------------------------------------

_PIECE, _BEFORE, _AFTER = 2, 1, 2
_PARTS = 8


def _with_margins(x: jax.Array) -> jax.Array:
    """Each piece of two with zeros around it."""
    pieces = [x[_PIECE * n : _PIECE * (n + 1)] for n in range(_PARTS)]
    return jnp.concatenate([jnp.pad(piece, (_BEFORE, _AFTER)) for piece in pieces])


def _without_margins(x: jax.Array) -> jax.Array:
    starts = [(_BEFORE + _PIECE + _AFTER) * n + _BEFORE for n in range(_PARTS)]
    return jnp.concatenate([x[start : start + _PIECE] for start in starts])


def _reassembled(compact: jax.Array, padded: jax.Array) -> jax.Array:
    return _without_margins(_with_margins(compact) * padded) + _without_margins(
        _with_margins(_without_margins(padded))
    )


def _reassembled_by_hand(compact: np.ndarray, padded: np.ndarray) -> list[np.ndarray]:
    inside = padded.reshape(_PARTS, -1)[:, _BEFORE : _BEFORE + _PIECE].ravel()
    return [compact * inside + inside]


SHARDED_CLASS_CASES = (
    sharded_case(
        id="sharded-scatter-in-loops",
        claim="rows that lie on different devices, added to a whole table in scans and loops",
        compute=_added_in_loops,
        data=(_TABLE, _PLACES, _UPDATES),
        axes=(None, 1, 1),
        expected=same_bits(_added_by_hand),
    ),
    sharded_case(
        id="sharded-scatter-seen-in-loops",
        claim="extremes by scatters, and sums by scatters that each step of a scan returns",
        compute=_scattered_in_scans,
        data=(_TABLE, _PLACES, _UPDATES),
        axes=(None, 1, 1),
        expected=same_bits(_scattered_by_hand),
    ),
    sharded_case(
        id="sharded-scatter-to-spread-in-loops",
        claim="rows added in scans and loops to a table that is spread, too",
        compute=_added_in_loops,
        data=(_TABLE, _PLACES, _UPDATES),
        axes=(0, 1, 1),
        expected=same_bits(_added_by_hand),
    ),
    sharded_case(
        id="sharded-sums-in-loops",
        claim="sums over all devices in scans: added up, stacked, scaled, and of products",
        compute=_summed_in_scans,
        data=(_UPDATES,),
        axes=(1,),
        expected=same_bits(_summed_by_hand),
    ),
    sharded_case(
        id="sharded-gather-in-loops",
        claim="rows and slices of a table that is spread, in scans; starts beyond the ends, too",
        compute=_picked_in_scans,
        data=(_TABLE, _PLACES, _STARTS),
        axes=(0, 1, None),
        expected=same_bits(_picked_by_hand),
    ),
    sharded_case(
        id="sharded-updates-in-loops",
        claim="slices of a table that is spread, updated in a scan; starts beyond the ends, too",
        compute=_updated_in_scan,
        data=(_TABLE, _STARTS, _PIECES),
        axes=(0, None, None),
        expected=same_bits(_updated_by_hand),
    ),
    sharded_case(
        id="sharded-top-k",
        claim="the four largest of 1,024 on all devices, and their places",
        compute=lambda x: lax.top_k(x, 4),
        data=(_SHUFFLED,),
        axes=(1,),
        expected=same_bits(_largest_by_hand),
    ),
    sharded_case(
        id="sharded-order",
        claim="the order along an axis that is spread, and places of the largest, counted from 1",
        compute=_ordered,
        data=(_SHUFFLED,),
        axes=(1,),
        expected=same_bits(_ordered_by_hand),
    ),
    sharded_case(
        id="sharded-pieces",
        claim="pieces of an array that is spread, taken apart and put together with margins",
        compute=_reassembled,
        data=(
            whole(_PIECE * _PARTS, most=8, seed=44),
            whole((_BEFORE + _PIECE + _AFTER) * _PARTS, most=8, seed=45),
        ),
        axes=(0, 0),
        expected=same_bits(_reassembled_by_hand),
    ),
)
