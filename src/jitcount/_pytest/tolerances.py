"""What an assertion that failed says of its numbers, and the tolerance that would have done."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf))"

# As NumPy writes them; chex, optax and JAX's own tests pass that on, and pytest.approx has the
# same words for arrays.
_RELATIVE = re.compile(
    rf"Max relative difference(?: among violations)?:\s*{_NUMBER}", re.IGNORECASE
)
_ABSOLUTE = re.compile(
    rf"Max absolute difference(?: among violations)?:\s*{_NUMBER}", re.IGNORECASE
)
_GIVEN = re.compile(rf"rtol={_NUMBER},\s*atol={_NUMBER}")
_DECIMALS = re.compile(r"not almost equal to (\d+) decimals")
# unittest's assertAlmostEqual, and pytest.approx of one number.
_DIFFERENCE = re.compile(rf"\({_NUMBER} difference\)")
_APPROX = re.compile(rf"Obtained:\s*{_NUMBER}\s+(?:E\s+)?Expected:\s*{_NUMBER} ± {_NUMBER}")

_TIMES = 2
"""What is asked for beyond what was seen: another seed, or a real backend, is off by more."""


def tolerance_that_would_do(message: str) -> str:
    r"""The tolerance with which an assertion would have held; empty where it says no numbers.

    >>> tolerance_that_would_do("Not equal to tolerance rtol=1e-07, atol=0\nMax absolute "
    ...     "difference among violations: 1.1\nMax relative difference among violations: 2.4e-07")
    'rtol=5e-07 would do, where it has rtol=1e-07, atol=0'
    """
    given = _GIVEN.search(message)
    has = f", where it has rtol={given[1]}, atol={given[2]}" if given else ""
    if decimals := _DECIMALS.search(message):
        has = f", where it has {decimals[1]} decimals"
    elif "rrays are not equal" in message:
        has = ", where it compares to the bit"
    relative, absolute = _largest(_RELATIVE, message), _largest(_ABSOLUTE, message)
    if relative is not None and relative < 1 and not decimals:
        return f"rtol={_asked(relative)} would do{has}"
    if absolute is not None and math.isfinite(absolute):
        return f"atol={_asked(absolute)} would do{has}"
    if (difference := _largest(_DIFFERENCE, message)) is not None:
        return f"a difference of {_asked(difference)} would do"
    if found := _APPROX.search(message):
        off = abs(float(found[1]) - float(found[2]))
        return f"abs={_asked(off)} would do, where it has {found[3]}"
    return ""


def line_in(item: pytest.Item, error: pytest.ExceptionInfo[BaseException]) -> str:
    """The line of the test at which it failed: ``test_step.py:12``."""
    path = getattr(item, "path", None)
    for entry in reversed(error.traceback):
        if path is not None and Path(entry.path) == path:
            return f"{path.name}:{entry.lineno + 1}"
    return ""


def _largest(pattern: re.Pattern[str], message: str) -> float | None:
    found = [abs(float(each)) for each in pattern.findall(message)]
    return max(found) if found and not any(map(math.isnan, found)) else None


def _asked(seen: float) -> str:
    """Twice a number, rounded up to one digit."""
    wanted = seen * _TIMES
    if not (0 < wanted < math.inf):
        return f"{wanted:g}"
    step = 10.0 ** math.floor(math.log10(wanted))
    return f"{math.ceil(wanted / step - 1e-9) * step:.0e}"
