"""The call that is compiled, from the local variables of JAX's functions on the stack.

JAX calls its listeners in the thread that compiles, inside the user's call. The Python stack at
that moment holds JAX's own frames, and in their local variables all that JAX knows of the program:
its jaxpr, the function, the device. No public interface tells these. A frame that a release has
renamed is not found: the compile is counted, and its cause is not known.
"""

from __future__ import annotations

import sys
import sysconfig
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import jax
import msgspec
from msgspec.structs import replace

from jitcount._jax.jaxprs import Source, is_small, source_of
from jitcount._jax.origin import JAX_DIRECTORIES, is_made_by_jax, is_module_of_jax
from jitcount._jax.transforms import (
    BACKWARD_PASS,
    TRANSFORMS,
    Transformation,
    is_in_backward_pass,
    transforms_in,
)


class JitCall(msgspec.Struct, frozen=True):
    """A call of a jitted function, as JAX's wrapper received it."""

    fun: Any
    """What was given to `jax.jit`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    info: Any
    """JAX's record of the options that `jax.jit` was called with."""

    caller: FrameType | None
    """The frame that called the wrapper: a library's, perhaps."""

    static_argnums: tuple[int, ...] | None = None
    """Where they are not those of the jit: `jax.pmap` has static arguments of its own."""

    pmap_options: tuple[tuple[str, Any], ...] = ()
    """By name, what `jax.pmap` was called with."""


class PrimitiveCall(msgspec.Struct, frozen=True):
    """An operation outside of any jit: one primitive, with the parameters that are compiled in."""

    name: str
    args: tuple[Any, ...]
    params: dict[str, Any]


class Call(msgspec.Struct, frozen=True):
    """What JAX's frames say of the call that needs a program; None where they say nothing."""

    avals: Sequence[Any] | None = None
    """The abstract values of all arguments that the user passed."""

    arrays: Sequence[Any] = ()
    """For each of them, what the program is run with; none where that could not be read."""

    made_by_jax: bool = False
    """The `jax.jit` is JAX's own: an operation called outside of any jit of the user's."""

    call: JitCall | PrimitiveCall | None = None
    transforms: tuple[Transformation, ...] = ()
    """How the function is transformed, the outermost transformation first."""

    jaxpr: Any = None
    """What is compiled: JAX's caches know programs by this object."""

    source: Source | None = None
    """Where the function stands, as the jaxpr knows it; without a call."""

    ahead_of_time: bool = False
    """Whether ``.compile()`` asked for the program, and no call."""


class CompilingFrame(msgspec.Struct, frozen=True):
    """What JAX's frames say of the program that XLA is about to compile."""

    kept_avals: Sequence[Any] | None = None
    """The avals of the arguments that the program uses, as in JAX's own line "Compiling ..."."""

    platform: str | None = None
    module: object = None
    """What is compiled: the same object that a lowering has made."""


class LoweringFrame(msgspec.Struct, frozen=True):
    """What JAX's frames say of a lowering that has just ended."""

    kept_avals: Sequence[Any] | None = None
    """As in `CompilingFrame`; without them JAX's line stands in."""

    module: Callable[[], object] | None = None
    """A weak reference to what was made."""

    is_small: bool = False
    """Whether it is of few operations, and holds no array."""


def read_call(frame: FrameType | None) -> Call:
    """Read the innermost call that is lowered or compiled from the stack that ends in `frame`."""
    stack = _frames_of_jax(frame)
    found = _innermost(stack)
    if "compile" in found:  # ahead of time
        avals = _lowered_avals(found["compile"].f_locals.get("self"))
        return Call(avals=avals, ahead_of_time=True)
    running = found.get("_pjit_call_impl_python")
    if running is None:
        return Call()
    local = running.f_locals
    jaxpr = local.get("jaxpr")
    avals = getattr(jaxpr, "in_avals", None)
    transforms = transforms_in([one for one in stack if one.f_code.co_name in TRANSFORMS])
    call = _jit_call(found["cache_miss"]) if "cache_miss" in found else None
    seen = Call(
        avals=avals,
        arrays=_arrays(local, avals),
        call=call,
        transforms=transforms,
        jaxpr=jaxpr,
    )
    if call is None:
        # The backward pass of a jitted function is called without its wrapper.
        source = source_of(jaxpr)
        is_jaxs = source is not None and source.is_jaxs
        return replace(seen, made_by_jax=is_jaxs, source=source)
    if not is_made_by_jax(call.fun):
        return seen
    primitive = _applied_primitive(found["cache_miss"])
    if primitive is None:
        return replace(seen, made_by_jax=True)
    if not transforms and is_in_backward_pass(found["cache_miss"]):
        transforms = (Transformation(BACKWARD_PASS),)
    return replace(seen, made_by_jax=True, call=primitive, transforms=transforms)


