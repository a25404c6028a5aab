"""The names of the events that JAX's profiler records of each of XLA's compilers.

None of them is promised. Where a release renames an event, its time is not attributed, and
`tests/_jax/test_profiling.py` fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compiler:
    """The names of one compiler's events."""

    known_by: str
    """How an event begins that no other compiler has."""

    passes: re.Pattern[str]
    """Events during which the program is optimised."""

    generation: re.Pattern[str]
    """Events during which code is generated for it."""

    unit: re.Pattern[str]
    """Events that compile one unit of code, named by the first group or by the event's module."""

    nameless: str = ""
    """The event that compiles a unit of code without a name."""

    machine_code: str = ""
    """The event that makes a file of machine code; the files are in the order of its ends."""


COMPILERS = (
    Compiler(
        known_by="CpuCompiler::",
        passes=re.compile(r"HLO passes "),
        generation=re.compile(r"CpuCompiler::RunBackend"),
        unit=re.compile(r"FusionCompiler::Compile"),
        machine_code="TaskDispatcher::dispatch",
    ),
    Compiler(
        known_by="TpuCompiler::",
        passes=re.compile(r"XLA::TPU run hlo passes"),
        generation=re.compile(r"XLA::TPU run backend|XLA::TPU lowering and optimization"),
        unit=re.compile(r"XLA::TPU emitting for (.+)"),
    ),
    Compiler(
        known_by="CompileToBackendResult",
        passes=re.compile(r"HLO Transforms:"),
        generation=re.compile(r"CompileToBackendResult"),
        unit=re.compile(r"Compiling IR:(?!LLVMDialectModule)(.+)"),
        nameless="Compiling IR:LLVMDialectModule",
    ),
)

MODULES_OF = ("FusionCompiler::Compile",)
"""Events whose module is read: reading that of all events takes long."""
