"""Guards on generators, coroutines and asynchronous generators: the whole body, and only it."""

import asyncio
import functools
import gc
import inspect
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._registry import registry


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def arr(length: int) -> np.ndarray:
    return np.ones(length, np.float32)


@pytest.fixture(autouse=True)
def no_guard_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert registry.guards == ()


# --- Generators -----------------------------------------------------------------------------------


@jitcount.max_compiles(1)
def compiling(*lengths: int) -> Generator[int, int | None, str]:
    """Compile, a length a step."""
    sent: int | None = None
    for length in lengths:
        step(arr(sent or length))
        sent = yield length
    return "done"


def test_a_generator_is_guarded_from_its_first_step_to_its_last() -> None:
    run = compiling(3, 4)
    assert next(run) == 3
    with pytest.raises(jitcount.RecompileError, match="allows 1 compile here"):
        next(run)


def test_what_its_caller_does_between_the_steps_is_not_the_generators_doing() -> None:
    for length in compiling(3, 3, 3):
        step(arr(10 + length))
        jax.clear_caches()
        step(arr(3))


def test_each_run_of_a_generator_has_a_count_of_its_own() -> None:
    first, second = compiling(3), compiling(4)
    assert [next(first), next(second)] == [3, 4]
    first.close()
    second.close()


def test_a_generator_is_sent_to_thrown_into_closed_and_returns_as_ever() -> None:
    seen: list[object] = []

    @jitcount.freeze()
    def body() -> Generator[str, str, int]:
        try:
            seen.append((yield "first"))
            try:
                yield "second"
            except KeyError as error:
                seen.append(error.args)
            yield "third"
        finally:
            seen.append("closed")
        return 7

    run = body()
    assert [next(run), run.send("hello"), run.throw(KeyError("k"))] == ["first", "second", "third"]
    with pytest.raises(StopIteration) as ended:
        next(run)
    assert (ended.value.value, seen) == (7, ["hello", ("k",), "closed"])
    seen.clear()
    run = body()
    next(run)
    run.close()
    assert seen == ["closed"]


def test_what_a_generator_does_when_it_is_closed_is_guarded() -> None:
    @jitcount.freeze()
    def body() -> Iterator[int]:
        try:
            yield 1
        finally:
            step(arr(3))

    run = body()
    next(run)
    with pytest.raises(jitcount.RecompileError):
        run.close()  # type: ignore[attr-defined]


def test_a_generator_that_is_left_halfway_guards_nothing_more() -> None:
    for _ in compiling(3, 4):
        break
    gc.collect()
    assert registry.guards == ()


def test_a_generator_that_is_awaited_stays_one() -> None:
    @jitcount.freeze()
    @types.coroutine
    def body() -> Generator[Any, Any, int]:
        yield from asyncio.sleep(0).__await__()
        return 5

    async def work() -> int:
        return await body()

    assert asyncio.run(work()) == 5


# --- Coroutines -----------------------------------------------------------------------------------


@jitcount.freeze()
async def serve(length: int, other: Awaitable[object] | None = None) -> list[float]:
    """Answer a request."""
    await asyncio.sleep(0)
    if other is not None:
        await other
    found: list[float] = step(arr(length)).tolist()
    return found


def test_a_coroutine_is_guarded_after_it_has_waited() -> None:
    step(arr(3))
    assert asyncio.run(serve(3)) == [2.0, 2.0, 2.0]
    with pytest.raises(jitcount.RecompileError):
        asyncio.run(serve(4))


def test_what_other_tasks_compile_while_it_waits_is_not_its_doing() -> None:
    step(arr(3))

    async def work() -> object:
        go = asyncio.Event()
        served = asyncio.create_task(serve(3, go.wait()))
        for length in 5, 6:
            await asyncio.sleep(0)
            step(arr(length))
        go.set()
        return await served

    assert asyncio.run(work()) == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("start", ["task", "thread", "pool", "await"])
def test_what_a_coroutine_starts_belongs_to_it(start: str) -> None:
    async def compile_later() -> None:
        await asyncio.sleep(0)
        step(arr(4))

    @jitcount.freeze()
    async def body() -> None:
        if start == "task":
            await asyncio.gather(compile_later())
        elif start == "thread":
            await asyncio.to_thread(step, arr(4))
        elif start == "pool":
            await asyncio.get_running_loop().run_in_executor(None, step, arr(4))
        else:
            await compile_later()

    with pytest.raises(jitcount.RecompileError):
        asyncio.run(body())


def test_this_thread_only_holds_for_a_coroutine() -> None:
    @jitcount.freeze(this_thread_only=True)
    async def body() -> None:
        await asyncio.to_thread(step, arr(4))
        step(arr(5))

    with pytest.raises(jitcount.RecompileError) as raised:
        asyncio.run(body())
    assert raised.value.signature == ("float32[5]",)


