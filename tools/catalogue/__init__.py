"""The catalogue: each kind of cause as a small program, with the causes that must be found.

Each is run with empty caches and an empty history, as in a new process.
"""

from tools.catalogue import (
    arrays,
    calls,
    eager,
    functions,
    neighbours,
    pytrees,
    statics,
    surroundings,
    transformed,
)
from tools.catalogue.case import CATALOGUE

__all__ = [
    "CATALOGUE",
    "arrays",
    "calls",
    "eager",
    "functions",
    "neighbours",
    "pytrees",
    "statics",
    "surroundings",
    "transformed",
]