def _arrays(local: dict[str, Any], avals: Sequence[Any] | None) -> Sequence[Any]:
    """The arguments themselves; under a transformation, the user's frame has tracers for them."""
    arrays = local.get("args", ())
    return arrays if avals is not None and len(arrays) == len(avals) else ()


def read_executable(frame: FrameType | None) -> CompilingFrame:
    """Read the executable that is made just now."""
    local = _locals_near(frame, "from_hlo")
    devices, module = local.get("device_list"), local.get("hlo")
    return CompilingFrame(local.get("global_in_avals"), _platform(devices), module)


def read_lowered(frame: FrameType | None) -> LoweringFrame:
    """Read what JAX has just lowered."""
    local = _locals_near(frame, _LOWERS)
    module = getattr(local.get("lowering_result"), "module", None)
    made = None if module is None else weakref.ref(module)
    return LoweringFrame(local.get("in_avals"), made, is_small(local.get("closed_jaxpr")))


def tells_lowered_avals(frame: FrameType | None) -> bool:
    """Whether `read_lowered` will find the avals of what JAX lowers just now."""
    found = frame_near(frame, _LOWERS)
    return found is not None and "in_avals" in found.f_code.co_varnames


_LOWERS = "_cached_lowering_to_hlo"


# From a listener to where JAX lowers or compiles, through `jax.monitoring`, a context manager and
# a cache.
_NEAR = 10


def _locals_near(frame: FrameType | None, name: str) -> dict[str, Any]:
    """The local variables of a function of that name, a few frames up; none where it is not."""
    found = frame_near(frame, name)
    return {} if found is None else found.f_locals


def frame_near(frame: FrameType | None, name: str) -> FrameType | None:
    """The frame of a function of that name, a few frames up; None where it is not."""
    for _ in range(_NEAR):
        if frame is None or frame.f_code.co_name == name:
            return frame
        frame = frame.f_back
    return None


# JAX's functions that a call begins in where its caches have nothing: the second one runs what was
# jitted before under a transformation. What they return is kept under the key of the call.
_CALLS = ("cache_miss", "call_impl_cache_miss")


def _is_call(frame: FrameType) -> bool:
    """Whether a call begins in a frame, or a compile ahead of time."""
    code = frame.f_code
    return code.co_filename.startswith(JAX_DIRECTORIES) and (
        code.co_name in _CALLS
        or (code.co_name == "compile" and code.co_filename.endswith(_READ_IN["compile"]))
    )


def call_of(frame: FrameType | None) -> FrameType | None:
    """JAX's frame of the innermost call on a stack, or of the compile ahead of time."""
    while frame is not None and not _is_call(frame):
        frame = frame.f_back
    return frame


def calls_under_way() -> list[tuple[int, FrameType]]:
    """JAX's frames of the calls that any thread is in, with the number of the thread.

    The innermost call of a thread comes first.
    """
    found = []
    for thread, innermost in sys._current_frames().items():  # noqa: SLF001 (documented)
        frame = call_of(innermost)
        while frame is not None:
            found.append((thread, frame))
            frame = call_of(frame.f_back)
    return found


def calls_about_to_begin() -> list[tuple[FrameType, int]]:
    """Where threads are that hash or compare a value, perhaps a static argument: the caller's line.

    Before JAX looks into its cache it has read its settings, and then asks for that. Only after it
    the frame begins that `call_of` finds.
    """
    found = []
    for innermost in sys._current_frames().values():  # noqa: SLF001 (documented)
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code.co_name in {"__hash__", "__eq__"} and frame.f_back is not None:
                found.append((frame.f_back, frame.f_back.f_lasti))
            frame = frame.f_back
    return found


def caller_of(call: FrameType) -> tuple[FrameType | None, int]:
    """Who called what JAX begins in a frame: the frame outside of JAX, and its instruction."""
    frame = call.f_back
    while frame is not None and frame.f_code.co_filename.startswith(JAX_DIRECTORIES):
        frame = frame.f_back
    return frame, -1 if frame is None else frame.f_lasti


def read_call_under_way(frame: FrameType) -> JitCall | PrimitiveCall | None:
    """Read the call that one of the frames of `calls_under_way` began."""
    call = _jit_call(frame) if frame.f_code.co_name == "cache_miss" else None
    if call is None or not is_made_by_jax(call.fun):
        return call
    return _applied_primitive(frame) or call


