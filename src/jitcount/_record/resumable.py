"""Functions that are left and entered again: generators, coroutines and asynchronous generators.

What a caller does between two steps of such a body, or another task, is not the body's doing. A run
of it is under way from its first step to its last, and inside of its steps only. While it waits,
though, a thread may be at work for it: that is told to the run, too.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


class Step(Protocol):
    """What stands around each step of a run."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None: ...

    def waiting(self) -> AbstractContextManager[object]:
        """Stands around steps between which the body waits for others, and nobody for the body."""


class Begin(Protocol):
    """Begins a run, and ends it with the block; gives what stands around its steps."""

    def __call__(self) -> AbstractContextManager[Step]:
        """Begin."""


class _Steps:
    """What is sent into a body, or thrown, each time within `step`."""

    def __init__(self, inner: Any, step: Step) -> None:
        self._inner = inner
        self._step = step

    def __iter__(self) -> _Steps:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        with self._step:
            return next(self._inner)

    def send(self, value: Any) -> Any:
        with self._step:
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._step:
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._step:
            self._inner.close()


def in_steps(body: Callable[..., Any], begin: Begin) -> Callable[..., Any] | None:
    """A function of the same kind, whose steps are made within a run; None for a plain function."""
    call = body if inspect.isroutine(body) else getattr(type(body), "__call__", body)  # noqa: B004
    for kind, make in _KINDS.items():
        if kind(body) or kind(call):
            return make(body, begin)
    return None


def _coroutine(body: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @functools.wraps(body)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as step:
            with step:
                inner = body(*args, **kwargs)
            with step.waiting():
                return await _Steps(inner.__await__(), step)

    return guarded


def awaited(coroutine: Any, begin: Begin) -> Any:
    """The same for a coroutine that a plain function has returned."""

    async def guarded() -> Any:
        with begin() as step, step.waiting():
            return await _Steps(coroutine.__await__(), step)

    guarded.__name__, guarded.__qualname__ = coroutine.__name__, coroutine.__qualname__
    return guarded()


def _generator(body: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @functools.wraps(body)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as step:
            with step:
                inner = body(*args, **kwargs)
            return (yield from _Steps(inner, step))

    is_awaitable = _flags(body) & inspect.CO_ITERABLE_COROUTINE
    return types.coroutine(guarded) if is_awaitable else guarded


def _flags(body: Any) -> int:
    code = getattr(inspect.unwrap(body), "__code__", None)
    return 0 if code is None else int(code.co_flags)


def _async_generator(body: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @functools.wraps(body)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as step:
            with step:
                inner = body(*args, **kwargs)
            following = _first(inner)
            while True:
                try:
                    with step.waiting():
                        item = await _Steps(following.__await__(), step)
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    with step.waiting():
                        await _Steps(inner.aclose().__await__(), step)
                    raise
                except BaseException as error:  # noqa: BLE001 (thrown in, for the body)
                    following = inner.athrow(error)
                else:
                    following = inner.asend(sent)

    return guarded


def _first(inner: Any) -> Any:
    """The first step; an event loop takes care of what is around it, and need not know of both."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return inner.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


_KINDS: dict[Callable[[Any], bool], Callable[[Callable[..., Any], Begin], Callable[..., Any]]] = {
    inspect.isasyncgenfunction: _async_generator,
    inspect.iscoroutinefunction: _coroutine,
    inspect.isgeneratorfunction: _generator,
}
