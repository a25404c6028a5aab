"""What holds for the cases as a whole; ``jitcount suite`` runs them all, in every test session."""

import jax
import numpy as np
import pytest

from jitcount._numerics.expected import CLASSES, OF_OWN_CASES
from jitcount._suite import transformer
from jitcount._suite.case import Case, run_case
from jitcount._suite.cases import CASES
from jitcount._suite.model_cases import LOSSES
from jitcount._suite.sharded_cases import unless_divided_by
from jitcount._suite.sums import with_x64


def test_ids_are_unique_and_say_something() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert all(case.claim for case in CASES)


def test_every_class_of_numerics_has_a_case() -> None:
    quick = [case for case in CASES if not case.id.endswith("-10000000")]
    used = {expected.numerics for case in quick for expected in case.expected()}
    assert used == set(CLASSES) - set(OF_OWN_CASES)


def test_a_case_that_raises_is_kept_as_that() -> None:
    def program() -> list[jax.Array]:
        raise RuntimeError("no such\ninstruction")

    case = Case(id="x", claim="x", program=program, expected=list, compiles={})
    assert run_case(case).error == "RuntimeError: no such instruction"


def test_an_unsupported_case_is_not_run() -> None:
    case = Case(
        id="x", claim="x", program=list, expected=list, compiles={}, unsupported=lambda: "too new"
    )
    assert run_case(case).unsupported == "too new"


def test_what_does_not_divide_by_the_devices_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "device_count", lambda: 3)
    assert unless_divided_by(9)() == ""
    assert unless_divided_by(1000)() == "1,000 do not divide by 3 devices"


def test_the_losses_are_those_of_float64() -> None:
    def wide(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(np.float64) if leaf.dtype == np.float32 else leaf

    with with_x64():
        state = jax.tree.map(wide, transformer.init())
        for number, expected in enumerate(LOSSES):
            state, loss = transformer.step(state, transformer.tokens(seed=number))
            assert loss.dtype == np.float64
            assert float(loss) == pytest.approx(expected, rel=1e-9)
