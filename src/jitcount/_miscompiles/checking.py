"""Compares what was compiled with the same operations one by one: ``jitcount run --check``.

A compiled program may round in another order than its operations one by one, so they differ a
little, and how much that can be depends on the program. It is measured: the operations are computed
again a few times with their operands changed at random in the last digit, and sums by what another
order of additions may change (as in Monte Carlo arithmetic: Parker, Pierce and Eggert 2000). An
element is wrong if the compiled one is off by many times as much as it moved. Where such a change
decides over an integer or a condition in the result, nothing can be said about it, and nothing is.
"""

from __future__ import annotations

import math
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._explain.explain import to_compile
from jitcount._jax.evaluating import Evaluator, TooManyOperationsError, compiled_again
from jitcount._jax.frames import read_call
from jitcount._jax.jaxprs import eval_equation
from jitcount._observe.muting import muted
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._observe.in_flight import InFlightCompile

_finfo: Any = ml_dtypes.finfo

# A program with more operations than this, its loops run out, would take minutes one by one.
MOST_OPERATIONS = 20_000

# How often the operations are computed with changed operands, and how many times as far off as an
# element moved it must be to be wrong. Of a million elements that move at random, chance makes none
# move so little in eight runs that its ordinary deviation is sixteen times as much.
_RUNS = 8
_TIMES = 16.0

