"""`bucketed`: a function whose ragged arguments are padded to a few sizes before each call.

A program is compiled for each shape, and so is every small operation on an array of JAX's: padding
a length with `jnp.pad`, or cutting a result with ``[:n]``, would compile a program for each length,
too. So arrays are padded and cut on the host, by NumPy; only what is traced is padded by JAX.
"""

from __future__ import annotations

import bisect
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np

from jitcount._buckets.cutting import Cuts, cut, fixed_cuts, found_cuts
from jitcount._buckets.padding import abstract, fitted, no_array
from jitcount._buckets.places import (
    Argument,
    Axes,
    Parameters,
    Ragged,
    disagreement,
    ragged_arguments,
)
from jitcount._buckets.plan import BucketPlan, require_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._buckets.padding import Fill

    Function = Callable[..., Any]

Sizes: TypeAlias = BucketPlan | Sequence[int]
"""A plan, or sizes."""

Named: TypeAlias = str | Mapping[str, str]

_ALONE = ""
"""The name of the only ragged length of a function."""


class Dimension(NamedTuple):
    """One ragged length of a function, which all of its axes have."""

    name: str
    sizes: tuple[int, ...]
    length: str | None
    """The parameter that is given the length."""

    mask: str | None
    """The parameter that is given the mask."""


class Prepared(NamedTuple):
    """A call with its arguments padded."""

    args: list[Any]
    kwargs: dict[str, Any]
    lengths: list[int]
    """What of each ragged length is no padding."""

    sizes: list[int]


