import pytest

from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import Ledger
from jitcount._suite.case import run_case
from jitcount._suite.cases import CASES

# One of each kind: exact, reduced, special, complex, elementwise, several results, matrices.
_CHOSEN = {
    "first-example",
    "back-to-the-first-shape",
    "sum-100",
    "sum-10000",
    "sum-nan",
    "sum-float16",
    "sum-complex64",
    "compare-specials",
    "exp",
    "sharded-mean",
}


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """What a real run of some cases found."""
    cases = {case.id: run_case(case) for case in CASES if case.id in _CHOSEN}
    return Ledger(environment=environment(), cases=cases)
