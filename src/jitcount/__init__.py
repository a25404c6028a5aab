"""jitcount counts, explains and prices every compile that a JAX program makes.

Importing it initialises no backend, prints nothing and changes no setting of JAX's.
"""

from jitcount.explain.causes import Cause
from jitcount.explain.compile import Compile
from jitcount.problem import cache_independent_count
from jitcount.recorder.guard import RecompileError, freeze, max_compiles
from jitcount.recorder.log import CompileLog
from jitcount.recorder.record import record

__all__ = [
    "Cause",
    "Compile",
    "CompileLog",
    "RecompileError",
    "cache_independent_count",
    "freeze",
    "max_compiles",
    "record",
]
