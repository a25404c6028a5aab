"""What each opcode of HLO is in StableHLO; a file a subject, each declares its own."""

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

__all__ = [
    "calls_nvidia",
    "calls_solvers",
    "calls_tpu",
    "calls_tpu_kernels",
    "calls_tpu_solvers",
    "collectives",
    "control",
    "convolutions",
    "custom_calls",
    "elementwise",
    "indexing",
    "moving",
    "others",
    "products",
    "reducing",
    "sorting",
]