# What is exact whatever its operands are, or must not see others: bits, places, choices.
_EXACT = frozenset(
    {"abs", "argmax", "argmin", "bitcast_convert_type", "broadcast_in_dim", "clamp", "concatenate",
     "convert_element_type", "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "eq",
     "gather", "ge", "gt", "imag", "is_finite", "le", "lt", "max", "min", "ne", "neg", "pad",
     "real", "reduce_max", "reduce_min", "reduce_precision", "reshape", "rev", "scatter",
     "select_n", "sign", "slice", "sort", "split", "squeeze", "stop_gradient", "top_k",
     "transpose"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that was compiled, and what came of comparing it."""

    call: str
    """The function and the types of its arguments."""

    call_site: str
    wrong: str = ""
    """What is wrong with its results; empty where nothing is."""

    not_checked: str = ""
    """Why it could not be compared; empty where it was."""

    def __str__(self) -> str:
        return f"{self.call} at {self.call_site}: {self.wrong or self.not_checked or 'right'}"


class Checker:
    """A listener that compares each program with its operations, just after it was compiled.

    The user's program waits meanwhile. What is compiled for the comparison is not reported.
    """

    def __init__(self) -> None:
        self.programs: list[CheckedProgram] = []
        self._adding = threading.Lock()

    def __call__(self, compiled: InFlightCompile) -> None:
        """Check one program; an operation outside of any jit has nothing to be compared with."""
        if compiled.eager:
            return
        wrong, not_checked = "", ""
        try:
            with muted():
                wrong = self._check()
        except _NotCheckedError as reason:
            not_checked = str(reason)
        except TooManyOperationsError:
            not_checked = f"it has more than {MOST_OPERATIONS:,} operations one by one"
        except Exception as error:  # noqa: BLE001 (observing must never fail the user's program)
            not_checked = f"that raised {one_line(error)}"
        made = to_compile(compiled)
        found = CheckedProgram(made.call, str(made.call_site), wrong, not_checked)
        with self._adding:
            self.programs.append(found)

    @staticmethod
    def _check() -> str:
        call = read_call(sys._getframe(2))  # noqa: SLF001 (documented)
        program = call.jaxpr
        if program is None or len(call.arrays) != len(program.in_avals):
            raise _NotCheckedError("it was compiled ahead of time, without arguments")
        if program.effects:
            raise _NotCheckedError("it has side effects, which would happen again")
        if jax.process_count() > 1:
            raise _NotCheckedError("it runs in several processes")
        return difference(program, call.arrays)


class _NotCheckedError(Exception):
    """A program cannot be compared; the text says why."""


def difference(program: Any, arguments: Sequence[Any]) -> str:
    """What a compiled program returns that its operations one by one do not; empty if nothing.

    Args:
        program: a closed jaxpr.
        arguments: the arrays that it is called with.

    Raises:
        TooManyOperationsError: it has more operations than can be computed one by one.
    """
    compiled = [_on_host(result) for result in compiled_again(program, arguments)]
    plain = [_on_host(r) for r in Evaluator(MOST_OPERATIONS).run(program, arguments)]
    if all(map(_are_same, compiled, plain)):
        return ""
    changed = []
    for seed in range(_RUNS):
        noise = _Noise(seed)
        results = Evaluator(MOST_OPERATIONS, noise.compute).run(program, arguments)
        changed.append([_on_host(result) for result in results])
    for number, (found, expected, *others) in enumerate(
        zip(compiled, plain, *changed, strict=True)
    ):
        if text := _wrong(found, expected, others):
            return f"result {number}{text}" if len(plain) > 1 else f"its result{text}"
    return ""


class _Noise:
    """Computes operations that round with their operands changed at random in the last digit."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def compute(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        """The results of an equation, changed a little."""
        if equation.primitive.name in _EXACT:
            return eval_equation(equation, operands)
        results = eval_equation(equation, [self._changed(operand) for operand in operands])
        terms = _TERMS.get(equation.primitive.name)
        if terms is None or not _rounds(results[0]):
            return results
        # The error of a sum grows with its partial sums, which depend on the order of additions.
        # They are at most the sum of magnitudes.
        magnitudes = eval_equation(equation, [_magnitudes(operand) for operand in operands])
        change = self._uniform(results[0]) * np.sqrt(terms(equation))
        moved = np.asarray(results[0]) + change * np.asarray(magnitudes[0])
        return [np.asarray(moved, results[0].dtype)]

    def _changed(self, operand: Any) -> Any:
        if not _rounds(operand):
            return operand
        return np.asarray(np.asarray(operand) * (1 + self._uniform(operand)), operand.dtype)

    def _uniform(self, values: Any) -> np.ndarray:
        return self._random.uniform(-1, 1, values.shape) * _epsilon(values.dtype)


def _rounds(values: Any) -> bool:
    return jnp.issubdtype(getattr(values, "dtype", np.int32), np.inexact)


def _magnitudes(values: Any) -> Any:
    return np.abs(np.asarray(values)).astype(values.dtype) if _rounds(values) else values


def _extent(shape: Sequence[int], axes: Sequence[int]) -> int:
    return math.prod(shape[axis] for axis in axes)


def _terms_of_convolution(equation: Any) -> int:
    kernel = equation.invars[1].aval
    features = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
    return int(kernel.size) // max(features, 1)


# By operation that adds, how many terms each of its sums has.
_TERMS: dict[str, Callable[[Any], int]] = {
    "reduce_sum": lambda e: _extent(e.invars[0].aval.shape, e.params["axes"]),
    "dot_general": lambda e: _extent(e.invars[0].aval.shape, e.params["dimension_numbers"][0][0]),
    "cumsum": lambda e: int(e.invars[0].aval.shape[e.params["axis"]]),
    "reduce_window_sum": lambda e: math.prod(e.params["window_dimensions"]),
    "conv_general_dilated": _terms_of_convolution,
    "scatter-add": lambda e: int(e.invars[2].aval.size),
}


def _epsilon(dtype: Any) -> float:
    return float(_finfo(dtype).eps)


def _on_host(value: Any) -> np.ndarray:
    if jnp.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.extended):
        value = jax.random.key_data(value)
    return np.asarray(value)


def _are_same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _wrong(found: np.ndarray, expected: np.ndarray, changed: Sequence[np.ndarray]) -> str:
    """What is wrong with a result, as the end of a sentence; empty if it may be rounding."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f" is {found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"
    if not jnp.issubdtype(expected.dtype, np.inexact):
        if any(np.any(other != expected) for other in changed):
            return ""  # rounding decides over it
        off, allowed = (found != expected).astype(float), np.zeros(expected.shape)
    else:
        off, allowed = _distances(found, expected, changed)
    worst = int(np.argmax(off - allowed))
    if not off.size or np.ravel(off - allowed)[worst] <= 0:
        return ""
    index = [int(place) for place in np.unravel_index(worst, expected.shape)]
    at = f" {index}" if index else ""
    here = f"{found[tuple(index)]} compiled, and {expected[tuple(index)]} operation by operation"
    count = int(np.sum(off > allowed))
    are = "is" if count == 1 else "are"
    rest = f"; {count:,} of {off.size:,} elements {are} wrong" if off.size > 1 else ""
    return f"{at} is {here}{rest}"


def _distances(
    found: np.ndarray, expected: np.ndarray, changed: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """How far off each element is, and how far off rounding can make it."""
    is_complex = np.iscomplexobj(expected)
    wide = np.complex128 if is_complex else np.float64
    reference = expected.astype(wide)
    with np.errstate(all="ignore"):
        off = _apart(found.astype(wide), reference)
        moved = np.array([_apart(other.astype(wide), reference) for other in changed])
        moves = np.sqrt(np.mean(np.square(moved), axis=0))
        size = np.abs(np.where(np.isfinite(reference), reference, 0))
    typical = np.median(moves) if moves.size else 0.0
    return off, _TIMES * (moves + typical + _epsilon(expected.dtype) * size)


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance of each element; infinite where only one of two is finite or a number."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    both = np.isfinite(one) & np.isfinite(other)
    return np.where(same, 0.0, np.where(both, np.abs(one - other), np.inf))