def computation_of(frame: FrameType | None) -> Any:
    """The lowered program whose executable is made just now: JAX keeps the one with the other."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "compile" and code.co_filename.endswith("pxla.py"):
            return frame.f_locals.get("self")
        if _is_call(frame):
            return None
        frame = frame.f_back
    return None


def lowered_module(frame: FrameType | None) -> Any:
    """What JAX has lowered of the program that is compiled just now; None where it is not known.

    It is not what is compiled where its shapes are refined first: a call of what `jax.export` has
    exported with symbolic shapes, or for several platforms.
    """
    return getattr(computation_of(frame), "_hlo", None)


def is_in_a_call(frame: FrameType | None) -> bool:
    """Whether a call needs what is lowered just now; not, where it is lowered ahead of time."""
    found = _innermost(_frames_of_jax(frame))
    return not found.keys().isdisjoint({"_pjit_call_impl_python", "cache_miss"})


def read_tracing(frame: FrameType | None) -> JitCall | None:
    """Read a call that is traced ahead of time, `.trace()` or `.lower()`; None for other traces.

    When it is compiled, perhaps in another thread, its arguments are gone.
    """
    found = _innermost(_frames_of_jax(frame))
    if "_infer_params" not in found or "cache_miss" in found:
        return None
    return _jit_call(found["_infer_params"])


# The functions of JAX whose local variables we read. `cache_miss` is the outermost: beyond it, and
# beyond a first frame of the user's, lies another program.
_READ = {"_pjit_call_impl_python", "_infer_params", "cache_miss"}

# Names that are not rare in JAX, with the end of the file that is meant.
_READ_IN = {"compile": "stages.py"}

_FOUND = _READ | TRANSFORMS.keys() | _READ_IN.keys()

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def _innermost(frames: Sequence[FrameType]) -> dict[str, FrameType]:
    """Of each function the innermost call, by its name."""
    return {frame.f_code.co_name: frame for frame in reversed(frames)}


def _frames_of_jax(frame: FrameType | None) -> list[FrameType]:
    """The frames of the functions in `_FOUND`, the innermost call first."""
    found: list[FrameType] = []
    inside_jax = False
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(JAX_DIRECTORIES):
            inside_jax = True
            name = code.co_name
            if name in _FOUND and code.co_filename.endswith(_READ_IN.get(name, "")):
                found.append(frame)
                if name == "cache_miss":
                    break
        elif inside_jax and not code.co_filename.startswith(_STANDARD_LIBRARY):
            break
        frame = frame.f_back
    return found


def _jit_call(frame: FrameType) -> JitCall | None:
    local = frame.f_locals
    info = local.get("jit_info", local.get("ji"))
    if "fun" not in local or info is None:  # pmap has a `cache_miss` of its own
        return None
    caller = frame.f_back
    while caller is not None and is_module_of_jax(caller.f_globals.get("__name__", "")):
        if caller.f_code.co_name == "wrapped" and (mapped := _pmapped(caller, info)) is not None:
            return mapped
        caller = caller.f_back
    return JitCall(local["fun"], tuple(local["args"]), dict(local["kwargs"]), info, caller)


# How `jax.pmap` calls its options, and how its wrapper does.
_PMAP_OPTIONS = {"axis_name": "axis_name", "in_axes": "in_axes", "out_axes": "out_axes_flat"}


def _pmapped(frame: FrameType, info: Any) -> JitCall | None:
    """The user's call behind a jit that `jax.pmap` has made; without it the names are JAX's own."""
    local = frame.f_locals
    infer = local.get("infer_params")
    closed_over = (
        dict(zip(infer.__code__.co_freevars, infer.__closure__, strict=True)) if infer else {}
    )
    try:
        fun = closed_over["wrapped_fun"].cell_contents.f
        static = tuple(closed_over["static_broadcasted_tuple"].cell_contents)
        cells = {name: closed_over.get(inner) for name, inner in _PMAP_OPTIONS.items()}
        options = tuple((name, cell.cell_contents) for name, cell in cells.items() if cell)
        args, kwargs = tuple(local["args"]), dict(local["kwargs"])
        return JitCall(fun, args, kwargs, info, frame.f_back, static, options)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _applied_primitive(miss: FrameType) -> PrimitiveCall | None:
    """The primitive behind a jit that JAX made on the spot, from the frame that made it."""
    frame = miss.f_back
    for _ in range(2):  # JAX's traceback filter stands between
        if frame is not None and frame.f_code.co_name == "apply_primitive":
            local = frame.f_locals
            name = str(getattr(local.get("prim"), "name", ""))
            return PrimitiveCall(name, tuple(local.get("args", ())), dict(local.get("params", {})))
        frame = frame and frame.f_back
    return None


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
