"""Classes of programs that move numbers, generated: in loops, in place, and out of range.

Compilers turn copies into updates in place, move what is the same out of loops, and merge slices
of slices; what went wrong with it in public, `reported_cases` has. All numbers are whole.
"""

from __future__ import annotations

from functools import partial
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import whole
from jitcount._suite.generated import Member, case_of_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # One step of a loop: the table, a place and a row; returns the table and what was read.
    Step = Callable[[Any, Any, Any], tuple[Any, Any]]

    # The same in JAX and in NumPy.
    Steps = tuple[Step, Step]


# --- Slices and updates by hand -------------------------------------------------------------------


def _start(start: int, size: int, extent: int) -> int:
    """Where a slice begins: negative starts count from the end, and it is moved inside."""
    return min(max(start + extent * (start < 0), 0), extent - size)


def _sliced(x: np.ndarray, start: int, size: int) -> np.ndarray:
    start = _start(start, size, len(x))
    return x[start : start + size]


def _updated(x: np.ndarray, rows: np.ndarray, start: int) -> np.ndarray:
    start = _start(start, len(rows), len(x))
    return np.concatenate([x[:start], rows, x[start + len(rows) :]])


def _inside(places: Sequence[int], extent: int) -> list[int | None]:
    """Places as indices count them; None for those out of range."""
    moved = [place + extent * (place < 0) for place in places]
    return [place if 0 <= place < extent else None for place in moved]


# --- Loops ----------------------------------------------------------------------------------------

ROWS, _COLUMNS, _STEPS = 10, 4, 12


def _slice_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return x + 1, lax.dynamic_slice_in_dim(x, place, 2) * row


def _slice_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return x + 1, _sliced(x, place, 2) * row


def _update_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return lax.dynamic_update_slice_in_dim(x, row[None], place, 0), x[3]


def _update_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return _updated(x, row[None], place), x[3]


def _accumulate_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    old = lax.dynamic_slice_in_dim(x, place, 2)
    return lax.dynamic_update_slice_in_dim(x, old + row, place, 0), old[0]


def _accumulate_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    old = _sliced(x, place, 2)
    return _updated(x, old + row, place), old[0]


def _move_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    old = lax.dynamic_slice_in_dim(x, place, 3)
    return lax.dynamic_update_slice_in_dim(x, old, place + 1, 0), old.sum(0) + row


def _move_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    old = _sliced(x, place, 3)
    return _updated(x, old, place + 1), old.sum(0) + row


def _column_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    column = lax.dynamic_slice_in_dim(x, place, 1, 1) + row[0]
    return lax.dynamic_update_slice_in_dim(x, column, place - 1, 1), column[:, 0]


def _column_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    column = _sliced(x.T, place, 1) + row[0]
    return _updated(x.T, column, place - 1).T, column[0]


def _clip_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    places = jnp.stack([place, place + 3])
    return x - row, x.at[places].get(mode="clip")


def _clip_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    counted = [each + len(x) * (each < 0) for each in (place, place + 3)]
    return x - row, x[np.clip(counted, 0, len(x) - 1)]


def _fill_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    places = jnp.stack([place + 3, place])
    return x + row, x.at[places].get(mode="fill", fill_value=-7)


def _fill_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    missing = np.full_like(x[0], -7)
    inside = _inside([place + 3, place], len(x))
    return x + row, np.stack([missing if each is None else x[each] for each in inside])


