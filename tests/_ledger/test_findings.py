"""What is wrong with one entry by itself, where a miscompile is known to make it wrong."""

import numpy as np
import pytest

from jitcount._ledger.findings import findings
from jitcount._ledger.ledger import CaseEntry, Result
from jitcount._numerics.arrays import encode
from jitcount._numerics.expected import exactly

_EXPECTED = exactly(np.array([1, 2], np.int32))
_RIGHT = Result(encode(np.array([1, 2], np.int32)), _EXPECTED)
_WRONG = Result(encode(np.array([1, 3], np.int32)), _EXPECTED)
_REFUSED = "f(int32[2]): tpu:v4 refuses it: the compiler was ended by SIGABRT (Aborted)"
_NOT_RUN = "f(int32[2]): rewritten, the CPU's compiler refuses it: UNIMPLEMENTED"
_NOT_KNOWN = "f(int32[2]): a call of Something"
_OUT_OF_DATE = "right, and openxla #1 should make it wrong here"


@pytest.mark.parametrize(
    ("result", "as_on_cpu", "found"),
    [
        (_WRONG, (), []),
        (_RIGHT, (), [_OUT_OF_DATE]),
        (_RIGHT, (_REFUSED,), []),
        (_RIGHT, (_NOT_RUN,), [f"as if: {_NOT_RUN}"]),
        (_RIGHT, (_NOT_KNOWN,), [_OUT_OF_DATE]),
    ],
    ids=["wrong", "right", "ends-the-compiler", "cannot-run-here", "not-carried-over"],
)
def test_a_known_miscompile_is_wrong_or_ends_the_targets_compiler(
    result: Result, as_on_cpu: tuple[str, ...], found: list[str]
) -> None:
    entry = CaseEntry(results=(result,), as_on_cpu=as_on_cpu, known_wrong="openxla #1")
    assert findings(entry) == found


def test_a_refusal_is_found_where_nothing_is_known() -> None:
    entry = CaseEntry(results=(_RIGHT,), as_on_cpu=(_REFUSED, _NOT_KNOWN))
    assert findings(entry) == [f"as if: {_REFUSED}"]
