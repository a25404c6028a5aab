"""The tools that try tolerances: they find nothing wrong here, and would find what is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tools.faults import FAULTS
from tools.tolerances import seeds
from tools.tolerances.faults import tried
from tools.tolerances.programs import PROGRAMS

if TYPE_CHECKING:
    from tools.tolerances.programs import Program


def test_programs_are_within_their_tolerances(capsys: pytest.CaptureFixture[str]) -> None:
    assert seeds.main(["2", "layer norm", "one hot products"]) == 0
    one, other, last = capsys.readouterr().out.splitlines()
    assert one.startswith("layer norm: 0.")
    assert other == "one hot products: 0.00 of its tolerance"
    assert last.startswith("0 alarms in 2 runs; ")


def test_one_that_is_not_is_shown_with_its_seed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = iter([0.0, 0.0, 1.0])

    def drifting(data: np.random.Generator) -> Program:
        x = data.normal(size=3).astype(np.float32)
        offset = np.float32(next(offsets))
        return lambda x: x.sum() + offset, (x,)

    monkeypatch.setitem(PROGRAMS, "drifting", drifting)
    assert seeds.main(["3", "drifting"]) == 1
    assert "; beyond it with seeds [2]" in capsys.readouterr().out


@pytest.mark.parametrize("primitive", ["dot_general", "exp"])
def test_faults_of_an_operation_are_beyond_the_tolerance(primitive: str) -> None:
    faults = [fault for fault in FAULTS if primitive in fault.primitives][:3]
    f, arguments = PROGRAMS["attention"](np.random.default_rng(0))
    outcomes = tried(faults, f, arguments)
    assert outcomes
    assert any(is_beyond for _, _, is_beyond in outcomes)
