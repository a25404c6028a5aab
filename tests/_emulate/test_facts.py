"""What is known of a chip's arithmetic: each row's claim is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount._emulate.arithmetic import arithmetic_of
from jitcount._emulate.emulator import Emulator
from jitcount._emulate.facts import FACTS, facts_of
from jitcount._emulate.result import Emulation
from jitcount._targets.names import parse
from tests._emulate.cases import simple

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

_CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _product(run_hlo: Run, target: str, left: float, precision: str = "default") -> float:
    """Of a number with one, as a target multiplies."""
    one, other = np.full((2, 1), left, np.float32), np.ones((1, 2), np.float32)
    how = f"{_CONTRACTED}, operand_precision={{{precision},{precision}}}"
    case = simple("dot", (one, other), one @ other, how)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=arithmetic_of(parse(target)))
    return float(made[0, 0])


# Halfway between two numbers of bfloat16, 256 and 258; and of TF32, 1024 and 1025.
@pytest.mark.parametrize(
    ("target", "number", "product"),
    [
        ("tpu:v5e", 257.0, 256.0),
        ("tpu:v5e", 259.0, 260.0),
        ("cuda:a100", 1024.5, 1025.0),
        ("cuda:a100", 1025.5, 1026.0),
        ("cuda:a100", -1024.5, -1025.0),
        ("cuda:v100", 1024.5, 1024.5),
        ("cuda:a100", float("inf"), float("inf")),
        ("cuda:a100", 3.4028235e38, float("inf")),
    ],
)
def test_a_number_halfway_between_two(
    target: str, number: float, product: float, run_hlo: Run
) -> None:
    assert _product(run_hlo, target, number) == product


def test_what_is_no_number_stays_so(run_hlo: Run) -> None:
    assert np.isnan(_product(run_hlo, "cuda:a100", float("nan")))


def test_denormals_are_flushed_here(run_hlo: Run) -> None:
    tiny = np.full(2, 1e-40, np.float32)
    case = simple("add", (tiny, tiny), tiny + tiny)
    (made,) = run_hlo(case.text, *case.arguments)
    np.testing.assert_array_equal(made, np.zeros(2, np.float32))


@pytest.mark.parametrize("target", ["tpu:v5e", "cuda:a100", "cuda:v100"])
def test_every_row_says_what_where_from_and_what_becomes_of_it(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    found = facts_of(parse(target))
    assert len({fact.subject for fact in found}) == len(found)
    assert {fact.standing for fact in found} == {"as there", "bounded"}
    assert all(fact.there and fact.source for fact in found)
    shown = str(Emulation(Emulator.for_target(parse(target), 60.0)).arithmetic)
    assert shown.startswith(f"The arithmetic of {target}:")
    for fact in found:
        assert fact.subject in shown
        assert fact.source in shown


def test_a_gpu_before_ampere_has_no_tf32() -> None:
    subjects = {fact.subject for fact in facts_of(parse("cuda:v100"))}
    assert "float32 products" in subjects
    assert not any("default" in subject for subject in subjects)
    assert {fact.platform for fact in FACTS} == {"tpu", "cuda"}
