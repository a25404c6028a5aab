"""The only file that touches JAX's private parts; everything is read, nothing is patched.

Each use says why it is needed and what happens when a release takes it away; `tests/test_jax.py`
shows on every supported release that it does not have to.

JAX calls its listeners in the thread that compiles, inside the user's call. The Python stack at
that moment holds JAX's own frames, and in their local variables all that JAX knows of the program:
its jaxpr, the function, the device. No public interface tells these.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
import sysconfig
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from jax import monitoring
from jax._src import config as _config  # settings that a context manager has set are not public
from jax._src import monitoring as _monitoring

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JAX_DIRECTORY = str(Path(jax.__file__).parent)

# The logger of the line "Compiling %s with global shapes and types %s. Argument mapping: %s.",
# whose arguments are objects. It tells what is lowered where the stack does not; without both, a
# lowering is matched with its compile by name alone.
COMPILE_LOGGER = "jax._src.interpreters.pxla"

# The logger of the line "PERSISTENT COMPILATION CACHE MISS for '%s' with key %r", the last word
# before a program that is not on disk is compiled. Without it a guard speaks after that compile.
DISK_LOGGER = "jax._src.compiler"


@dataclass(frozen=True, slots=True)
class JitCall:
    """A call of a jitted function, as JAX's wrapper received it."""

    fun: Any
    """What was given to `jax.jit`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    info: Any
    """JAX's record of the options that `jax.jit` was called with."""

    caller: types.FrameType | None
    """The frame that called the wrapper: a library's, perhaps."""


@dataclass(frozen=True, slots=True)
class PrimitiveCall:
    """An operation outside of any jit: one primitive, with the parameters that are compiled in."""

    name: str
    args: tuple[Any, ...]
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """What JAX's frames say of the call that needs a program; None where they say nothing."""

    avals: Sequence[Any] | None = None
    """The abstract values of all arguments that the user passed."""

    made_by_jax: bool = False
    """The `jax.jit` is JAX's own: an operation called outside of any jit of the user's."""

    call: JitCall | PrimitiveCall | None = None
    transform: str = ""
    """Which transformation of the function it is: "vmap", "grad", "backward pass"."""

    source: str = ""
    """Where the function stands, as the jaxpr knows it: "step at train.py:42"; without a call."""


@dataclass(frozen=True, slots=True)
class Executable:
    """What JAX's frames say of the program that XLA has made of it."""

    kept_avals: Sequence[Any] | None = None
    """Of the arguments that the program uses, as in JAX's own line "Compiling ..."."""

    platform: str | None = None


def read_call(frame: types.FrameType | None) -> Call:
    """Read the innermost call that is lowered or compiled from the stack that ends in `frame`."""
    found = _frames_of_jax(frame)
    if "compile" in found:  # ahead of time
        return Call(avals=_lowered_avals(found["compile"].f_locals.get("self")))
    running = found.get("_pjit_call_impl_python")
    if running is None:
        return Call()
    jaxpr = running.f_locals.get("jaxpr")
    avals = getattr(jaxpr, "in_avals", None)
    transform = next((_TRANSFORMS[name] for name in found if name in _TRANSFORMS), "")
    call = _jit_call(found["cache_miss"]) if "cache_miss" in found else None
    if call is None:
        # The backward pass of a jitted function is called without its wrapper.
        source = _source_of(jaxpr)
        return Call(avals, _is_inside_jax(source), None, transform, source)
    if not _is_made_by_jax(call.fun):
        return Call(avals, made_by_jax=False, call=call, transform=transform)
    primitive = _applied_primitive(found["cache_miss"])
    return Call(avals, made_by_jax=True, call=primitive or call, transform=transform)


def read_executable(frame: types.FrameType | None) -> Executable:
    """Read the program that is compiled just now."""
    local = _locals_near(frame, "from_hlo")
    return Executable(local.get("global_in_avals"), _platform(local.get("device_list")))


def read_lowered_avals(frame: types.FrameType | None) -> Sequence[Any] | None:
    """Of the program that is lowered just now, the avals of the arguments that it uses.

    JAX's line "Compiling ..." says the same, and stands in where the frame does not.
    """
    return _locals_near(frame, "_cached_lowering_to_hlo").get("in_avals")


