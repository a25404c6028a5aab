"""jitcount counts, explains and prices every compile that a JAX program makes.

Importing it initialises no backend, prints nothing and changes no setting of JAX's.
"""

from jitcount.observe.compile import Compile
from jitcount.observe.log import CompileLog
from jitcount.observe.record import record
from jitcount.problem import cache_independent_count

__all__ = ["Compile", "CompileLog", "cache_independent_count", "record"]
