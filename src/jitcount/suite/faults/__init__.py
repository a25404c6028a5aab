"""Faults that a backend can have, put under the cases: what does the suite notice?"""

from __future__ import annotations

from jitcount.suite.faults.length import LENGTH
from jitcount.suite.faults.logic import LOGIC
from jitcount.suite.faults.order import ORDER
from jitcount.suite.faults.precision import PRECISION
from jitcount.suite.faults.races import TIME
from jitcount.suite.faults.sharding import SHARDING
from jitcount.suite.faults.structure import STRUCTURE

FAULTS = tuple(
    fault
    for family in (PRECISION, STRUCTURE, LENGTH, ORDER, LOGIC, SHARDING, TIME)
    for fault in family.faults
)
