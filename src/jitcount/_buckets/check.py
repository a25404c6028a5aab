"""`check_padding`: whether a bucketed function returns what it returns without padding.

Two things go wrong. What is in the padding may get into a result: a sum over all places. And the
number of places may: a mean that divides by it, whatever is in them. So the function is called
without padding, and then with several values in it, NaN among them. Where a result differs, both
programs are computed operation by operation, side by side: it comes in at the operation whose
operands agree in what both have, and whose result does not.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._buckets.bucketed import Bucketed, Prepared
from jitcount._hlo.locations import sites_at
from jitcount._jax.evaluating import computed_in_steps
from jitcount._observe.call_site import UNKNOWN_SITE
from jitcount._observe.muting import muted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._jax.evaluating import Step

_finfo: Any = ml_dtypes.finfo
_iinfo: Any = ml_dtypes.iinfo

# What else is put into the padding; NaN is last, as it gets through where no number does.
_FILLS = (1, -1, 1000, math.nan)

_KEEPS_NAN = {"mul", "dot_general"}
"""Operations with a mask of zeros that keep out numbers, and not NaN."""


def check_padding(f: Bucketed, /, *args: Any, **kwargs: Any) -> None:
    """Fail unless a bucketed function returns for these arguments what it returns without padding.

    It is called without padding, which compiles it for that length, and then with other values in
    the padding, NaN among them. To check gradients, check the bucketed gradient.

    >>> import jax, jax.numpy as jnp, jitcount, numpy as np
    >>> @jax.jit
    ... def mean(x, n):
    ...     is_real = jnp.arange(len(x)) < n
    ...     return jnp.sum(jnp.where(is_real, x, 0)) / n
    >>> mean = jitcount.bucketed(mean, [8], axes={"x": 0}, length="n")
    >>> jitcount.check_padding(mean, np.array([1.0, 2.0, 6.0], np.float32))

    Args:
        f: what `jitcount.bucketed` returned.
        args: the arguments of a call, with values as they really come.
        kwargs: its keyword arguments.

    Raises:
        AssertionError: a result is another one; with the line where the padding comes in.
    """
    if not isinstance(f, Bucketed):
        raise TypeError(
            f"check_padding takes what jitcount.bucketed returned; f is a {type(f).__name__}"
        )
    kept = jax.tree.map(_copied, (args, kwargs))
    with muted():
        lengths = f.lengths(*kept)
        sizes = [_larger(d.sizes, n) for d, n in zip(f.dimensions, lengths, strict=True)]
        plain = _Call(f, kept, lengths, None)
        for fill in (None, *_FILLS):
            padded = _Call(f, kept, sizes, fill)
            if (found := _difference(plain, padded)) is not None:
                raise AssertionError(_message(f, plain, padded, lengths, found))


def _copied(leaf: Any) -> Any:
    """A copy on the host: the function may want its arguments donated."""
    if not isinstance(leaf, np.ndarray | jax.Array):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return np.array(leaf)


def _copies(kept: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, kept)


def _larger(sizes: Sequence[int], length: int) -> int:
    """The next size that has room for padding."""
    return next((size for size in sizes if size > length), max(2 * length, 1))


@dataclass(frozen=True)
class _Call:
    """A call of the function at some sizes, with something in its padding."""

    f: Bucketed
    kept: Any
    sizes: list[int]
    fill: Any

    @property
    def prepared(self) -> Prepared:
        """Its arguments, new ones each time."""
        args, kwargs = _copies(self.kept)
        return self.f.prepare(args, kwargs, list(self.sizes), self._filled())

    def _filled(self) -> Callable[[Any], Any] | None:
        return None if self.fill is None else functools.partial(_as_dtype, self.fill)

    def results(self) -> list[tuple[str, Any]]:
        """What it returns, cut back, each with its place."""
        call = self.prepared
        found = self.f.finish(call, self.f.jitted(*call.args, **call.kwargs))
        return [
            (jax.tree_util.keystr(path), _on_host(leaf))
            for path, leaf in jax.tree_util.tree_flatten_with_path(found)[0]
        ]

    def in_steps(self) -> tuple[list[Any], list[Step]]:
        """The same, operation by operation, with what they make; nothing is cut back."""
        call = self.prepared
        leaves, tree = jax.tree.flatten((call.args, call.kwargs))
        is_array = [isinstance(leaf, np.ndarray | np.generic | jax.Array) for leaf in leaves]
        arrays = [leaf for leaf, is_one in zip(leaves, is_array, strict=True) if is_one]

        def with_arrays(given: Sequence[Any]) -> Any:
            left = iter(given)
            pairs = zip(leaves, is_array, strict=True)
            whole = [next(left) if is_one else leaf for leaf, is_one in pairs]
            args, kwargs = jax.tree.unflatten(tree, whole)
            return self.f.jitted(*args, **kwargs)

        program = jax.make_jaxpr(with_arrays)(arrays)
        typed = [
            array if jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
            else np.asarray(array, aval.dtype)
            for array, aval in zip(arrays, program.in_avals, strict=True)
        ]  # fmt: skip
        return computed_in_steps(program, typed)


@dataclass(frozen=True)
class _Difference:
    """A result that is another one with padding."""

    place: str
    plain: Any
    padded: Any


def _as_dtype(fill: float, dtype: Any) -> Any:
    """A number as near to `fill` as a dtype has one."""
    if _is_inexact(dtype):
        return fill
    if dtype == np.bool_:
        return fill > 0
    limits = _iinfo(dtype)
    return limits.max if math.isnan(fill) else min(max(int(fill), limits.min), limits.max)


def _difference(plain: _Call, padded: _Call) -> _Difference | None:
    for (place, before), (_, after) in zip(plain.results(), padded.results(), strict=True):
        if not agree(before, after):
            return _Difference(place, before, after)
    return None


def _on_host(value: Any) -> Any:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def agree(before: Any, after: Any) -> bool:
    """Whether two arrays are the same, but for rounding, in what both have.

    Sums of other lengths are added in another order: half of the digits may differ, of the largest.
    """
    before, after = _on_host(before), _on_host(after)
    if before.ndim != after.ndim or before.dtype != after.dtype:
        return False
    both = tuple(slice(min(pair)) for pair in zip(before.shape, after.shape, strict=True))
    before, after = before[both], after[both]
    if not _is_inexact(before.dtype):
        return bool(np.array_equal(before, after))
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    bound = 4 * math.sqrt(float(_finfo(before.dtype).eps))
    before, after = before.astype(wide), after.astype(wide)
    is_finite = np.isfinite(before)
    if not np.array_equal(is_finite, np.isfinite(after)):
        return False
    if not np.array_equal(before[~is_finite], after[~is_finite], equal_nan=True):
        return False
    before, after = before[is_finite], after[is_finite]
    largest = np.abs(before).max(initial=0.0)
    return bool((np.abs(after - before) <= bound * largest + np.finfo(np.float32).tiny).all())


def _is_inexact(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, np.inexact))


# --- Where it comes in ----------------------------------------------------------------------------


def _message(
    f: Bucketed, plain: _Call, padded: _Call, lengths: Sequence[int], found: _Difference
) -> str:
    named = f"result{found.place}" if found.place else "its result"
    pairs = zip(f.dimensions, lengths, padded.sizes, strict=True)
    sizes = " and ".join(f"{d.name} {n} to {size}".strip() for d, n, size in pairs)
    what = "" if padded.fill is None else f" with {padded.fill} in the padding"
    said = f"{named} {_change(found)} when {f.__name__} is padded from {sizes}{what}"
    step = _entry(plain, padded)
    is_nan = padded.fill is not None and math.isnan(padded.fill)
    remedy = "leave the padding out there, by the mask or the true length"
    if is_nan and (step is None or step.primitive in _KEEPS_NAN):
        remedy = "numbers are kept out there, and NaN is not: use jnp.where, as 0 · NaN is NaN"
    elif padded.fill is None and not _is_told(f):
        remedy = "pass length= or mask= to jitcount.bucketed, and leave the padding out there"
    if step is None:
        return f"{said}: {remedy}"
    site = sites_at(step.stack).user
    at = f" at {site}" if site != UNKNOWN_SITE else ""
    return f"{said}; it comes in{at} ({step.primitive}): {remedy}"


def _is_told(f: Bucketed) -> bool:
    return any(d.length is not None or d.mask is not None for d in f.dimensions)


def _change(found: _Difference) -> str:
    """How a result differs, by its first element that does."""
    before, after = found.plain, found.padded
    if before.shape != after.shape:
        return f"has shape {before.shape} without padding and {after.shape}"
    for index in np.ndindex(before.shape):
        if not agree(before[index], after[index]) or not _near(before[index], after[index]):
            where = f"[{', '.join(map(str, index))}]" if index else ""
            return f"is {after[index]:.6g} instead of {before[index]:.6g}{where and f' at {where}'}"
    return "differs"


def _near(before: Any, after: Any) -> bool:
    return bool(before == after) or bool(np.isnan(before) and np.isnan(after))


def _entry(plain: _Call, padded: _Call) -> Step | None:
    """The first operation that lets padding in, of those that lead to a wrong result."""
    try:
        before, steps_before = plain.in_steps()
        after, steps_after = padded.in_steps()
    except Exception:  # noqa: BLE001 (the line is a help: what is wrong is known without it)
        return None
    if [s.primitive for s in steps_before] != [s.primitive for s in steps_after]:
        return None
    made_by: dict[int, int] = {}
    for number, step in enumerate(steps_after):
        for result in step.results:
            made_by.setdefault(id(result), number)  # some operations hand on what they are given
    differs: dict[int, bool] = {}
    for one, other in zip(steps_before, steps_after, strict=True):
        for was, made in zip(one.results, other.results, strict=True):
            differs[id(made)] = not agree(was, made)
    waiting = [made_by[id(made)] for was, made in zip(before, after, strict=True)
               if id(made) in made_by and differs[id(made)]]  # fmt: skip
    entries: set[int] = set()
    seen: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        wrong = [made_by[id(o)] for o in steps_after[number].operands if differs.get(id(o))]
        waiting += wrong
        if not wrong:
            entries.add(number)
    return steps_after[min(entries)] if entries else None
