"""Guards for functions that are left and resumed: generators, coroutines, asynchronous generators.

What the caller or another task does between two steps of such a function is not its doing. So a
guarded run covers the steps from the first to the last, and not the time between them. While a
coroutine waits, though, another thread may be at work for it: `waiting` tells the run so.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from jitcount._record.guard import Run

    BeginRun = Callable[[], AbstractContextManager[Run]]


class _Steps:
    """An iterator or awaitable whose steps are made inside a run."""

    def __init__(self, inner: Any, run: Run) -> None:
        self._inner = inner
        self._run = run

    def __iter__(self) -> _Steps:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        with self._run:
            return next(self._inner)

    def send(self, value: Any) -> Any:
        with self._run:
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._run:
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._run:
            self._inner.close()


def wrap_resumable(body: Callable[..., Any], begin: BeginRun) -> Callable[..., Any] | None:
    """Wrap a function so that each call is a run of guarded steps; None for a plain function."""
    call = body if inspect.isroutine(body) else getattr(type(body), "__call__", body)  # noqa: B004
    for kind, make in _KINDS.items():
        if kind(body) or kind(call):
            return make(body, begin)
    return None


def _coroutine(body: Callable[..., Any], begin: BeginRun) -> Callable[..., Any]:
    @functools.wraps(body)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as run:
            with run:
                inner = body(*args, **kwargs)
            with run.waiting():
                return await _Steps(inner.__await__(), run)

    return guarded


def wrap_coroutine(coroutine: Any, begin: BeginRun) -> Any:
    """Wrap a coroutine that a plain function has returned, so that its steps are made in a run."""

    async def guarded() -> Any:
        with begin() as run, run.waiting():
            return await _Steps(coroutine.__await__(), run)

    guarded.__name__, guarded.__qualname__ = coroutine.__name__, coroutine.__qualname__
    return guarded()


def _generator(body: Callable[..., Any], begin: BeginRun) -> Callable[..., Any]:
    @functools.wraps(body)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as run:
            with run:
                inner = body(*args, **kwargs)
            return (yield from _Steps(inner, run))

    is_awaitable = _flags(body) & inspect.CO_ITERABLE_COROUTINE
    return types.coroutine(guarded) if is_awaitable else guarded


def _flags(body: Any) -> int:
    code = getattr(inspect.unwrap(body), "__code__", None)
    return 0 if code is None else int(code.co_flags)


def _async_generator(body: Callable[..., Any], begin: BeginRun) -> Callable[..., Any]:
    @functools.wraps(body)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        with begin() as run:
            with run:
                inner = body(*args, **kwargs)
            following = _first(inner)
            while True:
                try:
                    with run.waiting():
                        item = await _Steps(following.__await__(), run)
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    with run.waiting():
                        await _Steps(inner.aclose().__await__(), run)
                    raise
                except BaseException as error:  # noqa: BLE001 (thrown in, for the body)
                    following = inner.athrow(error)
                else:
                    following = inner.asend(sent)

    return guarded


def _first(inner: Any) -> Any:
    """The first step of an asynchronous generator, which the event loop does not get to know.

    It looks after the generator around this one, and would look after both.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return inner.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


_KINDS: dict[
    Callable[[Any], bool], Callable[[Callable[..., Any], BeginRun], Callable[..., Any]]
] = {
    inspect.isasyncgenfunction: _async_generator,
    inspect.iscoroutinefunction: _coroutine,
    inspect.isgeneratorfunction: _generator,
}