@dataclass(frozen=True, slots=True)
class Lowering:
    """A lowering that JAX has just made, with all that is needed to make it for another platform.

    No public interface lowers again what a jitted call has traced. The function that stands in the
    frame does, with the arguments that it has there. A release that takes the frame away, or its
    argument `platforms`, leaves None: then nothing can be compiled for a target.
    """

    lower: Callable[..., Any]
    arguments: dict[str, Any]
    module: Any
    """What JAX made: it is what tells which compile belongs to this lowering."""

    settings: tuple[tuple[str, Any], ...]
    """By name, the settings of the thread that lowered it."""

    @property
    def jaxpr(self) -> Any:
        """The program, as a jaxpr."""
        return self.arguments["closed_jaxpr"]


@dataclass(frozen=True, slots=True)
class Compilation:
    """What JAX's frames say of how a module is compiled."""

    module: Any
    devices: int
    inputs_may_move: tuple[bool, ...]
    """Of each argument, whether XLA may choose its sharding."""

    outputs_may_move: tuple[bool, ...]
    options: dict[str, Any]
    """The user's `compiler_options`."""


def read_lowering(frame: types.FrameType | None) -> Lowering | None:
    """Read what JAX has just lowered; None where its frame is not as we know it."""
    found = _frame_near(frame, "_cached_lowering_to_hlo")
    if found is None:
        return None
    code, local = found.f_code, found.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    module = getattr(local.get("lowering_result"), "module", None)
    if module is None or not {"platforms", "closed_jaxpr"} <= set(names) or code.co_freevars:
        return None
    # The function itself, without the cache that JAX keeps around it.
    lower = types.FunctionType(code, found.f_globals)
    arguments = {name: local[name] for name in names}
    settings = tuple(zip(config_names(), config_values(), strict=True))
    return Lowering(lower, arguments, module, settings)


def read_compilation(frame: types.FrameType | None) -> Compilation | None:
    """Read how a program is compiled; None where the frame is not as we know it: `jax.pmap`."""
    found = _frame_near(frame, "_cached_compilation")
    if found is None:
        return None
    local = found.f_locals
    try:
        return Compilation(
            local["computation"],
            len(local["da"]),
            tuple(local["allow_prop_to_inputs"]),
            tuple(local["allow_prop_to_outputs"]),
            dict(local["compiler_options_kvs"]),
        )
    except KeyError:
        return None


def lower_for(lowering: Lowering, platform: str) -> bytes:
    """Lower for another platform, and write the module as StableHLO bytecode.

    Where it came from in the source is left out: the same program from two lines is the same.
    Functions and settings that are private: those of JAX's own export, which wants a function and
    not a jaxpr.

    Raises:
        Exception: whatever JAX says of a program that the platform has no rule for.
    """
    from jax._src.interpreters import mlir as _mlir  # noqa: PLC0415
    from jaxlib.mlir.passmanager import PassManager  # noqa: PLC0415

    with contextlib.ExitStack() as settings:
        for name, value in lowering.settings:
            holder: Any = _config.config._value_holders.get(name)  # noqa: SLF001 (as in reading them)
            if holder is not None and holder.value != value:
                settings.enter_context(holder(value))
        settings.enter_context(jax.log_compiles(False))  # noqa: FBT003 (this one nobody asked for)
        module = lowering.lower(**{**lowering.arguments, "platforms": (platform,)})[0]
        with module.context:
            PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        return bytes(_mlir.module_to_bytecode(module))


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


def compile_module(
    program: bytes | str,
    devices: Sequence[Any],
    may_move: tuple[Sequence[bool], Sequence[bool]],
    options: dict[str, Any],
    platform: str,
) -> Any:
    """Compile a module for devices that need not be there; gives XLA's executable.

    The public way begins with a function, and would lower a second time what has been lowered.
    """
    import numpy as np  # noqa: PLC0415
    from jax._src import compiler as _compiler  # noqa: PLC0415
    from jax._src.interpreters import mlir as _mlir  # noqa: PLC0415
    from jaxlib import xla_client  # noqa: PLC0415
    from jaxlib.mlir import ir  # noqa: PLC0415

    with _mlir.make_ir_context():
        module = ir.Module.parse(program)
    client = devices[0].client
    settings = _compiler.get_compile_options(
        num_replicas=1,
        num_partitions=len(devices),
        device_assignment=np.array(devices, dtype=object).reshape(1, len(devices)),
        env_options_overrides=options,
        backend=client,
    )
    inputs, outputs = may_move
    build = settings.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(inputs)
    build.allow_spmd_sharding_propagation_to_output = list(outputs)
    # As JAX does: a TPU takes so many arguments only as one.
    settings.parameter_is_tupled_arguments = platform == "tpu" and len(inputs) > 2000
    together = xla_client.DeviceList(tuple(devices))
    return _compiler.backend_compile_and_load(client, module, together, settings, [])


