"""What is the hardware's own is moved by what `numerics` says that it is off as a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount._numerics.error_bounds import EXPECTED_ULPS, expected_error, longest_chain
from tests._emulate.cases import Case, module, parameters, simple

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

U = 2.0**-24
X = np.random.default_rng(0).uniform(1, 2, (64, 64)).astype(np.float32)

_SUM = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}"""


def _moved(case: str, run_hlo: Run, *arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (here,) = run_hlo(case, *arguments)
    (there,) = run_hlo(case, *arguments, perturbation_seed=1)
    return here.astype(np.float64), there.astype(np.float64)


def test_a_product_is_moved_up_and_down_by_its_bound(run_hlo: Run) -> None:
    how = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    case: Case = simple("dot", (X, X), X @ X, how)
    here, there = _moved(case.text, run_hlo, X, X)
    bound = expected_error(longest_chain(64), U, X.size) * here  # all of one sign
    off = (there - here) / bound
    np.testing.assert_allclose(np.abs(off), 1, atol=0.2)
    assert 0.4 < np.mean(off > 0) < 0.6


def test_a_sum_is_moved_by_its_bound(run_hlo: Run) -> None:
    text = module(
        f"{parameters(X)}\n%z = f32[] constant(0)\nROOT %r = f32[64] reduce(%p0, %z), "
        "dimensions={1}, to_apply=%add"
    )
    entry = text.index("ENTRY")
    here, there = _moved(text[:entry] + _SUM + "\n\n" + text[entry:], run_hlo, X)
    bound = expected_error(longest_chain(64), U, 64)
    np.testing.assert_allclose(np.abs(there - here) / here, bound, rtol=0.2)


@pytest.mark.parametrize(
    ("opcode", "ulps"),
    [
        ("exponential", EXPECTED_ULPS["exp"]),
        ("tanh", EXPECTED_ULPS["tanh"]),
        ("power", max(EXPECTED_ULPS.values())),
    ],
)
def test_a_function_is_moved_by_its_ulps(opcode: str, ulps: float, run_hlo: Run) -> None:
    given = (X, X) if opcode == "power" else (X,)
    case = simple(opcode, given, X)
    here, there = _moved(case.text, run_hlo, *given)
    np.testing.assert_allclose(np.abs(there - here) / here, ulps * 2 * U, rtol=0.3)


@pytest.mark.parametrize("opcode", ["negate", "abs", "floor"])
def test_what_is_exact_stays_so(opcode: str, run_hlo: Run) -> None:
    case = simple(opcode, (X,), X)
    here, there = _moved(case.text, run_hlo, X)
    np.testing.assert_array_equal(here, there)


_LESS = """less (a: f32[], b: f32[], m: f32[], n: f32[]) -> pred[]
%a = f32[] parameter(0)
%b = f32[] parameter(1)
%m = f32[] parameter(2)
%n = f32[] parameter(3)
ROOT %l = pred[] compare(%a, %b), direction=LT"""


@pytest.mark.parametrize(("stable", "turned"), [("", True), (", is_stable=true", False)])
def test_ties_are_turned_round_where_the_sort_is_not_stable(
    stable: str,
    turned: bool,  # noqa: FBT001 (a parameter of the test)
    run_hlo: Run,
) -> None:
    keys = (np.arange(12) % 3).astype(np.float32)
    places = np.arange(12, dtype=np.float32)
    text = module(
        f"{parameters(keys, places)}\n%s = (f32[12], f32[12]) sort(%p0, %p1), dimensions={{0}}, "
        f"to_apply=%less{stable}\nROOT %g = f32[12] get-tuple-element(%s), index=1",
        _LESS,
    )
    here, there = _moved(text, run_hlo, keys, places)
    np.testing.assert_array_equal(here, np.argsort(keys, stable=True))
    assert (here.reshape(3, 4)[:, ::-1] == there.reshape(3, 4)).all() == turned
    assert (here == there).all() != turned
