"""The only file that touches JAX's private parts; everything is read, nothing is patched.

Each use says why it is needed and what happens when a release takes it away; `tests/test_jax.py`
shows on every supported release that it does not have to.

JAX calls its listeners in the thread that compiles, inside the user's call. The Python stack at
that moment holds JAX's own frames, and in their local variables all that JAX knows of the program:
its jaxpr, the function, the device. No public interface tells these.
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from jax import monitoring

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JAX_DIRECTORY = str(Path(jax.__file__).parent)

# The logger of the line "Compiling %s with global shapes and types %s. Argument mapping: %s.",
# whose arguments are objects. Without it a lowering is matched with its compile by name alone.
COMPILE_LOGGER = "jax._src.interpreters.pxla"


@dataclass(frozen=True, slots=True)
class Compiling:
    """What JAX's frames say of the program that is being compiled; None where they say nothing."""

    avals: Sequence[Any] | None = None
    """The abstract values of all arguments that the user passed."""

    kept_avals: Sequence[Any] | None = None
    """Those that the program uses, as in JAX's own line "Compiling ..."."""

    platform: str | None = None
    made_by_jax: bool = False
    """The `jax.jit` is JAX's own: an operation called outside of any jit of the user's."""


def read_compiling(frame: types.FrameType | None) -> Compiling:
    """Read the innermost compile from the stack that ends in `frame`."""
    found = _frames_of_jax(frame)
    avals: Sequence[Any] | None = None
    made_by_jax = False
    if call := found.get("_pjit_call_impl_python"):
        jaxpr = call.get("jaxpr")
        avals = getattr(jaxpr, "in_avals", None)
        if miss := found.get("cache_miss"):
            made_by_jax = _is_made_by_jax(miss.get("fun"))
        else:
            # The backward pass of a jitted function is called without its wrapper.
            made_by_jax = _is_traced_from_jax(jaxpr)
    elif "compile" in found:
        avals = _lowered_avals(found["compile"].get("self"))
    executable = found.get("from_hlo", {})
    return Compiling(
        avals=avals,
        kept_avals=executable.get("global_in_avals"),
        platform=_platform(executable),
        made_by_jax=made_by_jax,
    )


# The functions of JAX whose local variables we read, by the module that they are in. `cache_miss`
# is the outermost: beyond it, and beyond a first frame of the user's, lies another program.
_READ = {
    ("jax._src.interpreters.pxla", "from_hlo"),
    ("jax._src.pjit", "_pjit_call_impl_python"),
    ("jax._src.pjit", "cache_miss"),
    ("jax._src.stages", "compile"),
}


def _frames_of_jax(frame: types.FrameType | None) -> dict[str, dict[str, Any]]:
    """Local variables of the functions in `_READ`, innermost call of each, by function name."""
    found: dict[str, dict[str, Any]] = {}
    inside_jax = False
    while frame is not None and "cache_miss" not in found:
        module = frame.f_globals.get("__name__", "")
        if is_module_of_jax(module):
            inside_jax = True
            name = frame.f_code.co_name
            if (module, name) in _READ and name not in found:
                found[name] = frame.f_locals
        elif inside_jax and module.partition(".")[0] not in sys.stdlib_module_names:
            break
        frame = frame.f_back
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


def _is_traced_from_jax(jaxpr: object) -> bool:
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return str(getattr(info, "func_filename", "")).startswith(JAX_DIRECTORY)


def _lowered_avals(lowered: object) -> Sequence[Any] | None:
    """The avals of a `jax.stages.Lowered`; its public description leaves out the weak type."""
    if not hasattr(lowered, "args_info"):
        return None
    return [getattr(leaf, "_aval", leaf) for leaf in jax.tree.leaves(lowered.args_info)]


def _platform(executable: dict[str, Any]) -> str | None:
    """The platform of the devices; the backend would say the same of the default one only."""
    try:
        devices = executable["device_list"]
        return str(next(iter(devices)).platform)
    except (KeyError, TypeError, StopIteration, AttributeError):
        return None


def unregister(kind: str, callback: Callable[..., None]) -> None:
    """Take a listener back from `jax.monitoring`; one that is gone already is no error.

    Unregistering became public in 0.8.1; before, the same functions are there with a leading
    underscore and another ending. `jax.monitoring.clear_event_listeners` may have been called.
    """
    public = getattr(monitoring, f"unregister_{kind}_listener", None)
    if public is None:
        from jax._src import monitoring as private  # noqa: PLC0415 (private: only where needed)

        public = getattr(private, f"_unregister_{kind}_listener_by_callback")
    try:
        public(callback)
    except (AssertionError, ValueError):
        return