def _scatter_step(way: str, x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    # The same place twice, which adding, and the smallest and the largest, allow in any order.
    places = jnp.stack([place, place + 1, place]) if way != "set" else jnp.stack([place, place + 1])
    rows = jnp.stack([row, 2 * row, 3 - row])[: len(places)]
    return getattr(x.at[places], way)(rows, mode="drop"), x[0]


def _scatter_by_hand(way: str, x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    ways: dict[str, Callable[..., Any]] = {
        "set": lambda _, new: new,
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
    }
    places = [place, place + 1, place] if way != "set" else [place, place + 1]
    changed = x.copy()
    for at, new in zip(_inside(places, len(x)), [row, 2 * row, 3 - row], strict=False):
        if at is not None:
            changed[at] = ways[way](changed[at], new)
    return changed, x[0]


def _window_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return jnp.concatenate([x[1:], row[None]]), x[0] + place


def _window_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    return np.concatenate([x[1:], row[None]]), x[0] + place


def _swap_step(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    a, b = place % 7, place % 5 + 4
    return x.at[jnp.stack([a, b])].set(x[jnp.stack([b, a])]), x[a] * row


def _swap_by_hand(x: Any, place: Any, row: Any) -> tuple[Any, Any]:
    a, b = place % 7, place % 5 + 4
    swapped = x.copy()
    swapped[a], swapped[b] = x[b], x[a]
    return swapped, x[a] * row


STEPS: dict[str, Steps] = {
    "slice": (_slice_step, _slice_by_hand),
    "update": (_update_step, _update_by_hand),
    "slice and update": (_accumulate_step, _accumulate_by_hand),
    "move": (_move_step, _move_by_hand),
    "column": (_column_step, _column_by_hand),
    "gather, clipped": (_clip_step, _clip_by_hand),
    "gather, filled": (_fill_step, _fill_by_hand),
    "window": (_window_step, _window_by_hand),
    "swap": (_swap_step, _swap_by_hand),
} | {
    f"scatter, {way}": (partial(_scatter_step, way), partial(_scatter_by_hand, way))
    for way in ("set", "add", "min", "max")
}

# Those whose gradient is a whole number: linear in the table.
LINEAR = (
    "slice",
    "update",
    "slice and update",
    "move",
    "column",
    "gather, clipped",
    "scatter, add",
)


def _scan(step: Step, x: Any, places: Any, rows: Any) -> Any:
    return lax.scan(lambda x, given: step(x, *given), x, (places, rows))


def _fori(step: Step, x: Any, places: Any, rows: Any) -> Any:
    """The same with a buffer that is written to, and a number of steps that is known."""
    read = jax.eval_shape(step, x, places[0], rows[0])[1]

    def body(number: Any, state: Any) -> Any:
        x, found = state
        x, one = step(x, places[number], rows[number])
        return x, found.at[number].set(one)

    begin = jnp.zeros((_STEPS, *read.shape), read.dtype)
    return lax.fori_loop(0, _STEPS, body, (x, begin))


def _while(step: Step, x: Any, places: Any, rows: Any) -> Any:
    """The same, until a condition that depends on the numbers is met."""
    read = jax.eval_shape(step, x, places[0], rows[0])[1]
    last = jnp.sum(places * 0) + len(places)

    def body(state: Any) -> Any:
        number, x, found = state
        place = lax.dynamic_index_in_dim(places, number, keepdims=False)
        x, one = step(x, place, rows[number])
        return number + 1, x, lax.dynamic_update_index_in_dim(found, one, number, 0)

    begin = jnp.int32(0), x, jnp.zeros((_STEPS, *read.shape), read.dtype)
    return lax.while_loop(lambda state: state[0] < last, body, begin)[1:]


def _many(step: Step, x: Any, places: Any, rows: Any) -> Any:
    """Three loops at once, from other places: slices become gathers, and updates scatters."""
    tables, starts = jnp.stack([x, x + 1, -x]), jnp.stack([places, places[::-1], -places])
    return jax.vmap(partial(_scan, step), (0, 0, None))(tables, starts, rows)


def _many_by_hand(step: Step, x: Any, places: Any, rows: Any) -> Any:
    tables, starts = (x, x + 1, -x), (places, places[::-1], -places)
    found = [_by_hand(step, *each, rows) for each in zip(tables, starts, strict=True)]
    return [np.stack(each) for each in zip(*found, strict=True)]


def _by_hand(step: Step, x: Any, places: Any, rows: Any) -> Any:
    found = []
    for place, row in zip(places.tolist(), rows, strict=True):
        x, one = step(x, place, row)
        found.append(one)
    return [x, np.stack(found)]


LOOPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "scan": (_scan, _by_hand),
    "fori_loop": (_fori, _by_hand),
    "while_loop": (_while, _by_hand),
    "scan, mapped": (_many, _many_by_hand),
}


def _table(dtype: str, seed: int) -> list[np.ndarray]:
    """A table, places in and out of range, and rows."""
    places = whole(_STEPS, most=13, dtype="int32", seed=seed)
    return [
        whole(ROWS, _COLUMNS, most=9, dtype=dtype, seed=seed + 1),
        places - (places > 0),
        whole(_STEPS, _COLUMNS, most=5, dtype=dtype, seed=seed + 2),
    ]


def _gradient(step: Step, x: Any, places: Any, rows: Any) -> Any:
    """The gradient, by the table, of what a loop reads and of what it leaves: it scatters."""

    def total(x: Any) -> Any:
        left, read = _scan(step, x, places, rows)
        weights = jnp.arange(read.size, dtype=read.dtype).reshape(read.shape) % 5
        return jnp.sum(left) + jnp.sum(weights * read)

    return jax.grad(total)(x)


def _gradient_by_hand(step: Step, x: Any, places: Any, rows: Any) -> Any:
    """By its definition, for each number of the table: it is linear."""

    def total(x: Any) -> Any:
        left, read = _by_hand(step, x, places, rows)
        weights = np.arange(read.size).reshape(read.shape) % 5
        return left.sum() + (weights * read).sum()

    none, found = total(x), np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += 1
        found[place] = total(moved) - none
    return found


def loops() -> Iterator[Member]:
    """Each step in each kind of loop, with integers or floats."""
    for number, (loop, step) in enumerate(combinations(LOOPS, STEPS)):
        dtype = ("float32", "int32")[number // 2 % 2]
        in_jax, in_numpy = LOOPS[loop]
        yield Member(
            f"{step} in {loop}, {dtype}",
            partial(_table, dtype, 10 * number + 1),
            partial(in_jax, STEPS[step][0]),
            partial(in_numpy, STEPS[step][1]),
            outputs=("what is left", "what was read"),
        )
    for number, step in enumerate(LINEAR):
        yield Member(
            f"gradient of {step} in scan",
            partial(_table, "float32", 1000 + 10 * number),
            partial(_gradient, STEPS[step][0]),
            partial(_gradient_by_hand, STEPS[step][1]),
        )


# --- Updates in place -----------------------------------------------------------------------------


def _kept(xp: Any, x: Any, u: Any) -> Any:
    return [_set(xp, x, 2, u), x.sum(0), x]


def _both(xp: Any, x: Any, u: Any) -> Any:
    return [_set(xp, x, 1, u), _set(xp, x, 4, u + 1)]


def _chain(xp: Any, x: Any, u: Any) -> Any:
    one = _set(xp, x, 3, u)
    two = _set(xp, one, 4, one[3] + x[4])
    return [_set(xp, two, 3, two[4] - x[3]), one]


def _reversed(xp: Any, x: Any, u: Any) -> Any:
    return [_set(xp, x, slice(None), x[::-1] + u), x - u]


def _halves(xp: Any, x: Any, u: Any) -> Any:
    half = len(x) // 2
    swapped = _set(xp, x, slice(0, half), x[half : 2 * half])
    return [_set(xp, swapped, slice(half, 2 * half), x[:half]), swapped[half] * u]


def _turned(xp: Any, x: Any, u: Any) -> Any:
    size = min(x.shape)
    square = x[:size, :size]
    changed = _set(xp, square, (slice(None), 1), square[1, :] + u[:size])
    return [changed, changed + changed.T, square.T]


def _stacked(xp: Any, x: Any, u: Any) -> Any:
    buffer = xp.zeros((3, *x.shape), x.dtype)
    for number, each in enumerate((x, x + u, x * 2)):
        buffer = _set(xp, buffer, number, each)
    return [buffer, buffer[1] - buffer[0]]


def _set(xp: Any, x: Any, where: Any, new: Any) -> Any:
    if xp is jnp:
        return x.at[where].set(new)
    changed = x.copy()
    changed[where] = new
    return changed


IN_PLACE: dict[str, tuple[Callable[..., Any], int]] = {
    "the old one is kept": (_kept, 3),
    "two updates of one array": (_both, 2),
    "a chain of updates": (_chain, 2),
    "an array over its reverse": (_reversed, 2),
    "two halves swapped": (_halves, 2),
    "a turned square": (_turned, 3),
    "a buffer filled in turn": (_stacked, 2),
}
_SIZES = ((8, 5), (300, 200))


def _operands(shape: tuple[int, int], seed: int) -> list[np.ndarray]:
    dtype = ("float32", "int32")[seed % 2]
    return [
        whole(*shape, most=100, dtype=dtype, seed=seed),
        whole(shape[1], most=100, dtype=dtype, seed=seed + 50),
    ]


def _text(shape: tuple[int, int]) -> str:
    return f"{shape[0]} by {shape[1]}"


def in_place() -> Iterator[Member]:
    """Each kind of update, of a small and of a large array."""
    for number, (kind, shape) in enumerate(combinations(IN_PLACE, _SIZES)):
        compute, count = IN_PLACE[kind]
        yield Member(
            f"{kind}, {_text(shape)}",
            partial(_operands, shape, number + 1),
            partial(compute, jnp),
            partial(compute, np),
            outputs=[str(output) for output in range(count)],
        )


def _shifted(by: int, along: int, xp: Any, x: Any, _: Any) -> Any:
    """An array with a part of itself written over it, some places further on."""
    n = x.shape[along]
    to, of = (slice(by, None), slice(0, n - by)) if by > 0 else (slice(0, by), slice(-by, None))
    rest = (slice(None),) * along
    base = x + 1
    return _set(xp, base, (*rest, to), base[(*rest, of)])


def shifted(reshape: Callable[[Any], Any]) -> Iterator[Member]:
    """Arrays written over themselves, by a few places, and what follows."""

    def then(compute: Callable[..., Any], xp: Any, *operands: Any) -> Any:
        return reshape(compute(xp, *operands))

    for number, (by, along, shape) in enumerate(combinations((1, -1, 3), (0, 1), _SIZES)):
        compute = partial(_shifted, by, along)
        yield Member(
            f"written over itself by {by} along axis {along}, {_text(shape)}",
            partial(_operands, shape, number + 1),
            partial(then, compute, jnp),
            partial(then, compute, np),
        )


# --- Slices of slices, out of range ---------------------------------------------------------------

_LENGTH = 10
_STARTS = np.array(
    list(combinations((-12, -3, 0, 3, 6, 9, 14), (-9, -1, 0, 1, 2, 5, 12))), np.int32
)


def _pad_by_hand(x: np.ndarray, _: int) -> np.ndarray:
    return np.pad(x, (2, 1), constant_values=9)


# First something is made of a row, from a start; then it is sliced or written to, from another.
FIRST: dict[str, Steps] = {
    "a dynamic slice": (
        lambda x, i, _: (lax.dynamic_slice_in_dim(x, i, 6), 0),
        lambda x, i, _: (_sliced(x, i, 6), 0),
    ),
    "a rolled array": (lambda x, i, _: (jnp.roll(x, i), 0), lambda x, i, _: (np.roll(x, i), 0)),
    "a slice": (lambda x, i, _: (x[2:9] + i, 0), lambda x, i, _: (x[2:9] + i, 0)),
    "a strided slice": (lambda x, i, _: (x[1::2] + i, 0), lambda x, i, _: (x[1::2] + i, 0)),
    "a reversed array": (lambda x, i, _: (x[::-1] + i, 0), lambda x, i, _: (x[::-1] + i, 0)),
    "a padded array": (
        lambda x, i, _: (jnp.pad(x, (2, 1), constant_values=9), i),
        lambda x, i, _: (_pad_by_hand(x, i), i),
    ),
    "two arrays joined": (
        lambda x, i, _: (jnp.concatenate([x, x[:3] + i]), 0),
        lambda x, i, _: (np.concatenate([x, x[:3] + i]), 0),
    ),
    "an updated array": (
        lambda x, i, u: (lax.dynamic_update_slice_in_dim(x, u, i, 0), 0),
        lambda x, i, u: (_updated(x, u, i), 0),
    ),
    "a gather": (
        lambda x, i, _: (x.at[jnp.arange(5) + i].get(mode="clip"), 0),
        lambda x, i, _: (
            x[[min(max(p + len(x) * (p < 0), 0), len(x) - 1) for p in range(i, i + 5)]],
            0,
        ),
    ),
}
THEN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sliced": (
        lambda x, j, _: lax.dynamic_slice_in_dim(x, j, 3),
        lambda x, j, _: _sliced(x, j, 3),
    ),
    "written to": (
        lambda x, j, u: lax.dynamic_update_slice_in_dim(x, u, j, 0),
        lambda x, j, u: _updated(x, u, j),
    ),
}


def is_merged(first: str, then: str) -> bool:
    """Whether XLA up to JAX 0.11.2 makes one slice of two, and moves the sum of starts inside."""
    return (first, then) in {("a dynamic slice", "sliced"), ("a rolled array", "sliced")}


def _chained(make: Step, use: Callable[..., Any], x: Any, u: Any, starts: Any) -> Any:
    """In JAX; with vmap they would be gathers."""

    def one(ij: Any) -> Any:
        made, more = make(x, ij[0], u)
        return use(made, ij[1], u) + more

    return lax.map(one, starts)


def _chained_by_hand(make: Step, use: Callable[..., Any], x: Any, u: Any, starts: Any) -> Any:
    found = []
    for i, j in starts.tolist():
        made, more = make(x, i, u)
        found.append(use(made, j, u) + more)
    return np.stack(found).astype(np.int32)


def _row(seed: int) -> list[np.ndarray]:
    return [
        whole(_LENGTH, most=100, dtype="int32", seed=seed),
        whole(2, most=100, dtype="int32", seed=seed + 50),
        _STARTS,
    ]


def chains() -> Iterator[tuple[str, str, Member]]:
    """Each pair of what is made of a row and what is done with it, from all starts."""
    for number, (first, then) in enumerate(combinations(FIRST, THEN)):
        (make, make_by_hand), (use, use_by_hand) = FIRST[first], THEN[then]
        member = Member(
            f"{first}, {then}",
            partial(_row, number + 1),
            partial(_chained, make, use),
            partial(_chained_by_hand, make_by_hand, use_by_hand),
        )
        yield first, then, member


MOVING_CLASS_CASES = (
    case_of_members(
        "class-loops",
        "slices, gathers, scatters and updates in every kind of loop, in and out of range",
        [*loops()],
    ),
    case_of_members(
        "class-in-place", "updates of arrays that are used before and after", [*in_place()]
    ),
    case_of_members(
        "class-donated",
        "the same with arrays that may be written over",
        [member for member in in_place() if member.name.endswith(_text(_SIZES[1]))],
        donated=True,
    ),
    case_of_members(
        "class-shifted",
        "arrays with a part of themselves written over them",
        [*shifted(lambda x: x)],
    ),
    case_of_members(
        "class-shifted-reshaped",
        "arrays with a part of themselves written over them, then reshaped",
        [*shifted(lambda x: x.reshape(1, *x.shape))],
    ),
    case_of_members(
        "class-slices",
        "slices and updates of what was moved, from starts out of range",
        [member for first, then, member in chains() if not is_merged(first, then)],
    ),
    case_of_members(
        "class-slices-merged",
        "slices of slices, from starts out of range",
        [member for first, then, member in chains() if is_merged(first, then)],
    ),
)
