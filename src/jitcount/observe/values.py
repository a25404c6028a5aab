"""Arrays and static values as descriptions, which keep nothing alive."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jitcount._jax import settings
from jitcount.observe.functions import describe_function, token

_LONGEST = 80

_SCALARS: dict[type, type] = {int: np.int64, float: np.float64, complex: np.complex128}

_NUMPY = (np.ndarray, np.generic)

ARRAYS = (jax.Array, np.ndarray, np.generic)


@dataclass(frozen=True, slots=True)
class Static:
    """A value that is compiled in."""

    text: str
    token: int
    """Equal for values that JAX takes as equal."""

    type_name: str
    compares_by_identity: bool
    is_function: bool


def shape_and_dtype(leaf: Any) -> tuple[tuple[object, ...], str, bool]:
    """Shape, dtype and weak type that JAX gives to a leaf.

    >>> shape_and_dtype(np.ones((2, 3), np.float32)), shape_and_dtype(1)
    (((2, 3), 'float32', False), ((), 'int32', True))
    """
    if isinstance(leaf, _NUMPY):
        return leaf.shape, _canonical(leaf.dtype, settings.is_x64()), False
    if type(leaf) in _SCALARS:
        return (), _canonical(_SCALARS[type(leaf)], settings.is_x64()), True
    if isinstance(leaf, bool):
        return (), "bool", False
    aval = getattr(leaf, "aval", leaf)
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        aval = jax.typeof(leaf)
    return tuple(aval.shape), dtype_name(aval.dtype), bool(getattr(aval, "weak_type", False))


@functools.lru_cache(maxsize=256)
def _canonical(dtype: Any, is_x64: bool) -> str:  # noqa: ARG001, FBT001 (the result depends on it)
    return str(jax.dtypes.canonicalize_dtype(dtype).name)


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: Any) -> str:
    """The name of a dtype; NumPy works it out anew each time."""
    return str(dtype.name)


def placement(leaf: Any) -> tuple[str, str] | None:
    """Where an array is bound to be, as ``("device" | "sharding", text)``; None where it is not."""
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer) or not leaf.committed:
        return None
    sharding = leaf.sharding
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        (device,) = sharding.device_set
        return "device", str(device)
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        axes = ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())
        devices = ",".join(str(device.id) for device in mesh.devices.flat)
        return "sharding", f"{_spec(sharding.spec)} over mesh ({axes}) of devices {devices}"
    return "sharding", str(sharding)


def _spec(spec: Any) -> str:
    return f"P({', '.join(map(repr, spec))})"


def describe_static(value: Any) -> Static:
    """Describe a value that is compiled in, by its hash, as JAX compares it."""
    is_function = isinstance(value, types.FunctionType | types.MethodType | functools.partial)
    try:
        number = token(value) if is_function else hash((type(value), value))
    except TypeError:  # not hashable: a parameter of a primitive
        number = hash(text_of(value))
    kind = type(value)
    return Static(
        text=_function_text(value) if is_function else text_of(value),
        token=number,
        type_name=kind.__qualname__,
        compares_by_identity=getattr(kind, "__eq__", None) is object.__eq__ and not is_function,
        is_function=is_function,
    )


def _function_text(value: Any) -> str:
    function = describe_function(value)
    return f"{function.name} at {function.place}" if function.place else function.name


def text_of(value: Any) -> str:
    """A short text for a value, whatever it is; a user's `__repr__` may be long or may fail."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 (anything can happen in a `__repr__`)
        text = f"<{type(value).__qualname__}>"
    return shortened(text)


def shortened(text: str) -> str:
    """A text that fits into a sentence."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def signature_of(avals: object) -> tuple[str, ...]:
    """Describe abstract values as a user would write them.

    >>> import jax, numpy as np
    >>> signature_of([jax.ShapeDtypeStruct((32, 511), np.float32)])
    ('float32[32,511]',)
    """
    return tuple(_describe(aval) for aval in avals)  # type: ignore[attr-defined]


def _describe(aval: Any) -> str:
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        return str(aval)  # a token, say
    weak = "weak " if getattr(aval, "weak_type", False) else ""
    return f"{weak}{dtype_name(aval.dtype)}[{','.join(map(str, aval.shape))}]"
