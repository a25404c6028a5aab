"""What a user's function returns, as arrays with names, and what each of them must be."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jitcount._emulate.as_if import as_on_the_cpu
from jitcount._numerics.arrays import DTYPES
from jitcount._numerics.expected import derived
from jitcount._observe.muting import muted
from jitcount._suite.case import Case
from jitcount._tolerance.tolerance import tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jitcount._numerics.expected import Expected
    from jitcount._suite.own_cases import OwnCase
    from jitcount._tolerance.tolerance import Tolerance


def named_arrays(result: object) -> dict[str, np.ndarray]:
    """The arrays of a result by their places in it, as NumPy has them.

    Of PRNG keys it is their data. What is no array of JAX's is taken as JAX would take it.

    >>> named_arrays({"a": (1.5, None), "b": np.arange(3)})
    {"['a'][0]": array(1.5, dtype=float32), "['b']": array([0, 1, 2])}

    Raises:
        TypeError: something in it is no array, or one that no ledger holds.
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(result)
    return {(name := jax.tree_util.keystr(path)): _array(name, leaf) for path, leaf in leaves}


def _array(name: str, leaf: Any) -> np.ndarray:
    which = f"its result {name}" if name else "its result"
    if isinstance(leaf, jax.Array):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            with muted():  # that is an operation
                leaf = jax.random.key_data(leaf)
        found = np.asarray(leaf)
    elif isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic):
        found = np.asarray(leaf)
        if found.dtype.kind in "fc":
            found = found.astype(jax.dtypes.canonicalize_dtype(found.dtype))
    else:
        kind = type(leaf).__name__
        raise TypeError(f"{which} is a {kind}, and no array: return arrays alone")
    if found.dtype.name not in DTYPES:
        raise TypeError(f"{which} has the dtype {found.dtype.name}, which no ledger holds")
    return found


def derived_tolerance(
    function: Callable[..., object],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    products: str,
) -> Tolerance:
    """What a function's result must be within: derived here, whatever computes the result.

    Raises:
        NotTraceableError: nothing can be derived.
    """
    with muted(), as_on_the_cpu():
        return tolerance(function, *args, products=products, **kwargs)


def expected_of(found: Tolerance) -> list[Expected]:
    """What each array of a result must be, as ledgers have it."""
    return [
        derived(_dtype_of(e.dtype, e.reference), np.asarray(e.reference), e.width, e.why_none)
        for e in found.results
    ]


def _dtype_of(dtype: str, reference: np.ndarray) -> str:
    """The dtype of what is kept: of PRNG keys that of their data."""
    return reference.dtype.name if dtype.startswith("key<") else dtype


def _arguments(own: OwnCase) -> Sequence[Any]:
    """The arguments of a case; those that are made, are made again when a call has used them up."""
    if not callable(own.args):
        return own.args
    if _donated(_made(own.args)):
        _made.cache_clear()
    return _made(own.args)


@lru_cache(maxsize=1)  # the arguments of one case at a time: they can be large
def _made(make: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    with muted(), as_on_the_cpu():
        args = make()
    if not isinstance(args, list | tuple):
        kind = type(args).__name__
        raise TypeError(f"what makes its arguments must return a tuple of them, not a {kind}")
    return args


def _donated(args: object) -> str:
    """The place of an argument that a call has used up; empty if there is none."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(args)[0]:
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            return jax.tree_util.keystr(path)
    return ""


def require_not_donated(args: object) -> None:
    """Refuse arguments that a call has used up: nothing could be derived from them any more.

    Raises:
        ValueError: one of them is gone.
    """
    if place := _donated(args):
        remedy = "give a NumPy array, of which each call makes one"
        raise ValueError(f"its argument {place} was donated, and is gone after one call: {remedy}")


def suite_case(own: OwnCase) -> Case:
    """A user's case as the suite runs it."""

    def program() -> Mapping[str, np.ndarray]:
        args = _arguments(own)
        arrays = named_arrays(own.call(args))
        if not callable(own.args):
            require_not_donated(args)
        require_not_donated(own.kwargs)
        if not arrays and own.compiles is None:
            remedy = "return what must be the same, or say what it compiles"
            raise ValueError(f"it returns no array, and so nothing would be tested: {remedy}")
        return arrays

    def expected() -> list[Expected]:
        found = derived_tolerance(own.function, _arguments(own), own.kwargs, own.products)
        return expected_of(found)

    doc = inspect.getdoc(own.function) or ""
    return Case(
        id=own.name,
        claim=doc.partition("\n")[0] or own.name,
        program=program,
        expected=expected,
        compiles=own.compiles,
        is_own=True,
        within=own.within,
    )
