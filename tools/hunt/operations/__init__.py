"""What programs are made of: each operation in NumPy, as a line of JAX, and how it is drawn."""

from tools.hunt.operations import (
    control,
    elementwise,
    indexing,
    products,
    reductions,
    shapes,
    windows,
)

__all__ = ["control", "elementwise", "indexing", "products", "reductions", "shapes", "windows"]
