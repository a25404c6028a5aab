"""The settings that are part of JAX's cache key, with their values in this thread.

The public mapping `jax.config.values` has one value for all threads, and leaves out what a context
manager has set.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import TYPE_CHECKING, Any

import jax
from jax._src import config as _config
from jax._src import util as _util

if TYPE_CHECKING:
    from collections.abc import Iterator


# From 0.10 JAX names the settings that are part of its cache key. Before, the ones that users set
# are read by name: a change of another one is not seen there, and such a recompile is taken for one
# from cleared caches.
def _are_settings_named() -> bool:
    try:
        return bool(_config.trace_context_names())
    except (AttributeError, NotImplementedError):
        return False


_SETTINGS_ARE_NAMED = _are_settings_named()

NAMED_AXES = "axis_env_state"
"""Name in JAX's cache key for what no user sets: the named axes of an enclosing `vmap`."""


def names() -> tuple[str, ...]:
    """The names of the settings that are part of JAX's cache key."""
    return _config.trace_context_names() if _SETTINGS_ARE_NAMED else tuple(_config_holders())


def values() -> tuple[object, ...]:
    """Their values in this thread."""
    if _SETTINGS_ARE_NAMED:
        return _config.trace_context()
    return tuple(holder.value for holder in _config_holders().values())


def is_x64() -> bool:
    """Whether 64-bit types are on, in this thread; the public mapping is made anew at each look."""
    return bool(_config.enable_x64.value)


def may_come_from_disk() -> bool:
    """Whether the persistent compilation cache is on."""
    on_disk = _config.compilation_cache_dir.value
    return bool(_config.enable_compilation_cache.value and on_disk)


# In this setting of JAX's, which only XLA's remote compilers read, `substituting` keeps which of
# our blocks a program is compiled in.
KEY_OF_BLOCKS = "jax_xla_profile_version"

_blocks: dict[int, str] = {}


def number_here() -> Any:
    """The number of the block that this thread is in; a context manager sets it for one thread."""
    holder: Any = _config.config._value_holders.get(KEY_OF_BLOCKS)  # noqa: SLF001 (as in reading them)
    return number_for_all_threads() if holder is None else holder.value


def number_for_all_threads() -> Any:
    """The number of the block that threads are in which have no other."""
    return jax.config.values[KEY_OF_BLOCKS]


@contextlib.contextmanager
def number_in_this_thread(number: int) -> Iterator[None]:
    """Set the number of the block for this thread only, until this ends."""
    with set_as(((KEY_OF_BLOCKS, number),)):
        yield


def name_block(number: int, name: str) -> None:
    """Say what one of our blocks is called, by its number in JAX's keys."""
    _blocks[number] = name


def shown(name: str, value: object) -> tuple[str, object]:
    """A setting as users know it."""
    if name == NAMED_AXES:
        sizes = getattr(value, "axis_sizes", None) or {}
        return name, ", ".join(f"{axis}: {size}" for axis, size in sizes.items()) or None
    if name != KEY_OF_BLOCKS:
        return name, value
    return "jitcount.as_if", _blocks.get(value, value) if value else None  # type: ignore[call-overload]


def is_set_for_a_block(name: str) -> bool:
    """Whether a setting has another value in this thread than elsewhere: a context manager's."""
    try:
        holder = _config.config._value_holders[name]  # noqa: SLF001 (the public mapping has one value)
        return bool(holder.value != holder.get_global())  # type: ignore[attr-defined]
    except (AttributeError, KeyError):
        return not name.startswith("jax_")


# What JAX sets for itself while it differentiates or maps; an abstract mesh is the user's only if
# it has axes.
_OWN = {NAMED_AXES, "eager_constant_folding", "jax_no_execution", "xla_metadata_context_manager"}
_EMPTY_MESHES = {"None", "AbstractMesh((), axis_types=())", "AbstractMesh(())"}


def is_jaxs_own(name: str, text: str) -> bool:
    """Whether a setting has this value by JAX's own doing, and not by a user's."""
    return name in _OWN or (name == "abstract_mesh_context_manager" and text in _EMPTY_MESHES)


_CONFIG_NAMES = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_device",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_disable_jit",
    "jax_debug_key_reuse",
    "jax_threefry_partitionable",
    "jax_threefry_gpu_kernel_lowering",
    "jax_random_seed_offset",
    "jax_softmax_custom_jvp",
    "jax_use_direct_linearize",
    "jax_use_simplified_jaxpr_constants",
    "jax_enable_pgle",
    "jax_pgle_profiling_runs",
    "jax_use_shardy_partitioner",
    "jax_xla_profile_version",
    "jax_dynamic_shapes",
    "jax_custom_vjp_disable_shape_check",
    "jax_mutable_array_checks",
    "jax_no_execution",
    "jax_high_dynamic_range_gumbel",
    "jax_error_checking_behavior_nan",
    "jax_error_checking_behavior_divide",
    "jax_error_checking_behavior_oob",
    "jax_check_static_indices",
)


@functools.cache
def _config_holders() -> dict[str, Any]:
    holders = _config.config._value_holders  # noqa: SLF001 (the public mapping ignores context managers)
    found = {name: holders[name] for name in _CONFIG_NAMES if name in holders}
    for name in ("mesh_context_manager", "abstract_mesh_context_manager"):
        if hasattr(_config, name):
            found[name] = getattr(_config, name)
    return found


# Settings that go into the options of a compile.
_COMPILE_SETTINGS = (
    "jax_use_shardy_partitioner",
    "jax_disable_most_optimizations",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
    "jax_optimization_level",
    "jax_memory_fitting_level",
)


def compile_settings() -> dict[str, Any]:
    """The settings of this process that a compile elsewhere needs, as plain values."""
    values = ((name, jax.config.values.get(name)) for name in _COMPILE_SETTINGS)
    return {name: v for name, v in values if isinstance(v, bool | int | float | str)}


@contextlib.contextmanager
def set_as(wanted: tuple[tuple[str, object], ...]) -> Iterator[None]:
    """Settings of another thread, by name, for a block in this one."""
    with contextlib.ExitStack() as settings:
        for name, value in wanted:
            holder: Any = _config.config._value_holders.get(name)  # noqa: SLF001 (as in reading them)
            if holder is not None and holder.value != value:
                settings.enter_context(holder(value))
        yield


# --- Whether JAX's caches have been cleared -------------------------------------------------------

# No public interface says so. But `jax.clear_caches` clears all caches that JAX's own decorator has
# made, and this one among them.

_clearings = itertools.count()

# A release without such caches leaves None: then they may always have been cleared.
try:
    _current_clearing = _util.cache(trace_context_in_key=False)(lambda: next(_clearings))
except (AttributeError, TypeError):
    _current_clearing = None


def times_cleared() -> int | None:
    """A number that another call of `jax.clear_caches` changes; None where that cannot be told."""
    return None if _current_clearing is None else _current_clearing()
