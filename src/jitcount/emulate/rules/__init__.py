"""What each opcode of HLO is in StableHLO; a file a subject, each declares its own."""

from jitcount.emulate.rules import (
    collectives,
    control,
    custom_calls,
    elementwise,
    indexing,
    moving,
    products,
    reducing,
)

__all__ = [
    "collectives",
    "control",
    "custom_calls",
    "elementwise",
    "indexing",
    "moving",
    "products",
    "reducing",
]
