"""How each of XLA's compilers calls what it does, in the events that JAX's profiler records.

Nothing of this is promised. Where a release renames an event, the time that it told of is not
attributed: `tests/_jax/test_profiling.py` fails there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compiler:
    """The events of one compiler."""

    known_by: str
    """An event that no other one has."""

    passes: re.Pattern[str]
    """Spans in which the program is optimised."""

    generation: re.Pattern[str]
    """Spans in which code is made of it."""

    unit: re.Pattern[str]
    """Units; the first group is the name, without one it is the event's module."""

    nameless: str = ""
    """Units that have no name at all."""

    machine_code: str = ""
    """Units that have no name, but leave a file of machine code each, in the order they end."""


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
"""Events whose module has to be read: to read all of them takes long."""
