"""What a bucketed function returns, cut back to the true lengths.

Which axes those are is found by tracing the function at another size, where they have another
length. The sizes of a plan are traced at some time anyway, and JAX keeps what it has traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jitcount._buckets.padding import abstract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._buckets.bucketed import Bucketed, Dimension, Prepared

Cut: TypeAlias = "tuple[int, int, int]"
"""An axis, the number of its length, and how much longer than that it is."""

Cuts: TypeAlias = "dict[int, tuple[Cut, ...]]"
"""The axes to cut, by the number of the result."""


def cut(result: Any, rules: Sequence[Cut], lengths: Sequence[int]) -> Any:
    """A result without what the padding made of it: an array of NumPy's, unless it is traced."""
    kept = [slice(None)] * result.ndim
    for axis, number, more in rules:
        kept[axis] = slice(max(lengths[number] + more, 0))
    if isinstance(result, jax.core.Tracer) or jnp.issubdtype(
        result.dtype, jax.dtypes.prng_key
    ):  # keys are nowhere but on a device
        return result[tuple(kept)]
    return np.asarray(result)[tuple(kept)]


def fixed_cuts(out_axes: Any, result: Any, dimensions: Sequence[Dimension]) -> Cuts:
    """The cuts that the user asks for, by the structure of the result, as `jax.vmap` takes it."""
    each = [out_axes] if not dimensions[0].name else [out_axes.get(d.name) for d in dimensions]
    cuts: dict[int, tuple[Cut, ...]] = {}
    for number, axes in enumerate(each):
        pairs: list[tuple[int | None, Any]] = []
        jax.tree.map(
            lambda axis, part, to=pairs: to.extend((axis, leaf) for leaf in jax.tree.leaves(part)),
            axes,
            result,
            is_leaf=lambda part: part is None,
        )
        for place, (axis, leaf) in enumerate(pairs):
            if axis is None:
                continue
            if not -leaf.ndim <= axis < leaf.ndim:
                raise ValueError(
                    f"out_axes names axis {axis} of a result without it; "
                    f"its shape is {tuple(leaf.shape)}"
                )
            cuts[place] = (*cuts.get(place, ()), (axis % leaf.ndim, number, 0))
    return cuts


def found_cuts(f: Bucketed, call: Prepared, result: Any) -> Cuts:
    """The cuts of all axes that are as much longer as a size is larger."""
    cuts: dict[int, tuple[Cut, ...]] = {}
    leaves = [(jax.tree_util.keystr(path), getattr(leaf, "shape", ())) for path, leaf
              in jax.tree_util.tree_flatten_with_path(result)[0]]  # fmt: skip
    for number, size in enumerate(call.sizes):
        other = _another_size(f.dimensions[number], size)
        sizes = [*call.sizes[:number], other, *call.sizes[number + 1 :]]
        try:
            shapes = _shapes_at(f, call, sizes)
        except Exception as error:
            raise ValueError(
                f"{f.__name__} cannot be traced at size {other}, which shows what of its result "
                "is padding: pass out_axes"
            ) from error
        if len(shapes) != len(leaves):
            raise ValueError(
                f"{f.__name__} returns {len(leaves)} arrays at size {size} and {len(shapes)} at "
                f"size {other}: pass out_axes"
            )
        for place, ((where, shape), resized) in enumerate(zip(leaves, shapes, strict=True)):
            if len(shape) != len(resized):
                raise ValueError(_not_cut(f, where, shape, resized, size, other))
            for axis, (here, there) in enumerate(zip(shape, resized, strict=True)):
                if here == there:
                    continue
                if there - here != other - size or any(c[0] == axis for c in cuts.get(place, ())):
                    raise ValueError(_not_cut(f, where, shape, resized, size, other))
                cuts[place] = (*cuts.get(place, ()), (axis, number, here - size))
    return cuts


def _not_cut(  # noqa: PLR0913, PLR0917 (all of it is said)
    f: Bucketed, where: str, shape: tuple[int, ...], resized: tuple[int, ...], size: int, other: int
) -> str:
    named = f"result{where}" if where else "its result"
    return (
        f"{f.__name__} cannot be cut back: {named} has shape {tuple(shape)} at size {size} and "
        f"{tuple(resized)} at size {other}; pass out_axes, None to keep the padding"
    )


def _another_size(dimension: Dimension, size: int) -> int:
    """A size that is traced anyway, if there is one."""
    others = [other for other in dimension.sizes if other != size]
    return min(others, key=lambda other: abs(other - size), default=2 * size)


def _shapes_at(f: Bucketed, call: Prepared, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of all results at other sizes."""
    # Without data, too, in those that are not ragged: they may have been donated.
    leaves, tree = jax.tree.flatten(f.resized(call.args, call.kwargs, sizes))
    leaves = [abstract(leaf) for leaf in leaves]
    kinds = jax.ShapeDtypeStruct | np.ndarray
    arrays = [leaf for leaf in leaves if isinstance(leaf, kinds)]

    def with_arrays(given: list[Any]) -> Any:
        left = iter(given)
        whole = [next(left) if isinstance(leaf, kinds) else leaf for leaf in leaves]
        args, kwargs = jax.tree.unflatten(tree, whole)
        return f.jitted(*args, **kwargs)

    return [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(with_arrays, arrays))]
