"""Compiles a bucketed function for all of its sizes, before the first request comes."""

from __future__ import annotations

import contextlib
import itertools
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from jitcount._buckets.bucketed import Bucketed
from jitcount._show.progress import progress as showing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def warm(  # noqa: PLR0913 (keywords, each of its own)
    f: Bucketed,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    planned: Sequence[tuple[int, ...]],
    *,
    threads: int | None,
    progress: bool,
) -> None:
    """Compile for each size; for each pair of sizes, if there are several lengths.

    Args:
        f: what `jitcount.bucketed` returned.
        args: the arguments of a call.
        kwargs: its keyword arguments.
        planned: the sizes of each plan that this is asked of.
        threads: how many compile at the same time.
        progress: whether to show how far it is.
    """
    if not isinstance(f, Bucketed):
        raise TypeError(f"warm takes what jitcount.bucketed returned; f is a {type(f).__name__}")
    for sizes in planned:
        if not any(set(sizes) <= set(dimension.sizes) for dimension in f.dimensions):
            raise ValueError(
                f"warm compiles the sizes of a plan, {sizes}, and {f.__name__} is padded to "
                f"others, {f.sizes}"
            )
    if not args and not kwargs:
        if f.example is None:
            raise TypeError(
                f"warm needs the arguments of a call, as {f.__name__} has not been called yet"
            )
        args, kwargs = f.example
    ways = list(itertools.product(*[dimension.sizes for dimension in f.dimensions]))
    workers = threads or min(len(ways), os.cpu_count() or 1)
    shown = showing(f"compiling {f.__name__}", len(ways)) if progress else _silence()
    with shown as step, ThreadPoolExecutor(workers, "jitcount-warm") as pool:
        waiting = {}
        try:
            for sizes in ways:
                given, named = f.resized(args, kwargs, sizes)
                # Here, and not in a thread: settings such as `jax.enable_x64` are a thread's own.
                lowered = f.jitted.lower(*given, **named)
                waiting[pool.submit(lowered.compile)] = sizes
            for done in as_completed(waiting):
                done.result()
                step(" × ".join(map(str, waiting[done])))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _silence() -> Iterator[Callable[[str], None]]:
    """No progress is shown."""
    yield lambda _: None
