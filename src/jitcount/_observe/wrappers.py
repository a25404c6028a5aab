"""Calls through other libraries' jits: the user's function and arguments instead of their own.

Each library is known by the frame that calls JAX. One that is not known, or has changed, is read
like any other caller of `jax.jit`: the causes are right, the names are the library's.
"""

from __future__ import annotations

import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._jax import options
from jitcount._observe.functions import unwrapped
from jitcount._observe.safe_inspect import safe_getattr

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from jitcount._jax.frames import JitCall


class UserCall(msgspec.Struct, frozen=True):
    """A call as the user wrote it."""

    fun: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: inspect.Signature | None
    static_argnums: frozenset[int] = frozenset()
    static_argnames: frozenset[str] = frozenset()
    only_arrays_are_traced: bool = False
    """All other leaves are compiled in."""

    identity: Any = None
    """What tells the function from others of its kind, where the function is made anew."""


def user_call(call: JitCall) -> UserCall:
    """The call behind a call of `jax.jit`."""
    caller = call.caller
    if caller is not None:
        place = (caller.f_globals.get("__name__", ""), caller.f_code.co_name)
        if place in _LIBRARIES:
            try:
                return _LIBRARIES[place](caller, call)
            except (AttributeError, KeyError, TypeError):  # the library has changed
                pass
    return _with_names_of_linen(_plain(call))


def _plain(call: JitCall) -> UserCall:
    info, count = call.info, len(call.args)
    numbers = options.static_argnums(info) if call.static_argnums is None else call.static_argnums
    return UserCall(
        fun=call.fun,
        args=call.args,
        kwargs=call.kwargs,
        signature=signature_of(call.fun)
        if call.static_argnums is not None
        else options.fun_signature(info),
        # Numbers beyond the arguments at hand are no error for JAX: those came by keyword.
        static_argnums=frozenset(n % count for n in numbers if -count <= n < count),
        static_argnames=frozenset(options.static_argnames(info)),
    )


def signature_of(fun: Any) -> inspect.Signature | None:
    """A function's signature, if it has one."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def _equinox(caller: FrameType, call: JitCall) -> UserCall:  # noqa: ARG001
    """`equinox.filter_jit` passes JAX three dictionaries; its own frame has the arguments."""
    wrapper = caller.f_locals["jit_wrapper"]
    fun = wrapper.__wrapped__  # put together anew at each look, where it is a module
    inner = unwrapped(fun)
    return UserCall(
        fun=fun,
        identity=inner if inspect.isroutine(inner) else type(fun),
        args=tuple(caller.f_locals["args"]),
        kwargs=dict(caller.f_locals["kwargs"]),
        signature=wrapper._signature,  # noqa: SLF001
        only_arrays_are_traced=True,
    )


def _flax_nnx(caller: FrameType, call: JitCall) -> UserCall:
    """`flax.nnx.jit` passes JAX the states of the modules; its own frame has the modules."""
    fun = call.fun.__wrapped__
    return msgspec.structs.replace(
        _plain(call),
        fun=fun,
        args=tuple(caller.f_locals["args"]),
        kwargs=dict(caller.f_locals["kwargs"]),
        signature=inspect.signature(fun),
    )


def _with_names_of_linen(call: UserCall) -> UserCall:
    """``jax.jit(module.apply)``: its ``*args`` are those of the module's ``__call__``."""
    fun = call.fun
    if (
        type(fun) is not MethodType
        or safe_getattr(fun.__func__, "__module__") != "flax.linen.module"
    ):
        return call
    if safe_getattr(fun.__func__, "__name__") != "apply" or call.signature is None:
        return call
    first, *_ = call.signature.parameters.values()
    called = inspect.signature(type(fun.__self__).__call__).parameters.values()
    return msgspec.structs.replace(call, signature=inspect.Signature([first, *list(called)[1:]]))


_LIBRARIES: dict[tuple[str, str], Callable[[FrameType, JitCall], UserCall]] = {
    ("equinox._jit", "_call"): _equinox,
    ("flax.nnx.transforms.compilation", "__call__"): _flax_nnx,
}