# From a listener to where JAX lowers or compiles, through `jax.monitoring`, a context manager and
# a cache.
_NEAR = 10


def _locals_near(frame: types.FrameType | None, name: str) -> dict[str, Any]:
    """The local variables of a function of that name, a few frames up; none where it is not."""
    found = _frame_near(frame, name)
    return {} if found is None else found.f_locals


def _frame_near(frame: types.FrameType | None, name: str) -> types.FrameType | None:
    for _ in range(_NEAR):
        if frame is None or frame.f_code.co_name == name:
            return frame
        frame = frame.f_back
    return None


def read_tracing(frame: types.FrameType | None) -> JitCall | None:
    """Read a call that is traced ahead of time, `.trace()` or `.lower()`; None for other traces.

    When it is compiled, perhaps in another thread, its arguments are gone.
    """
    found = _frames_of_jax(frame)
    if "_infer_params" not in found or "cache_miss" in found:
        return None
    return _jit_call(found["_infer_params"])


# The functions of JAX whose local variables we read. `cache_miss` is the outermost: beyond it, and
# beyond a first frame of the user's, lies another program.
_READ = {"_pjit_call_impl_python", "_infer_params", "cache_miss"}

# Names that are not rare in JAX, with the end of the file that is meant.
_READ_IN = {"compile": "stages.py"}

# Those that say that a transformation of the function is compiled, and which.
_TRANSFORMS = {
    "_pjit_batcher": "vmap",
    "_pjit_jvp": "grad",
    "_pjit_linearize": "grad",
    "_pjit_transpose": "backward pass",
    "_pjit_transpose_fancy": "backward pass",
}

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def _frames_of_jax(frame: types.FrameType | None) -> dict[str, types.FrameType]:
    """The frames of the functions in `_READ` and `_TRANSFORMS`, the innermost call of each."""
    found: dict[str, types.FrameType] = {}
    inside_jax = False
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(JAX_DIRECTORY):
            inside_jax = True
            name = code.co_name
            if (
                name in _READ
                or name in _TRANSFORMS
                or (name in _READ_IN and code.co_filename.endswith(_READ_IN[name]))
            ):
                found.setdefault(name, frame)
                if name == "cache_miss":
                    break
        elif inside_jax and not code.co_filename.startswith(_STANDARD_LIBRARY):
            break
        frame = frame.f_back
    return found


def _jit_call(frame: types.FrameType) -> JitCall | None:
    local = frame.f_locals
    info = local.get("jit_info", local.get("ji"))
    if "fun" not in local or info is None:  # pmap has a `cache_miss` of its own
        return None
    caller = frame.f_back
    while caller is not None and is_module_of_jax(caller.f_globals.get("__name__", "")):
        caller = caller.f_back
    return JitCall(local["fun"], tuple(local["args"]), dict(local["kwargs"]), info, caller)


def _applied_primitive(miss: types.FrameType) -> PrimitiveCall | None:
    """The primitive behind a jit that JAX made on the spot, from the frame that made it."""
    frame = miss.f_back
    for _ in range(2):  # JAX's traceback filter stands between
        if frame is not None and frame.f_code.co_name == "apply_primitive":
            local = frame.f_locals
            name = str(getattr(local.get("prim"), "name", ""))
            return PrimitiveCall(name, tuple(local.get("args", ())), dict(local.get("params", {})))
        frame = frame and frame.f_back
    return None


# Fields of JAX's record of a jit that are no options of the user's.
_NO_OPTIONS = {
    "fun_sourceinfo",
    "fun_signature",
    "user_specified_in_shardings",
    "use_resource_env",
}


def option_values(info: Any) -> tuple[object, ...]:
    """The values of the options of a `jax.jit`."""
    kind: Any = type(info)
    return _option_getter(kind)(info)


