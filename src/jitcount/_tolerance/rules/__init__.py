"""What each operation of JAX does to arrays of lanes.

A rule takes an equation and returns a function that computes its results from its operands. Rules
are found by the names of primitives, which are public; parameters that moved between releases are
read where they are used.
"""

from jitcount._tolerance.rules import adding, algebra, elementwise, moving
from jitcount._tolerance.rules.rule import RULES

__all__ = ["RULES", "adding", "algebra", "elementwise", "moving"]
