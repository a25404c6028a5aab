"""Arrays as descriptions, which keep nothing alive."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import msgspec
import numpy as np

from jitcount._jax import settings
from jitcount._observe.array_type import ArrayType
from jitcount._observe.safe_inspect import is_a

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCALARS: dict[type, type] = {int: np.int64, float: np.float64, complex: np.complex128}

_NUMPY = (np.ndarray, np.generic)

ARRAYS = (jax.Array, jax.core.Tracer, np.ndarray, np.generic)


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Where an array is bound to be."""

    text: str
    is_sharded: bool


class Leaf(msgspec.Struct, frozen=True, gc=False):
    """An array among the arguments: all of it that a program depends on."""

    shape: tuple[Any, ...]
    dtype: str
    is_weak: bool
    placement: Placement | None = None

    @property
    def type(self) -> ArrayType:
        """Dtype and shape."""
        shape = tuple(length if isinstance(length, int) else str(length) for length in self.shape)
        return ArrayType(self.dtype, shape)

    def differences_from(self, other: Leaf) -> int:
        """In how many ways it is another array; a weak type counts where nothing else is."""
        retyped = self.dtype != other.dtype
        reshaped = self.shape != other.shape
        weakened = self.is_weak != other.is_weak and not (retyped or reshaped)
        return retyped + reshaped + weakened + (self.placement != other.placement)


def describe_leaf(leaf: Any) -> Leaf:
    """Describe what JAX takes as an array.

    >>> print(describe_leaf(np.ones((2, 3), np.float32)).type, describe_leaf(1).is_weak)
    float32[2,3] True
    """
    if type(leaf) is np.ndarray:  # most are, or JAX's: no further question
        return _numpy_leaf(leaf.shape, leaf.dtype, settings.is_x64())
    if not is_a(leaf, jax.Array):
        if is_a(leaf, *_NUMPY):
            dtype, shape = dtype_and_shape(leaf)
            return _numpy_leaf(shape, dtype, settings.is_x64())
        if type(leaf) is bool:
            return Leaf((), "bool", is_weak=False)
        for kind, wide in _SCALARS.items():
            if is_a(leaf, kind):
                return Leaf((), _canonical(wide, settings.is_x64()), is_weak=True)
    aval = getattr(leaf, "aval", leaf)
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        aval = _type_of(leaf)
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):  # a token, or a type of the user's
        return Leaf((), _aval_text(aval), is_weak=False)
    weak = bool(getattr(aval, "weak_type", False))
    return _jax_leaf(tuple(aval.shape), aval.dtype, weak, _placement(leaf))


def dtype_and_shape(array: Any) -> tuple[Any, tuple[Any, ...]]:
    """The dtype and shape of an array; a subclass of NumPy's is read as NumPy's own."""
    for kind in _NUMPY:
        if is_a(array, kind):
            return kind.dtype.__get__(array), kind.shape.__get__(array)
    return array.dtype, array.shape


@functools.lru_cache(maxsize=4096)
def _numpy_leaf(shape: tuple[int, ...], dtype: Any, is_x64: bool) -> Leaf:  # noqa: FBT001
    """Most leaves are like others: described once."""
    return Leaf(shape, _canonical(dtype, is_x64), is_weak=False)


@functools.lru_cache(maxsize=4096)
def _jax_leaf(
    shape: tuple[Any, ...],
    dtype: Any,
    is_weak: bool,  # noqa: FBT001
    placement: Placement | None,
) -> Leaf:
    """Describe an array of JAX's by its parts: not all that JAX takes as an array has a hash."""
    return Leaf(shape, dtype_name(dtype), is_weak, placement)


def describe_placed(aval: Any, array: Any) -> Leaf:
    """Describe an array by its abstract value, and by where it is."""
    leaf = describe_leaf(aval)
    placement = _placement(array)
    return leaf if placement is None else msgspec.structs.replace(leaf, placement=placement)


