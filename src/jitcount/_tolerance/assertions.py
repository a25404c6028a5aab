"""`assert_same` and `assert_close`: a result against the tolerance that was derived for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from jitcount._jax.keys import on_host
from jitcount._text import encode_safely, escape_control_chars
from jitcount._tolerance.products import FLOAT32
from jitcount._tolerance.tolerance import Tolerance, tolerance
from jitcount._tolerance.tracing import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._tolerance.tolerance import ExpectedResult

# What reduced precision a result may be in, the finer one first.
_REDUCED = ("TF32", "bfloat16")

# Lines that make less than this of the deviation are not named.
_WORTH_NAMING = 0.05
_MOST_LINES = 3


def assert_same(
    f: Callable[..., Any],
    /,
    *args: Any,
    like: Callable[..., Any] | None = None,
    products: str = FLOAT32,
    skip_undecided: bool = False,
    **kwargs: Any,
) -> None:
    """Assert that this backend computes ``f(*args)`` as exactly as its operations allow.

    The function is called once, as it is: pass ``jax.jit(f)`` to see what the compiler makes of it.

    >>> import jax, jitcount, numpy as np
    >>> jitcount.assert_same(jax.jit(jax.nn.softmax), np.arange(4, dtype=np.float32))

    Args:
        f: a function that JAX can trace.
        args: its arguments.
        like: another function that it must agree with: the plain form of a kernel written by hand.
        products: how products may round their inputs; see `jitcount.tolerance`.
        skip_undecided: leave out elements of which no tolerance exists, instead of failing.
        kwargs: its arguments by name.

    Raises:
        AssertionError: it is off by more than rounding explains, or no tolerance exists.
        NotTraceableError: no tolerance can be derived for it.
    """
    __tracebackhide__ = True
    # First: the call may consume arguments that are donated.
    expected = tolerance(like or f, *args, products=products, **kwargs)
    found = f(*args, **kwargs)
    text = difference(found, expected, name_of(f), skip_undecided=skip_undecided)
    if text:
        raise AssertionError(text)


def assert_close(found: Any, expected: Tolerance, *, skip_undecided: bool = False) -> None:
    """Assert that a result from elsewhere (a file, another backend) is within a tolerance.

    >>> import jax.numpy as jnp, jitcount, numpy as np
    >>> x = np.arange(5, dtype=np.float32)
    >>> jitcount.assert_close(np.float32(10), jitcount.tolerance(jnp.sum, x))

    Args:
        found: what was computed; a pytree of arrays, as the function returns it.
        expected: what `jitcount.tolerance` has derived.
        skip_undecided: leave out elements of which no tolerance exists, instead of failing.

    Raises:
        AssertionError: it is off by more than rounding explains, or no tolerance exists.
    """
    __tracebackhide__ = True
    if not isinstance(cast("object", expected), Tolerance):
        kind = type(expected).__name__
        raise TypeError(f"assert_close takes what jitcount.tolerance returns, not {kind}")
    text = difference(found, expected, expected.function, skip_undecided=skip_undecided)
    if text:
        raise AssertionError(text)


def difference(found: Any, expected: Tolerance, name: str, *, skip_undecided: bool = False) -> str:
    """What is wrong with a result, in a few lines; empty if nothing is."""
    leaves = [on_host(leaf) for leaf in jax.tree.leaves(found)]
    results = expected.results
    if len(leaves) != len(results):
        arrays = f"{len(leaves)} array{'s' * (len(leaves) != 1)}"
        return f"{name} returned {arrays}, and {expected.function} returns {len(results)}"
    for leaf, result in zip(leaves, results, strict=True):
        if wrong := _wrong_kind(leaf, result):
            return f"{name}{result.name} is {wrong}"
    if not skip_undecided and (undecided := [each for each in results if each.why_none]):
        return _undecided(undecided, name)
    pairs = zip(leaves, results, strict=True)
    beyond = [worst for leaf, result in pairs if (worst := _worst(leaf, result)) is not None]
    if not beyond:
        return ""
    worst = max(beyond, key=lambda each: each.times)
    lines = [
        f"{name} is further from its exact value than rounding explains",
        f"  {worst}",
        *(f"  {hint}" for hint in hints_at(leaves, expected)),
    ]
    return encode_safely("\n".join(map(escape_control_chars, lines)))


def _wrong_kind(leaf: np.ndarray, result: ExpectedResult) -> str:
    shape = result.reference.shape
    if leaf.shape != shape:
        return f"of shape {leaf.shape}, not {shape}"
    if leaf.dtype.name != result.dtype and not result.dtype.startswith("key<"):
        return f"{leaf.dtype.name}, not {result.dtype}"
    return ""


def _undecided(undecided: list[ExpectedResult], name: str) -> str:
    lines = [f"{name} cannot be compared everywhere:"]
    for result in undecided:
        count, size = int(np.isnan(result.width).sum()), result.width.size
        of = f"{count:,} of {size:,} elements" if size > 1 else "the value"
        lines.append(f"  {result.title}, {of}: {result.why_none}")
    lines.append("  skip_undecided=True compares the others")
    return encode_safely("\n".join(map(escape_control_chars, lines)))


@dataclass(frozen=True, slots=True)
class _Worst:
    """The element of a result that is furthest beyond its tolerance."""

    at: str
    found: str
    exact: str
    width: float
    times: float
    count: int
    size: int

    def __str__(self) -> str:
        off = f"{self.at} is {self.found}, not {self.exact}"
        if self.width == 0:
            how = "it must be equal to the bit"
        else:
            how = f"{_times(self.times)} times the tolerance of {self.width:.2g}"
        are = "is" if self.count == 1 else "are"
        rest = (
            f"; {self.count:,} of {self.size:,} elements {are} beyond it" if self.size > 1 else ""
        )
        return f"{off}: {how}{rest}"


def _times(times: float) -> str:
    return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"


def beyond(leaf: np.ndarray, result: ExpectedResult) -> np.ndarray:
    """How many times its tolerance each element is off; 0 where there is none."""
    reference = result.reference
    with np.errstate(all="ignore"):
        if reference.dtype.kind in "fc":
            wide = leaf.astype(reference.dtype)
            same = (wide == reference) | (np.isnan(wide) & np.isnan(reference))
            off = np.where(same, 0.0, np.abs(wide - reference))
            off = np.where(np.isnan(off), np.inf, off)
        else:
            off = np.where(leaf == reference, 0.0, np.inf)
        return np.where((off == 0) | np.isnan(result.width), 0.0, off / result.width)


def _worst(leaf: np.ndarray, result: ExpectedResult) -> _Worst | None:
    times = beyond(leaf, result)
    wrong = times > 1
    if not wrong.any():
        return None
    index = tuple(map(int, np.unravel_index(int(np.argmax(times)), times.shape)))
    place = f"[{', '.join(map(str, index))}]" if index else ""
    return _Worst(
        at=f"result{result.name}{place}" if result.name or place else "the result",
        found=_number(leaf[index]),
        exact=_number(result.reference[index]),
        width=float(result.width[index]),
        times=float(times[index]),
        count=int(wrong.sum()),
        size=times.size,
    )


def _number(value: Any) -> str:
    if np.asarray(value).dtype.kind in "biu":
        return str(value)
    if np.iscomplexobj(value):
        return f"{complex(value):.9g}"
    return f"{float(value):.9g}"


def hints_at(leaves: list[np.ndarray], expected: Tolerance) -> list[str]:
    """What may have made a result so wrong, and where."""
    hints = []
    reduced = _reduced(leaves, expected)
    if reduced:
        hints.append(
            f"that is like products in {reduced}: "
            f'jax.default_matmul_precision("highest") keeps float32, products="{reduced}" allows it'
        )
    lines = [line for line in expected.lines if line.share >= _WORTH_NAMING and line.place.file]
    if lines := lines[:_MOST_LINES]:
        hints.append("roundings move it most at:")
        hints += [f"  {line}" for line in lines]
    return hints


def _reduced(leaves: list[np.ndarray], expected: Tolerance) -> str:
    """The reduced precision of products that explains a result; empty if none does."""
    if expected.products != FLOAT32 or not expected.has_products:
        return ""
    for name in _REDUCED:
        results = expected.with_products(name).results
        if not any((beyond(*pair) > 1).any() for pair in zip(leaves, results, strict=True)):
            return name
    return ""
