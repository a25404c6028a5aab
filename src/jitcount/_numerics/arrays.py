"""Arrays as text, exact to the bit, and the distance between two numbers in ulps."""

from __future__ import annotations

import math

import ml_dtypes
import msgspec
import numpy as np

# The dtypes that JAX computes with; ml_dtypes, which JAX needs too, has those that NumPy lacks.
_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_OTHERS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in (*_WHOLE, *_OTHERS)}


class Array(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An array in a file: its bytes, little-endian, in hexadecimal.

    >>> array = encode(np.array([0.1, -0.0], np.float32))
    >>> array
    Array(dtype='float32', shape=(2,), data='cdcccc3d00000080')
    >>> decode(array)
    array([ 0.1, -0. ], dtype=float32)
    """

    dtype: str
    shape: tuple[int, ...]
    data: str

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"an array of unknown dtype {self.dtype!r}")
        if any(length < 0 for length in self.shape):
            raise ValueError(f"an array of shape {self.shape}")
        wanted = 2 * DTYPES[self.dtype].itemsize * math.prod(self.shape)
        if len(self.data) != wanted:
            raise ValueError(
                f"{self.dtype}{list(self.shape)} takes {wanted} digits; it has {len(self.data)}"
            )
        try:
            bytes.fromhex(self.data)
        except ValueError:
            raise ValueError("an array's data is not hexadecimal") from None


def encode(values: np.ndarray) -> Array:
    """Return an array in the form that a file holds."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return Array(values.dtype.name, values.shape, little.tobytes().hex())


def decode(array: Array) -> np.ndarray:
    """Return the NumPy array that a file holds."""
    flat = np.frombuffer(bytes.fromhex(array.data), DTYPES[array.dtype].newbyteorder("<"))
    return flat.astype(DTYPES[array.dtype]).reshape(array.shape)


def parts(values: np.ndarray) -> np.ndarray:
    """The array if it is real; of a complex one, real and imaginary parts along a new last axis."""
    if values.dtype.kind == "c":
        return np.stack([values.real, values.imag], axis=-1)
    return values


def ulps_between(one: np.generic, other: np.generic) -> int:
    """How many steps of their dtype lie between two numbers; for integers, the difference.

    >>> ulps_between(np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0)))
    1
    >>> ulps_between(np.float32(-0.0), np.float32(0.0))
    0
    """
    return abs(_step(one) - _step(other))


def _step(number: np.generic) -> int:
    """The place of a number among all numbers of its dtype, in order."""
    if number.dtype.kind in "biu":
        return int(number)
    size = number.dtype.itemsize
    bits = int.from_bytes(number.astype(number.dtype.newbyteorder("<")).tobytes(), "little")
    sign = 1 << (8 * size - 1)
    return sign - bits if bits & sign else bits
