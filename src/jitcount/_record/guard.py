"""`jitcount.freeze` and `jitcount.max_compiles`: refuse a compile before XLA starts."""

from __future__ import annotations

import contextlib
import copyreg
import functools
import inspect
import itertools
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from jitcount._explain.explain import to_compile
from jitcount._observe.functions import describe_function
from jitcount._record.open_blocks import OpenBlocks
from jitcount._record.resumable import wrap_coroutine, wrap_resumable
from jitcount._registry import registry
from jitcount._text import encode_safely, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jitcount._explain.causes import Cause
    from jitcount._explain.compile import Compile
    from jitcount._observe.in_flight import InFlightCompile

Body = TypeVar("Body", bound="Callable[..., Any]")


class RecompileError(RuntimeError):
    """A compile that was refused.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> try:
    ...     with jitcount.freeze():
    ...         double(np.zeros(3, np.float32))
    ... except jitcount.RecompileError as error:
    ...     print(error.function, error.signature, error.causes[0])
    <lambda> ('float32[3]',) first call of <lambda>
    """

    def __init__(self, message: str, compiled: Compile) -> None:
        super().__init__(message)
        self.function: str = compiled.function
        self.signature: tuple[str, ...] = compiled.signature
        self.causes: tuple[Cause, ...] = compiled.causes
        self.call_site: str = compiled.call_site

    def __str__(self) -> str:
        """The message, in letters that stdout has: to print an error must not fail."""
        return encode_safely(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies, and for the way out of another process: without `__init__`."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class max_compiles:  # noqa: N801 (reads as a verb, like `record`)
    """Allow so many compiles in a block, of one function or of all, and refuse the next.

    The refused call raises `RecompileError` at the user's line, before XLA starts; the program can
    go on after it. What comes from the persistent cache is not a compile. Guards nest, and each
    with-statement counts for itself, also of one guard.

    As a decorator it counts each call of the function anew. Of a generator, a coroutine (``async
    def``) or an asynchronous generator, it guards the steps of the body from the first to the last,
    with the tasks that these start, and not what others do between them. While a coroutine waits,
    other threads are guarded as in a block: one of them may be at work for it.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> with jitcount.max_compiles(2, "<lambda>"):
    ...     for length in 3, 4, 3:
    ...         _ = double(np.zeros(length, np.float32))

    Args:
        limit: how many compiles are allowed.
        function: the function whose compiles count, or its name; by default all do, also those of
            eager operations.
        this_thread_only: let other threads compile as they like.
    """

    def __init__(
        self,
        limit: int,
        function: str | Callable[..., Any] | None = None,
        *,
        this_thread_only: bool = False,
    ) -> None:
        _require_count(limit)
        self._rule = _Rule(limit, _name_of(function), this_thread_only)
        self._blocks = OpenBlocks()

    def __enter__(self) -> None:
        frame = sys._getframe(1)  # noqa: SLF001 (documented)
        self._blocks.begin(frame).enter_context(registry.guarding(_Block(self._rule)))

    def __exit__(self, *_error: object) -> None:
        self._blocks.take(sys._getframe(1)).close()  # noqa: SLF001 (the same)

    def __call__(self, body: Body) -> Body:
        """Guard each call of a function."""
        if (wrapped := wrap_resumable(body, self._run)) is not None:
            return cast("Body", wrapped)

        @functools.wraps(body)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self:
                result = body(*args, **kwargs)
            return wrap_coroutine(result, self._run) if inspect.iscoroutine(result) else result

        return cast("Body", guarded)

    @contextlib.contextmanager
    def _run(self) -> Iterator[Run]:
        run = Run(self._rule)
        with registry.guarding(run):
            yield run


class freeze(max_compiles):  # noqa: N801 (the same)
    """Allow no compile in a block: what a server does after its warm-up.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> _ = double(np.zeros(3, np.float32))
    >>> with jitcount.freeze():
    ...     _ = double(np.zeros(3, np.float32))

    As a decorator it guards a function as `max_compiles` does.

    Args:
        this_thread_only: let other threads compile as they like.
    """

    def __init__(self, *, this_thread_only: bool = False) -> None:
        super().__init__(0, this_thread_only=this_thread_only)


class _Rule(NamedTuple):
    """What a guard allows."""

    limit: int
    function: str | None
    this_thread_only: bool

    def __str__(self) -> str:
        of = f" of {self.function}" if self.function else ""
        if self.limit == 0:
            guard = "max_compiles" if of else "freeze()"  # which takes no function
            return f"jitcount.{guard} allows no compile{of} here"
        compiles = "compile" if self.limit == 1 else "compiles"
        return f"jitcount.max_compiles allows {self.limit} {compiles}{of} here"


class _Block:
    """A guarded block with a count of its own; the registry asks it before each compile."""

    def __init__(self, rule: _Rule) -> None:
        self._rule = rule
        self._count = 0
        self._thread = threading.get_ident()

    def check(self, compiling: InFlightCompile) -> None:
        """Raise `RecompileError` at one compile too many."""
        if self._concerns(compiling) and self._count >= self._rule.limit:
            compiled = to_compile(compiling)
            headline = (
                f"{compiled.call} would be compiled at {compiled.call_site}, and {self._rule}"
            )
            message = "\n".join(map(escape_control_chars, [headline, *compiled.reasons()]))
            raise RecompileError(message, compiled)

    def count(self, compiling: InFlightCompile) -> None:
        """Count a compile that no guard refused."""
        if self._concerns(compiling):
            self._count += 1

    def _concerns(self, compiling: InFlightCompile) -> bool:
        if self._rule.this_thread_only and threading.get_ident() != self._thread:
            return False
        return self._rule.function in {None, compiling.function}


# The runs that this thread or task is inside of. What it starts begins with a copy: another task,
# or `asyncio.to_thread`, belongs to the run, too.
_inside_of: ContextVar[tuple[int, ...]] = ContextVar("jitcount_inside_of", default=())
_run_numbers = itertools.count(1)


class Run(_Block):
    """A guarded run of a generator or coroutine; each of its steps is made inside `with run:`."""

    def __init__(self, rule: _Rule) -> None:
        super().__init__(rule)
        self._number = next(_run_numbers)
        self._is_in_a_step = False
        self._is_waiting = False

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._is_in_a_step = True
        _inside_of.set((*_inside_of.get(), self._number))

    def __exit__(self, *_error: object) -> None:
        self._is_in_a_step = False
        _inside_of.set(tuple(other for other in _inside_of.get() if other != self._number))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While the body awaits something, other threads may compile on its behalf."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    def _concerns(self, compiling: InFlightCompile) -> bool:
        is_inside = self._is_in_a_step or self._number in _inside_of.get()
        if self._is_waiting and threading.get_ident() != self._thread:
            is_inside = True  # a thread of a pool (`run_in_executor`) knows not who it works for
        return is_inside and super()._concerns(compiling)


def _require_count(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ValueError(f"max_compiles takes a count of 0 or more; limit is {limit!r}")


def _name_of(function: object) -> str | None:
    """The name that JAX has for a function, as it stands in a log."""
    if function is None or (isinstance(function, str) and function):
        return function
    if not callable(function):
        raise TypeError(f"max_compiles takes a function or its name; function is {function!r}")
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else describe_function(function).name