def test_a_coroutine_that_is_cancelled_hears_of_it_and_guards_nothing_more() -> None:
    seen: list[str] = []

    @jitcount.freeze()
    async def body() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def work() -> None:
        task = asyncio.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        step(arr(3))

    asyncio.run(work())
    assert seen == ["cancelled"]


def test_a_coroutine_that_a_plain_function_returns_is_guarded() -> None:
    def traced(body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        def around(*args: Any) -> Any:
            return body(*args)

        return around

    @jitcount.freeze()
    @traced
    async def body() -> None:
        await asyncio.sleep(0)
        step(arr(3))

    with pytest.raises(jitcount.RecompileError):
        asyncio.run(body())


def test_an_object_whose_call_is_a_coroutine_is_guarded() -> None:
    class Model:
        async def __call__(self, length: int) -> None:
            await asyncio.sleep(0)
            step(arr(length))

    with pytest.raises(jitcount.RecompileError):
        asyncio.run(jitcount.freeze()(Model())(3))


# --- Asynchronous generators ----------------------------------------------------------------------


@jitcount.max_compiles(1)
async def streaming(*lengths: int) -> AsyncIterator[int]:
    """Compile, a length a step."""
    for length in lengths:
        await asyncio.sleep(0)
        step(arr(length))
        yield length


def test_what_a_pool_compiles_while_an_asynchronous_generator_waits_belongs_to_it() -> None:
    async def pool(length: int) -> None:
        await asyncio.get_running_loop().run_in_executor(None, step, arr(length))

    @jitcount.max_compiles(1)
    async def body() -> AsyncIterator[int]:
        yield 1
        await pool(3)
        yield 2
        await pool(4)

    async def work() -> None:
        async for number in body():
            await pool(10 + number)  # its consumer's doing

    with pytest.raises(jitcount.RecompileError) as raised:
        asyncio.run(work())
    assert raised.value.signature == ("float32[4]",)


def test_an_asynchronous_generator_is_guarded_in_its_steps_only() -> None:
    async def work() -> list[int]:
        seen = []
        async for length in streaming(3, 3, 4):
            seen.append(length)
            step(arr(10 + len(seen)))
        return seen

    with pytest.raises(jitcount.RecompileError, match="allows 1 compile here"):
        asyncio.run(work())


def test_an_asynchronous_generator_is_sent_to_thrown_into_and_closed_as_ever() -> None:
    seen: list[object] = []

    @jitcount.freeze()
    async def body() -> Any:
        try:
            seen.append((yield "first"))
            try:
                yield "second"
            except KeyError as error:
                seen.append(error.args)
            yield "third"
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def work() -> None:
        run = body()
        assert await run.asend(None) == "first"
        assert await run.asend("hello") == "second"
        assert await run.athrow(KeyError("k")) == "third"
        await run.aclose()
        assert seen == ["hello", ("k",), "closed"]
        with pytest.raises(StopAsyncIteration):
            await run.__anext__()
        run = body()
        await run.__anext__()
        with pytest.raises(ZeroDivisionError):
            await run.athrow(ZeroDivisionError)

    asyncio.run(work())


def test_an_asynchronous_generator_that_is_left_is_closed_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed: list[str] = []

    @jitcount.freeze()
    async def body() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    runs = [body(), body()]  # one is left, one is there when the loop ends

    async def work() -> None:
        for run in runs:
            await anext(run)
        del run, runs[0]
        while not closed:  # noqa: ASYNC110
            await asyncio.sleep(0)

    asyncio.run(work())
    assert (closed, caplog.records) == (["closed"] * 2, [])


# --- What is asked of functions -------------------------------------------------------------------


def test_a_guarded_function_is_of_the_kind_that_it_was() -> None:
    def plain(x: int) -> int:
        return x

    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    for function in plain, compiling, serve, streaming:
        inner = inspect.unwrap(function)
        guarded = jitcount.freeze()(inner)
        assert [kind(guarded) for kind in kinds] == [kind(inner) for kind in kinds]
        assert (guarded.__name__, guarded.__doc__) == (inner.__name__, inner.__doc__)
        assert inspect.signature(guarded) == inspect.signature(inner)


def test_a_function_that_calls_itself_is_guarded_each_time() -> None:
    @jitcount.max_compiles(2)
    def countdown(n: int) -> int:
        step(arr(n))
        return countdown(n - 1) if n > 1 else 0

    assert countdown(2) == 0
    with pytest.raises(jitcount.RecompileError, match="allows 2 compiles here"):
        countdown(5)
