"""What is said of a line's share and of its remedy, whole; `test_real` has the real ones."""

import pytest

from jitcount._emulate.error import LineError, Remedy
from jitcount._observe.call_site import CallSite

LINE = CallSite("model.py:8 in attention", "/home/me/model.py", 8, "attention")


def test_a_share_is_a_part_of_the_change() -> None:
    share = LineError(LINE, "q @ k in bfloat16", 0.5, 0.714, "loss")
    assert str(share) == "model.py:8 in attention: q @ k in bfloat16: 71 % of the change of loss"
    assert share.advice == ""


@pytest.mark.parametrize(
    ("remedy", "advice"),
    [
        (
            Remedy(everywhere=False, left=0.22, cost=None),
            'precision="highest" there: 22 % of the change is left',
        ),
        (
            Remedy(everywhere=True, left=0.0, cost=1.25),
            (
                'jax.default_matmul_precision("highest") for all of it: 0 % of the change is left, '
                "1.25 times the cycles"
            ),
        ),
        (
            Remedy(everywhere=False, left=1.0, cost=1.1),
            'precision="highest" there: 100 % of the change is left, 1.10 times the cycles',
        ),
        (
            Remedy(everywhere=False, left=4.57, cost=1.1),
            (
                'precision="highest" there does not help: the change is then 4.6 times as large, '
                "since what other lines round no longer cancels, 1.10 times the cycles"
            ),
        ),
    ],
)
def test_advice_says_what_it_brings_and_what_it_costs(remedy: Remedy, advice: str) -> None:
    assert LineError(LINE, "q @ k in bfloat16", 0.5, 1.0, "loss", remedy).advice == advice
