"""Every kind of cause, on whatever backend and release this runs."""

import jax
import pytest

from jitcount._explain.causes import Kind
from tools.catalogue import CATALOGUE
from tools.cause_case import CauseCase, causes_found, is_right, run_cause_case


@pytest.mark.parametrize("case", CATALOGUE, ids=lambda case: case.id)
def test_the_causes_are_named_and_nothing_else(case: CauseCase) -> None:
    if jax.device_count() < case.devices:
        pytest.skip(f"needs {case.devices} devices")
    found = causes_found(run_cause_case(case))
    assert is_right(case, found), found


def test_every_kind_of_cause_has_a_case() -> None:
    named = {cause.partition(" ")[0] for case in CATALOGUE for c in case.causes for cause in c}
    assert named == set(Kind) - {Kind.UNKNOWN}


def test_ids_are_unique() -> None:
    assert len({case.id for case in CATALOGUE}) == len(CATALOGUE)


def test_a_wrong_cause_is_not_taken_for_right() -> None:
    (case,) = [case for case in CATALOGUE if case.id == "shape"]
    assert not is_right(case, [["first-call f"], ["dtype x"]])
    assert not is_right(case, [["first-call f"], ["shape x", "dtype x"]])
    assert not is_right(case, [["first-call f"]])
