"""A function and its arguments as a jaxpr, or a sentence that says why they cannot be one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from jitcount._observe.call_site import owner_of, site_at
from jitcount._observe.muting import muted
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class NotTraceableError(ValueError):
    """No tolerance can be derived for a function; the text says why, and what to do instead.

    Args:
        why: why not, as a sentence.
        remedy: what to do; by default, to declare a bound.

    >>> import jitcount
    >>> try:
    ...     jitcount.tolerance(lambda x: x if x > 0 else -x, np.float32(1))
    ... except jitcount.NotTraceableError as error:
    ...     print(str(error)[:48])
    <lambda> looks at the values of its arguments at
    """

    def __init__(
        self, why: str, remedy: str = "compare its result within a bound that you declare"
    ) -> None:
        super().__init__(f"{why}; {remedy}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Traced:
    """A function's jaxpr with its arguments."""

    function: str
    closed: Any
    arguments: Sequence[Any]
    names: tuple[str, ...]
    """The place of each array in the result: ``"['w']"``; empty where there is one alone."""


def traced(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Traced:
    """Trace a function; arrays are its arguments, all else is passed as it is.

    Raises:
        NotTraceableError: it is not callable, looks at values or has a result that is no array, or
            an argument is a donated array.
    """
    name = name_of(f)
    if not callable(cast("object", f)):
        kind = type(f).__name__
        raise NotTraceableError(
            f"tolerance takes a function and its arguments, not {kind}", "pass the function itself"
        )
    leaves, tree = jax.tree.flatten((tuple(args), dict(kwargs)))
    is_array = [isinstance(leaf, jax.Array | np.ndarray | np.generic) for leaf in leaves]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        raise NotTraceableError(
            f"the tolerance of {name} is asked for while something else is traced",
            "call it outside of jit, grad and vmap",
        )
    for number, (leaf, traces) in enumerate(zip(leaves, is_array, strict=True)):
        if traces and _is_deleted(leaf):
            raise NotTraceableError(
                f"array {number} of the arguments of {name} was donated and is gone", "pass a copy"
            )

    def of_arrays(*arrays: Any) -> Any:
        given = iter(arrays)
        filled = [
            next(given) if traces else leaf for leaf, traces in zip(leaves, is_array, strict=True)
        ]
        positional, named = jax.tree.unflatten(tree, filled)
        return f(*positional, **named)

    arrays = [leaf for leaf, traces in zip(leaves, is_array, strict=True) if traces]
    with muted(), _explained(name):
        closed, shapes = jax.make_jaxpr(of_arrays, return_shape=True)(*arrays)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(shapes)]
    names = tuple(jax.tree_util.keystr(path) for path in paths)
    return Traced(name, closed, arrays, names)


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say in a sentence why a function could not be traced."""
    try:
        yield
    except jax.errors.ConcretizationTypeError as error:
        where = _line_of(error) or "a line of JAX's"
        raise NotTraceableError(
            f"{name} looks at the values of its arguments at {where}, so no tolerance can be "
            "derived"
        ) from None
    except jax.errors.TracerArrayConversionError as error:
        where = _line_of(error) or "a line of JAX's"
        raise NotTraceableError(
            f"{name} hands its arguments to NumPy or Python at {where}, so no tolerance can be "
            "derived"
        ) from None
    except jax.errors.JAXTypeError as error:
        where = f" at {line}" if (line := _line_of(error)) else ""
        raise NotTraceableError(
            f"{name} cannot be traced{where}: {_first_sentence(error)}"
        ) from None
    except TypeError as error:
        if "not a valid JAX type" not in str(error):
            raise
        raise NotTraceableError(
            f"{name} returns something that is no array: {_first_sentence(error)}",
            "return arrays alone",
        ) from None


def name_of(f: Any) -> str:
    """What messages call a function."""
    name = getattr(f, "__name__", None) or getattr(getattr(f, "func", None), "__name__", None)
    return str(name) if name else type(f).__name__


def _is_deleted(leaf: Any) -> bool:
    asked = getattr(leaf, "is_deleted", None)
    return bool(asked()) if callable(asked) else False


def _line_of(error: BaseException) -> str:
    """The innermost line of the user's that an error was raised under; empty if there is none."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if owner_of(code.co_filename) == "user":
            found = site_at(code.co_filename, trace.tb_lineno, code.co_qualname)
        trace = trace.tb_next
    return found


def _first_sentence(error: BaseException) -> str:
    return one_line(str(error)).partition(". ")[0].rstrip(".")
