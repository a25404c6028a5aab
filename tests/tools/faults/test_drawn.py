"""Single operations with a fault: those of an attack that the suite once passed, and drawn ones."""

import random
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._ledger.findings import verdicts
from jitcount._suite.case import run_case
from jitcount._suite.cases import CASES
from tools.faults import drawn
from tools.faulty import primitives_replaced

_CASES = {case.id: case for case in CASES}


def _where(condition: Callable[[Any], Any], value: float) -> Callable[..., Any]:
    """Another value where the first operand meets a condition."""

    def wrongly(original: Any, x: Any, *others: Any, **parameters: Any) -> Any:
        result = original(x, *others, **parameters)
        if x.dtype != np.float32:
            return result
        return jnp.where(condition(x), np.float32(value), result)

    return wrongly


def _quotient(original: Any, x: Any, y: Any) -> Any:
    result = original(x, y)
    if x.dtype != np.float32:
        return result
    largest = np.float32(np.finfo(np.float32).max)
    return jnp.where(y == 0, jnp.clip(result, -largest, largest), result)


def _rounded_down(original: Any, x: Any, **parameters: Any) -> Any:
    to_int = parameters["new_dtype"] == np.int32 and x.dtype == np.float32
    return original(jnp.floor(x) if to_int else x, **parameters)


def _as_signed(original: Any, x: Any, **parameters: Any) -> Any:
    to_float = parameters["new_dtype"] == np.float32 and x.dtype == np.uint32
    return original(lax.bitcast_convert_type(x, np.int32) if to_float else x, **parameters)


def _nan_of_infinities(original: Any, x: Any, **parameters: Any) -> Any:
    result = original(x, **parameters)
    return jnp.where(result == -np.inf, np.nan, result) if x.dtype == np.float32 else result


def _off(original: Any, x: Any, **parameters: Any) -> Any:
    result = original(x, **parameters)
    if x.dtype != np.float32:
        return result
    return jnp.where((x > 87.5) & (x < 88.72), result * np.float32(1.0001), result)


def _wrapped(original: Any, x: Any, *starts: Any, **parameters: Any) -> Any:
    around = [
        start.astype(np.int32) % np.int32(size) for start, size in zip(starts, x.shape, strict=True)
    ]
    wide = jnp.tile(x, (2,) * x.ndim)
    return original(wide, *around, **parameters)


_ATTACK = {
    "sqrt(-1) = 0": ("sqrt", _where(lambda x: x < 0, 0.0), "op-sqrt"),
    "log(0) = -103.97": ("log", _where(lambda x: x == 0, -103.97), "op-log"),
    "1 / 0 = 3.4e38": ("div", _quotient, "op-div"),
    "int32(-1.5) = -2": ("convert_element_type", _rounded_down, "op-convert-float32"),
    "float(uint32 3e9) < 0": ("convert_element_type", _as_signed, "op-convert-uint32"),
    "max of -inf = NaN": ("reduce_max", _nan_of_infinities, "op-reduce-specials"),
    "sin = 0 past 1e5": ("sin", _where(lambda x: jnp.abs(x) > 1e5, 0.0), "op-sin"),
    "cos = 0 past 1e5": ("cos", _where(lambda x: jnp.abs(x) > 1e5, 0.0), "op-cos"),
    "log1p(1e-8) = 0": ("log1p", _where(lambda x: jnp.abs(x) < 2e-8, 0.0), "op-log1p"),
    "exp off near overflow": ("exp", _off, "op-exp"),
    "slices past the end wrap": ("dynamic_slice", _wrapped, "op-slices"),
}


@pytest.mark.parametrize(("primitive", "wrongly", "case"), _ATTACK.values(), ids=_ATTACK)
def test_a_fault_of_the_attack_is_noticed(
    primitive: str, wrongly: Callable[..., Any], case: str
) -> None:
    assert all(verdict.holds for verdict in verdicts(run_case(_CASES[case], calls=1)))
    with primitives_replaced({primitive: wrongly}):
        found = run_case(_CASES[case], calls=1)
    assert not found.error
    assert not all(verdict.holds for verdict in verdicts(found))


def test_the_same_seed_draws_the_same_faults() -> None:
    names = ("exp", "mul", "gather", "shift_left")
    once, again = (list(map(str, drawn.drawn(8, 3, names))) for _ in range(2))
    assert once == again
    assert once != list(map(str, drawn.drawn(8, 4, names)))


@pytest.mark.thorough
def test_every_operation_of_the_table_is_drawn() -> None:
    names = drawn.operations()
    faults = list(drawn.drawn(len(names), seed=1))
    assert sorted(fault.primitive for fault in faults) == names


def test_what_changes_nothing_is_no_fault() -> None:
    negative = drawn.Where("interval", low=-2.0, high=-1.0)
    fault = drawn.DrawnFault("sqrt", "float32", negative, drawn.Error("NaN"))
    draw = random.Random(0)  # noqa: S311
    assert not drawn.is_fault(fault, draw)
    zero = drawn.DrawnFault("sqrt", "float32", negative, drawn.Error("zero"))
    assert drawn.is_fault(zero, draw)


def test_some_drawn_faults_are_noticed() -> None:
    some = drawn.drawn(6, 5, ("tanh", "erf_inv", "is_finite", "nextafter", "population_count"))
    assert [str(fault) for fault in some if not drawn.noticed_by(fault)] == []


@pytest.mark.thorough
def test_of_300_drawn_faults_nearly_all_are_noticed() -> None:
    assert drawn.main(["300", "--seed", "1"]) == 0
