"""Faults that a backend can have, put under the suite's cases to see which ones it notices."""

from __future__ import annotations

from tools.faults.length import LENGTH
from tools.faults.logic import LOGIC
from tools.faults.order import ORDER
from tools.faults.precision import PRECISION
from tools.faults.races import TIME
from tools.faults.sharding import SHARDING
from tools.faults.structure import STRUCTURE

FAULTS = tuple(
    fault
    for family in (PRECISION, STRUCTURE, LENGTH, ORDER, LOGIC, SHARDING, TIME)
    for fault in family.faults
)
