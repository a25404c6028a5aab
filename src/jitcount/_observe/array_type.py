"""Dtype and shape as a value of their own: causes and ledgers hold them, and need no JAX."""

from __future__ import annotations

import msgspec


class ArrayType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Dtype and shape of an array, as a user would write them.

    >>> print(ArrayType("float32", (32, 511)))
    float32[32,511]
    """

    dtype: str
    shape: tuple[int | str, ...]
    """A length may be a symbol, under `jax.export`."""

    is_weak: bool = False

    def __str__(self) -> str:
        weak = "weak " if self.is_weak else ""
        return f"{weak}{self.dtype}[{','.join(map(str, self.shape))}]"