class Bucketed:
    """A function that pads its ragged arguments; made by `jitcount.bucketed`."""

    def __init__(  # noqa: PLR0913 (made in one place)
        self,
        f: Function,
        dimensions: list[Dimension],
        arguments: list[Argument],
        out_axes: Any,
        *,
        grows: bool,
        drops: bool,
    ) -> None:
        functools.update_wrapper(self, f)
        self.__name__ = getattr(f, "__name__", "the function")
        self.function = f
        """The function, as it was given."""

        self.jitted: Any = f if hasattr(f, "lower") else jax.jit(f)
        self.dimensions = dimensions
        self._arguments = arguments
        self._grows = grows
        self._drops = drops
        self._out_axes = out_axes
        self._keeps_outputs = out_axes is None
        self._cuts: dict[Any, Cuts] = {}
        self._ragged: dict[Any, list[Ragged]] = {}
        self.example: tuple[Any, Any] | None = None
        """The arguments of the first call, as shapes and dtypes."""

    @property
    def sizes(self) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
        """The sizes that arguments are padded to; by name where there are several lengths."""
        if self.dimensions[0].name == _ALONE:
            return self.dimensions[0].sizes
        return {dimension.name: dimension.sizes for dimension in self.dimensions}

    def __repr__(self) -> str:
        return f"<{self.__name__}, bucketed: sizes {self.sizes}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with padded arguments, and cut back what it returns."""
        if self.example is None:
            self.example = jax.tree.map(abstract, (args, kwargs))
        call = self.prepare(args, kwargs)
        return self.finish(call, self.jitted(*call.args, **call.kwargs))

    def finish(self, call: Prepared, result: Any) -> Any:
        """Cut back what the function returned."""
        if self._keeps_outputs:
            return result
        leaves, tree = jax.tree.flatten(result)
        key = (tree, *call.sizes, *[getattr(leaf, "shape", ()) for leaf in leaves])
        cuts = self._cuts.get(key)
        if cuts is None:
            cuts = self._cuts[key] = self._find_cuts(call, result)
        if not cuts:
            return result
        for place, rules in cuts.items():
            leaves[place] = cut(leaves[place], rules, call.lengths)
        return jax.tree.unflatten(tree, leaves)

    def lengths(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
        """The true lengths of a call."""
        given, named = list(args), dict(kwargs)
        return self._lengths([self._read(one, given, named) for one in self._arguments])

    def prepare(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        sizes: list[int] | None = None,
        fill: Fill | None = None,
    ) -> Prepared:
        """Pad the arguments of a call; `args` and `kwargs` themselves stay as they are.

        Args:
            args: the arguments.
            kwargs: the keyword arguments.
            sizes: what to pad to, if not to the next size.
            fill: returns for a dtype what to pad with, if not with what the user says.

        Raises:
            ValueError: an axis is not there, axes disagree, or a length is beyond all sizes.
        """
        given, named = list(args), dict(kwargs)
        read = [self._read(argument, given, named) for argument in self._arguments]
        lengths = self._lengths(read)
        if sizes is None:
            sizes = [self._size(number, length) for number, length in enumerate(lengths)]
        if self._drops:
            lengths = [min(pair) for pair in zip(lengths, sizes, strict=True)]
        for argument, (leaves, tree, ragged) in zip(self._arguments, read, strict=True):
            padded = fitted(leaves, ragged, sizes, fill)
            value = padded[0] if tree is None else jax.tree.unflatten(tree, padded)
            argument.put(value, given, named)
        for dimension, n, size in zip(self.dimensions, lengths, sizes, strict=True):
            if dimension.length is not None:
                self._give(named, dimension.length, np.int32(n))
            if dimension.mask is not None:
                is_real = np.zeros(size, np.bool_)
                is_real[:n] = True
                self._give(named, dimension.mask, is_real)
        return Prepared(given, named, lengths, sizes)

    def _read(
        self, argument: Argument, given: list[Any], named: Mapping[str, Any]
    ) -> tuple[list[Any], Any, list[Ragged]]:
        """The arrays of an argument, their structure (None for an array), and those ragged."""
        value = argument.get(self.__name__, given, named)
        if type(value) is np.ndarray or isinstance(value, np.ndarray | jax.Array):
            leaves, tree = [value], None
            key: Any = argument.name, value.ndim
        else:
            leaves, tree = jax.tree.flatten(value)
            key = (argument.name, tree, *[getattr(leaf, "ndim", 0) for leaf in leaves])
        ragged = self._ragged.get(key)
        if ragged is None:
            ragged = self._ragged[key] = argument.ragged_in(self.__name__, value)
        return leaves, tree, ragged

    def _lengths(self, read: list[tuple[list[Any], Any, list[Ragged]]]) -> list[int]:
        """The length of each dimension, if all its axes have the same."""
        lengths = [-1] * len(self.dimensions)
        for leaves, _, ragged in read:
            for one in ragged:
                shape = leaves[one.leaf].shape
                for axis, number in one.axes:
                    if lengths[number] != shape[axis]:
                        if lengths[number] >= 0:
                            raise ValueError(disagreement(self.__name__, number, read))
                        lengths[number] = shape[axis]
        return lengths

    def _size(self, number: int, length: int) -> int:
        dimension = self.dimensions[number]
        sizes = dimension.sizes
        if self._drops:
            fits = bisect.bisect_right(sizes, length)
            return sizes[max(fits - 1, 0)]
        place = bisect.bisect_left(sizes, length)
        if place < len(sizes):
            return sizes[place]
        if not self._grows:
            of = f"{dimension.name} " if dimension.name else ""
            raise ValueError(
                f"{self.__name__} got {of}length {length}, and its largest size is {sizes[-1]}: "
                "plan for longer lengths, or pass too_long='grow'"
            )
        size = sizes[-1]
        while size < length:
            size *= 2
        self.dimensions[number] = dimension._replace(sizes=(*sizes, size))
        return size

    def _give(self, named: dict[str, Any], parameter: str, value: Any) -> None:
        if parameter in named:
            raise TypeError(
                f"{self.__name__} is given {parameter} by jitcount.bucketed: leave it out"
            )
        named[parameter] = value

    def _find_cuts(self, call: Prepared, result: Any) -> Cuts:
        if self._out_axes != "auto":
            return fixed_cuts(self._out_axes, result, self.dimensions)
        return found_cuts(self, call, result)

    def resized(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], sizes: Sequence[int]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call at some sizes, with no data in those that are ragged."""
        given, named = list(args), dict(kwargs)
        for argument in self._arguments:
            leaves, tree, ragged = self._read(argument, given, named)
            for one in ragged:
                shape = list(leaves[one.leaf].shape)
                for axis, number in one.axes:
                    shape[axis] = sizes[number]
                leaves[one.leaf] = abstract(leaves[one.leaf], tuple(shape))
            value = leaves[0] if tree is None else jax.tree.unflatten(tree, leaves)
            argument.put(value, given, named)
        for dimension, size in zip(self.dimensions, sizes, strict=True):
            if dimension.length is not None:
                named[dimension.length] = np.int32(0)
            if dimension.mask is not None:
                named[dimension.mask] = no_array((size,), np.dtype(np.bool_))
        return given, named


def bucketed(  # noqa: PLR0913 (keywords, each of its own)
    f: Function,
    plan: Sizes | Mapping[str, Sizes],
    axes: Axes | Mapping[str, Axes],
    *,
    length: Named | None = None,
    mask: Named | None = None,
    fill: Any = 0,
    out_axes: Any = "auto",
    too_long: Literal["raise", "grow"] = "raise",
    remainder: Literal["pad", "drop"] = "pad",
) -> Bucketed:
    """Pad the ragged axes of a function's arguments to a few sizes, so that few are compiled.

    The function must not let the padding change what it returns: zeros change a mean. It is told
    how much is real by `length` or `mask`, and `check_padding` finds out whether it listens.

    >>> import jax, jax.numpy as jnp, jitcount, numpy as np
    >>> @jax.jit
    ... def mean(x, mask):
    ...     return jnp.sum(jnp.where(mask, x, 0)) / jnp.sum(mask)
    >>> mean = jitcount.bucketed(mean, [4, 16], axes={"x": 0}, mask="mask")
    >>> with jitcount.record() as log:
    ...     print([float(mean(np.full(n, 3.0, np.float32))) for n in (2, 3, 9, 11)])
    [3.0, 3.0, 3.0, 3.0]
    >>> log.counts()
    {'mean': 2}

    Args:
        f: the function; jitted with its options, or else jitted here.
        plan: what `plan_buckets` returned, or sizes; for several lengths, a mapping from a name of
            each to its plan.
        axes: which axes have that length: ``{"x": 0}`` for an array, or for all arrays in an
            argument; ``{"batch['tokens']": 1, "graph.nodes": 0}`` for some of them, as causes name
            them; ``{"scores": (0, 1)}`` for two axes. For several lengths, such a mapping by name.
        length: the parameter of `f` to pass the true length to, as an int32; callers leave it out.
        mask: the parameter of `f` to pass the mask to: a bool for each place, True where it is no
            padding. For several lengths, `length` and `mask` are mappings by name.
        fill: what to pad with: a number, or a mapping from places, named as in `axes`, to numbers.
        out_axes: which axes of the result to cut back to the true length. By default those that
            grow as the size does, which is found out by tracing the function at another size. None
            keeps all as it is, and so does None in a part of the result's structure, as for
            `jax.vmap`.
        too_long: of a length beyond the largest size, raise an error, or ``"grow"``: add a size.
        remainder: pad what is beyond a size, or ``"drop"`` it: in training, the end of a batch.

    Returns:
        A function with the parameters of `f` but `length` and `mask`, which can also be called
        under `jax.jit`, `jax.vmap` and `jax.grad`. Arrays that are cut back are NumPy's, and waited
        for: an operation of JAX's on them would be compiled for each length.

    Raises:
        ValueError: the names in `axes`, `plan`, `length` and `mask` do not fit each other or `f`.
    """
    for name, value, known in (
        ("too_long", too_long, ("raise", "grow")),
        ("remainder", remainder, ("pad", "drop")),
    ):
        if value not in known:
            raise ValueError(
                f"bucketed takes {name} of {known[0]!r} or {known[1]!r}, not {value!r}"
            )
    called = getattr(f, "__name__", "the function")
    if isinstance(f, Bucketed):
        raise TypeError(f"{called} is bucketed already: name all of its lengths in one call")
    is_alone = not isinstance(plan, Mapping)
    plans: Mapping[str, Any] = plan if isinstance(plan, Mapping) else {_ALONE: plan}
    by_name: Mapping[str, Any] = {_ALONE: axes} if is_alone else axes
    if set(by_name) != set(plans):
        raise ValueError(
            f"bucketed takes axes for each plan; plans are {', '.join(plans)}, "
            f"axes {', '.join(by_name)}"
        )
    told = [_by_name("length", length, plans), _by_name("mask", mask, plans)]
    dimensions = [
        Dimension(name, _sizes(given), told[0].get(name), told[1].get(name))
        for name, given in plans.items()
    ]
    parameters = _parameters(f)
    for parameter in (*told[0].values(), *told[1].values()):
        if parameter not in parameters and not parameters.takes_any:
            raise ValueError(f"{called} has no parameter {parameter!r} to take a length or a mask")
    each = [by_name[dimension.name] for dimension in dimensions]
    return Bucketed(
        f,
        dimensions,
        ragged_arguments(called, parameters, each, fill),
        out_axes,
        grows=too_long == "grow",
        drops=remainder == "drop",
    )


def _by_name(option: str, given: Named | None, plans: Mapping[str, Any]) -> Mapping[str, str]:
    """An option of `bucketed` by the name of the plan that it belongs to."""
    if given is None:
        return {}
    if isinstance(given, str) == (_ALONE in plans):
        by_name = {_ALONE: given} if isinstance(given, str) else given
        if set(by_name) <= set(plans):
            return by_name
    expected = "a parameter's name" if _ALONE in plans else f"a mapping from {', '.join(plans)}"
    raise ValueError(f"bucketed takes {option} as {expected} here; it is {given!r}")


def _sizes(plan: Any) -> tuple[int, ...]:
    if isinstance(plan, BucketPlan):
        return plan.sizes
    sizes = [plan] if isinstance(plan, int) else list(plan)
    for size in sizes:
        require_whole("sizes", size, least=1, who="bucketed")
    if not sizes:
        raise ValueError("bucketed needs a plan, or at least one size; there is none")
    return tuple(sorted({int(size) for size in sizes}))


def _parameters(f: Function) -> Parameters:
    """The parameters of a function, if it has a signature."""
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return Parameters((), takes_any=True)
    positional = tuple(
        p.name for p in found if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}
    )
    others = tuple(p.name for p in found if p.kind is p.KEYWORD_ONLY)
    return Parameters(positional, others, any(p.kind is p.VAR_KEYWORD for p in found))