def _type_of(leaf: Any) -> Any:
    """What JAX takes a value as; the value where it is a type, which has no type for JAX."""
    try:
        return jax.typeof(leaf)
    except TypeError:
        return leaf


@functools.lru_cache(maxsize=256)
def _canonical(dtype: Any, is_x64: bool) -> str:  # noqa: ARG001, FBT001 (the result depends on it)
    return str(jax.dtypes.canonicalize_dtype(dtype).name)


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: Any) -> str:
    """The name of a dtype; NumPy works it out anew each time."""
    return str(dtype.name)


def _placement(leaf: Any) -> Placement | None:
    """Where an array is bound to be; None where it is not, and for what is no array."""
    if not is_a(leaf, jax.Array) or is_a(leaf, jax.core.Tracer) or not leaf.committed:
        return None
    sharding = leaf.sharding
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        (device,) = sharding.device_set
        return Placement(f"{device}{_memory(sharding)}", is_sharded=False)
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        axes = ", ".join(map(_mesh_axis, mesh.axis_names, mesh.axis_sizes, _axis_types(mesh)))
        devices = ",".join(str(device.id) for device in mesh.devices.flat)
        over = f"over mesh ({axes}) of devices {devices}"
        return Placement(f"{_spec(sharding)} {over}{_memory(sharding)}", is_sharded=True)
    return Placement(str(sharding), is_sharded=True)


def _axis_types(mesh: Any) -> list[str]:
    """Of each axis of a mesh "auto", "explicit" or "manual": a program depends on that, too."""
    types = getattr(mesh, "axis_types", None) or ()
    return [getattr(each, "name", "Auto").lower() for each in types] or ["auto"] * mesh.size


def _mesh_axis(name: Any, size: int, kind: str) -> str:
    return f"{name}: {size}" if kind == "auto" else f"{name}: {size} {kind}"


def _spec(sharding: Any) -> str:
    """The `PartitionSpec` of a sharding, equal for two that are one to JAX.

    With axes to reduce over, it is no sequence any more (from JAX 0.9).
    """
    spec, mesh = sharding.spec, sharding.mesh
    kinds = dict(zip(mesh.axis_names, _axis_types(mesh), strict=False))
    # An axis of one device does not divide an array.
    idle = {name for name, size in mesh.shape.items() if size == 1 and kinds.get(name) == "auto"}
    entries = [_entry(entry, idle) for entry in getattr(spec, "partitions", spec)]
    while entries and entries[-1] is None:
        entries.pop()
    parts = list(map(repr, entries))
    beside = {name: sorted(map(repr, getattr(spec, name, ()))) for name in ("unreduced", "reduced")}
    parts += [f"{name}={{{', '.join(axes)}}}" for name, axes in beside.items() if axes]
    return f"P({', '.join(parts)})"


def _entry(entry: Any, idle: set[Any]) -> Any:
    """What one axis of an array is divided by: ``P(('x',))`` is ``P('x')``."""
    if not isinstance(entry, str | tuple):
        return entry
    names = tuple(
        name for name in ((entry,) if isinstance(entry, str) else entry) if name not in idle
    )
    return names if len(names) > 1 else next(iter(names), None)


def _memory(sharding: Any) -> str:
    """In which memory of its devices an array is, where that is not the usual one."""
    kind = getattr(sharding, "memory_kind", None)
    device = next(iter(sharding.device_set))
    return "" if kind in {None, device.default_memory().kind} else f" in {kind} memory"


def signature_of(avals: Iterable[Any]) -> tuple[str, ...]:
    """Describe abstract values as a user would write them.

    >>> import jax, numpy as np
    >>> signature_of([jax.ShapeDtypeStruct((32, 511), np.float32)])
    ('float32[32,511]',)
    """
    return tuple(map(_aval_text, avals))


def _aval_text(aval: Any) -> str:
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        return str(aval).removesuffix("()")  # AbstractToken(), say
    is_weak = bool(getattr(aval, "weak_type", False))
    return str(ArrayType(dtype_name(aval.dtype), tuple(aval.shape), is_weak))