@functools.cache
def option_names(kind: Any) -> tuple[str, ...]:
    """Their names, as in `jax.jit`."""
    fields = _option_fields(kind)
    return tuple(field.removesuffix("_leaves").removesuffix("_kvs") for field in fields)


@functools.cache
def _option_getter(kind: Any) -> Callable[[Any], tuple[object, ...]]:
    return operator.attrgetter(*_option_fields(kind))


@functools.cache
def _option_fields(kind: Any) -> tuple[str, ...]:
    fields = getattr(kind, "_fields", ())
    return tuple(f for f in fields if f not in _NO_OPTIONS and not f.endswith("_treedef"))


# From 0.10 JAX names the settings that are part of its cache key. Before, the ones that users set
# are read by name: a change of another one is not seen there, and such a recompile is taken for one
# from cleared caches.
def _are_settings_named() -> bool:
    try:
        return bool(_config.trace_context_names())
    except (AttributeError, NotImplementedError):
        return False


_SETTINGS_ARE_NAMED = _are_settings_named()


def config_names() -> tuple[str, ...]:
    """The names of the settings that are part of JAX's cache key."""
    return _config.trace_context_names() if _SETTINGS_ARE_NAMED else tuple(_config_holders())


def config_values() -> tuple[object, ...]:
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


def is_set_for_a_block(name: str) -> bool:
    """Whether a setting has another value in this thread than elsewhere: a context manager's."""
    try:
        holder = _config.config._value_holders[name]  # noqa: SLF001 (the public mapping has one value)
        return bool(holder.value != holder.get_global())  # type: ignore[attr-defined]
    except (AttributeError, KeyError):
        return not name.startswith("jax_")


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


def is_module_of_jax(name: str) -> bool:
    """Whether a module of this name belongs to JAX.

    >>> is_module_of_jax("jax.numpy"), is_module_of_jax("jaxtyping")
    (True, False)
    """
    return name.partition(".")[0] in {"jax", "jaxlib"}


def _is_made_by_jax(fun: object) -> bool:
    """Whether `fun`, found in a jit wrapper, was given to `jax.jit` by JAX and not by a user.

    A user gets hold of JAX's functions by their public names: of ``jax.jit(jnp.sum)`` the function
    is what stands in ``jax.numpy``. Of JAX's own jits it is what the decorator replaced, or a
    function made on the spot for one primitive: nothing stands under that name, or another thing,
    or the name is private.
    """
    if not isinstance(fun, types.FunctionType) or not is_module_of_jax(fun.__module__ or ""):
        return False
    if hasattr(fun, "__wrapped__"):  # jax.vmap(jnp.sum), handed to jit by the user
        return False
    public = getattr(sys.modules.get(fun.__module__), fun.__name__, None)
    return fun.__name__.startswith("_") or public is not fun


def _source_of(jaxpr: object) -> str:
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return str(getattr(info, "func_src_info", "") or "")


def _is_inside_jax(source: str) -> bool:
    return source.partition(" at ")[2].startswith(JAX_DIRECTORY)


def _lowered_avals(lowered: object) -> Sequence[Any] | None:
    """The avals of a `jax.stages.Lowered`; its public description leaves out the weak type."""
    if not hasattr(lowered, "args_info"):
        return None
    return [getattr(leaf, "_aval", leaf) for leaf in jax.tree.leaves(lowered.args_info)]


def _platform(devices: Any) -> str | None:
    """The platform of the devices; the backend would say the same of the default one only."""
    try:
        return str(next(iter(devices)).platform)
    except (TypeError, StopIteration, AttributeError):
        return None


def is_registered(callback: Callable[..., None]) -> bool:
    """Whether a duration listener is still there: `clear_event_listeners` takes all away."""
    return callback in _monitoring.get_event_duration_listeners()


def unregister(kind: str, callback: Callable[..., None]) -> None:
    """Take a listener back from `jax.monitoring`; one that is gone already is no error.

    Unregistering became public in 0.8.1; before, the same functions are there with a leading
    underscore and another ending. `jax.monitoring.clear_event_listeners` may have been called.
    """
    public = getattr(monitoring, f"unregister_{kind}_listener", None)
    if public is None:
        public = getattr(_monitoring, f"_unregister_{kind}_listener_by_callback")
    try:
        public(callback)
    except (AssertionError, ValueError):
        return
