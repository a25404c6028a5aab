"""What the messages of assertions say of the tolerance that would have done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from jitcount._pytest.tolerances import tolerance_that_would_do

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = np.ones(3)
NEAR = ONE * (1 + 1.2e-6)


def _message(check: Callable[[], Any]) -> str:
    with pytest.raises(AssertionError) as error:
        check()
    return str(error.value)


def test_of_numpys_assertions() -> None:
    close = _message(lambda: np.testing.assert_allclose(NEAR, ONE, rtol=1e-7))
    assert tolerance_that_would_do(close) == "rtol=3e-06 would do, where it has rtol=1e-07, atol=0"
    equal = _message(lambda: np.testing.assert_array_equal(NEAR, ONE))
    assert tolerance_that_would_do(equal) == "rtol=3e-06 would do, where it compares to the bit"
    almost = _message(lambda: np.testing.assert_array_almost_equal(NEAR, ONE, decimal=7))
    assert tolerance_that_would_do(almost) == "atol=3e-06 would do, where it has 7 decimals"


def test_beside_zero_it_is_absolute() -> None:
    message = _message(lambda: np.testing.assert_allclose([1e-9, 1.0], [0.0, 1.0], rtol=1e-7))
    assert (
        tolerance_that_would_do(message) == "atol=2e-09 would do, where it has rtol=1e-07, atol=0"
    )


def test_of_one_number() -> None:
    unittest = "1.0 != 1.0000012 within 7 places (1.2e-06 difference)"
    assert tolerance_that_would_do(unittest) == "a difference of 3e-06 would do"
    approx = "comparison failed\n  Obtained: 1.0000012\n  Expected: 1 ± 1.0e-08"
    assert tolerance_that_would_do(approx) == "abs=3e-06 would do, where it has 1.0e-08"


@pytest.mark.parametrize(
    "message",
    ["assert False", "", "x and y nan location mismatch", "Max absolute difference: nan"],
)
def test_of_others_nothing_is_said(message: str) -> None:
    assert tolerance_that_would_do(message) == ""
