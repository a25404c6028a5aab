"""Compares what was compiled with the same operations one by one: ``jitcount run --check``.

A compiled program may round in another order than its operations one by one, so they differ a
little, and how much that can be depends on the program. It is measured: the operations are computed
again a few times with their operands changed at random in the last digit, and sums by what another
order of additions may change (as in Monte Carlo arithmetic: Parker, Pierce and Eggert 2000). An
element is wrong if the compiled one is off by many times as much as it moved, and if greater
changes do not take it there either, as they do at a jump. Where a change decides over an integer or
a condition in the result, nothing can be said about it, and nothing is.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jitcount._explain.explain import to_compile
from jitcount._jax.evaluating import (
    Evaluator,
    TooLongError,
    compiled_again,
    does_more_than_compute,
)
from jitcount._jax.frames import read_call
from jitcount._jax.jaxprs import eval_equation
from jitcount._jax.keys import on_host
from jitcount._observe.muting import muted
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._jax.evaluating import Compute
    from jitcount._observe.in_flight import InFlightCompile

_finfo: Any = ml_dtypes.finfo

# A program with more operations than this, its loops run out, would take minutes one by one.
MOST_OPERATIONS = 20_000
_MOST_SECONDS = 60.0

_MOST_LETTERS = 200  # of an exception's text

# How often the operations are computed with changed operands, and how many times as far off as an
# element moved it must be to be wrong. Of a million elements that move at random, chance makes none
# move so little in eight runs that its ordinary deviation is sixteen times as much.
_RUNS = 8
_TIMES = 16.0

# What seems to be wrong is computed again with greater changes. An element at a jump (of `%`, of
# `floor`, of a square root of about zero) that the compiled program has on the other side gets
# there in one of these.
_GREATER = 4.0
_RUNS_WITH_GREATER = 16

# What is exact whatever its operands are, or must not see others: bits, places, choices.
_EXACT = frozenset(
    {"abs", "argmax", "argmin", "bitcast_convert_type", "broadcast_in_dim", "clamp", "concatenate",
     "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "eq",
     "gather", "ge", "gt", "imag", "is_finite", "le", "lt", "max", "min", "ne", "neg", "pad",
     "real", "reduce_max", "reduce_min", "reduce_precision", "reshape", "rev", "scatter",
     "select_n", "sign", "slice", "sort", "split", "squeeze", "stop_gradient", "top_k",
     "transpose"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that was compiled, and what came of comparing it."""

    compiled: Compile
    wrong: str = ""
    """What is wrong with its results; empty where nothing is."""

    not_checked: str = ""
    """Why it could not be compared; empty where it was."""


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
        except (_NotCheckedError, TooLongError) as reason:
            not_checked = str(reason)
        except Exception as error:  # noqa: BLE001 (observing must never fail the user's program)
            not_checked = f"that raised {shorten(one_line(error), _MOST_LETTERS)}"
        found = CheckedProgram(to_compile(compiled), wrong, not_checked)
        with self._adding:
            self.programs.append(found)

    @staticmethod
    def _check() -> str:
        call = read_call(sys._getframe(2))  # noqa: SLF001 (documented)
        program = call.jaxpr
        if program is None or len(call.arrays) != len(program.in_avals):
            raise _NotCheckedError("it was compiled ahead of time, without arguments")
        if program.effects or does_more_than_compute(program.jaxpr):
            raise _NotCheckedError("it has side effects or calls Python, which would happen again")
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
        TooLongError: it cannot be computed one by one in reasonable time.
    """

    def one_by_one(until: float, compute: Compute = eval_equation) -> list[np.ndarray]:
        return [
            on_host(r) for r in Evaluator(MOST_OPERATIONS, until, compute).run(program, arguments)
        ]

    # An argument may be a number of Python's, which has no dtype.
    arguments = [
        given if hasattr(given, "dtype") else np.asarray(given, expected.dtype)
        for given, expected in zip(arguments, program.in_avals, strict=True)
    ]
    compiled = [on_host(result) for result in compiled_again(program, arguments)]
    until = time.monotonic() + _MOST_SECONDS
    results = [_Result(*pair) for pair in zip(compiled, one_by_one(until), strict=True)]
    if all(result.is_same for result in results):
        return ""
    for seed in range(_RUNS):
        for result, moved in zip(results, one_by_one(until, _Noise(seed).compute), strict=True):
            result.add(moved)
    if not any(result.is_wrong.any() for result in results):
        return ""
    until = time.monotonic() + _MOST_SECONDS
    for seed in range(_RUNS, _RUNS + _RUNS_WITH_GREATER):
        moves = one_by_one(until, _Noise(seed, _GREATER).compute)
        for result, moved in zip(results, moves, strict=True):
            result.add_greater(moved)
    for number, result in enumerate(results):
        if text := str(result):
            return f"result {number}{text}" if len(results) > 1 else f"its result{text}"
    return ""


class _Noise:
    """Computes operations that round with their operands changed at random in the last digits."""

    def __init__(self, seed: int, times: float = 1.0) -> None:
        self._random = np.random.default_rng(seed)
        self._times = times

    def compute(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        """The results of an equation, changed a little."""
        with np.errstate(all="ignore"):  # infinities and NaN may be part of the program
            return self._computed(equation, operands)

    def _computed(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        name = equation.primitive.name
        if name in _EXACT:
            return eval_equation(equation, operands)
        if name == "convert_element_type":
            return eval_equation(equation, [self._converted(equation, operands[0])])
        results = eval_equation(equation, [self._changed(operand) for operand in operands])
        terms = _TERMS.get(name)
        if terms is None or not _rounds(results[0].dtype):
            return results
        # The error of a sum grows with its partial sums, which depend on the order of additions.
        # They are at most the sum of magnitudes.
        magnitudes = eval_equation(equation, [_magnitudes(operand) for operand in operands])
        change = self._uniform(results[0], results[0].dtype) * np.sqrt(terms(equation))
        moved = np.asarray(results[0]) + change * np.asarray(magnitudes[0])
        return [np.asarray(moved, results[0].dtype)]

    def _converted(self, equation: Any, operand: Any) -> Any:
        """The operand of a conversion, which rounds to fewer digits, or does not.

        XLA may leave out a conversion there and back, and keep digits that the program drops.
        """
        to = equation.params["new_dtype"]
        if not (_rounds(operand.dtype) and _rounds(to)) or _epsilon(to) <= _epsilon(operand.dtype):
            return operand
        return self._changed(operand, to)

    def _changed(self, operand: Any, dtype: Any = None) -> Any:
        """An operand, changed in the last digits of its type, or of a narrower one."""
        if not _rounds(operand.dtype):
            return operand
        change = 1 + self._uniform(operand, dtype or operand.dtype)
        return np.asarray(np.asarray(operand) * change, operand.dtype)

    def _uniform(self, values: Any, dtype: Any) -> np.ndarray:
        wide = np.float64 if _epsilon(values.dtype) < _epsilon(np.float32) else np.float32
        drawn = np.asarray(self._random.random(values.shape, wide))
        return np.asarray((2 * drawn - 1) * wide(self._times * _epsilon(dtype)))


def _rounds(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, np.inexact))


def _magnitudes(values: Any) -> Any:
    return np.abs(np.asarray(values)).astype(values.dtype) if _rounds(values.dtype) else values


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


class _Result:
    """One result, compiled and operation by operation, and how far it moves with small changes."""

    def __init__(self, compiled: np.ndarray, plain: np.ndarray) -> None:
        self._compiled, self._plain = compiled, plain
        self._is_alike = (compiled.dtype, compiled.shape) == (plain.dtype, plain.shape)
        self.is_same = self._is_alike and compiled.tobytes() == plain.tobytes()
        self._wide = np.complex128 if np.iscomplexobj(plain) else np.float64
        self._squares = np.zeros(plain.shape)
        self._farthest = np.zeros(plain.shape)

    def _moved(self, other: np.ndarray) -> np.ndarray:
        return _distances(other.astype(self._wide), self._plain.astype(self._wide))

    def add(self, other: np.ndarray) -> None:
        """What came of one run with changes in the last digit."""
        with np.errstate(all="ignore"):
            self._squares += np.square(self._moved(other))

    def add_greater(self, other: np.ndarray) -> None:
        """What came of one run with greater changes."""
        with np.errstate(all="ignore"):
            self._farthest = np.maximum(self._farthest, self._moved(other))

    @property
    def is_wrong(self) -> np.ndarray:
        """Which elements are off by more than rounding can make them."""
        if self.is_same or not self._is_alike:
            return np.full(self._plain.shape, not self.is_same)
        off = self._moved(self._compiled)
        if not _rounds(self._plain.dtype):
            # One element that a change decides over makes the others doubtful, too.
            return (off > 0) & (self._squares.sum() == 0) & (self._farthest.sum() == 0)
        with np.errstate(all="ignore"):
            moves = np.sqrt(self._squares / _RUNS)
            size = np.abs(np.where(np.isfinite(self._plain), self._plain, 0)).astype(float)
            typical = np.median(moves) if moves.size else 0.0
            allowed = _TIMES * (moves + typical + _epsilon(self._plain.dtype) * size)
            is_wrong: np.ndarray = off > np.maximum(allowed, 2 * self._farthest)
            return is_wrong

    def __str__(self) -> str:
        """What is wrong, as the end of a sentence; empty if it may be rounding."""
        if not self._is_alike:
            one, other = (f"{x.dtype}{list(x.shape)}" for x in (self._compiled, self._plain))
            return f" is {one}, not {other}"
        is_wrong = self.is_wrong
        count = int(is_wrong.sum())
        if not count:
            return ""
        off = np.where(is_wrong, self._moved(self._compiled), -1.0)
        index = tuple(map(int, np.unravel_index(int(np.argmax(off)), off.shape)))
        at = f" {list(index)}" if index else ""
        values = f"{self._compiled[index]} compiled, and {self._plain[index]}"
        are = "is" if count == 1 else "are"
        rest = f"; {count:,} of {off.size:,} elements {are} wrong" if off.size > 1 else ""
        return f"{at} is {values} operation by operation{rest}"


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance of each element; infinite where only one of two is finite or a number."""
    with np.errstate(all="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        both = np.isfinite(one) & np.isfinite(other)
        return np.where(same, 0.0, np.where(both, np.abs(one - other), np.inf))
