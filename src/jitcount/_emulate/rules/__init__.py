"""What each opcode of HLO is in StableHLO: a file for each subject declares its own rules."""
# ruff: noqa: F401 (they declare their rules when they are imported)

from jitcount._emulate.rules import (
    calls_nvidia,
    calls_solvers,
    calls_tpu,
    calls_tpu_solvers,
    collectives,
    control,
    convolutions,
    custom_calls,
    elementwise,
    indexing,
    moving,
    others,
    products,
    reducing,
    sorting,
)
