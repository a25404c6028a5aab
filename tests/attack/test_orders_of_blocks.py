"""Blocks are opened and ended by threads, tasks and generators in any order, at random.

Whatever the order, a program computes as the target while any `as_if` is open and as on the CPU
outside, each log has what was compiled while its own block was open, each guard refuses while its
own is, and after the last block JAX is as it was. A model says what must be.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from jax._src import compiler

import jitcount
from jitcount._emulate.active_target import active_target
from tests._emulate.fake_compilers import X, fake_compilers
from tests.attack.mutations import IS_FULL, SEED

if TYPE_CHECKING:
    from collections.abc import Generator

SETTING = "jax_xla_profile_version"
REAL = compiler.compile_or_get_cached

# --- Who opens blocks: each calls a function where it is at home ---------------------------------

Call = Callable[[], Any]


class Tasks:
    """Tasks of one event loop, in a thread of its own."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._queues: list[asyncio.Queue[tuple[Call, Future[Any]] | None]] = []
        made = asyncio.run_coroutine_threadsafe(self._begin(count), self._loop)
        self._tasks = made.result(60)

    async def _begin(self, count: int) -> list[asyncio.Task[None]]:
        self._queues = [asyncio.Queue() for _ in range(count)]
        return [asyncio.create_task(self._work(queue)) for queue in self._queues]

    @staticmethod
    async def _work(queue: asyncio.Queue[Any]) -> None:
        while True:
            job = await queue.get()
            if job is None:
                return
            call, future = job
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 (the test gets it)
                future.set_exception(error)
            # A task that waits must not hold the block that it has opened: it may be dropped.
            del job, call, future

    def call(self, number: int, call: Call) -> Any:
        future: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._queues[number].put_nowait, (call, future))
        return future.result(120)

    def end(self) -> None:
        for queue in self._queues:
            self._loop.call_soon_threadsafe(queue.put_nowait, None)
        asyncio.run_coroutine_threadsafe(asyncio.wait(self._tasks), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class Actors:
    """The main thread, two other threads, and two tasks."""

    def __init__(self) -> None:
        self._threads = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
        self._tasks = Tasks(2)

    def call(self, actor: int, call: Call) -> Any:
        if actor == 0:
            return call()
        if actor <= 2:
            return self._threads[actor - 1].submit(call).result(120)
        return self._tasks.call(actor - 3, call)

    def end(self) -> None:
        for thread in self._threads:
            thread.shutdown()
        self._tasks.end()


ACTORS = st.integers(0, 4)


# --- What they do, and what must come of it -------------------------------------------------------


def held(block: Any) -> Generator[Any, None, None]:
    """A block that stays open between two steps of a generator."""
    with block as opened:
        yield opened


@dataclass(eq=False)
class Open:
    """A block that is open, and what it must have seen when it ends."""

    kind: str
    generator: Generator[Any, None, None]
    opened: Any
    compiled: int = 0


@dataclass
class Model:
    blocks: list[Open] = field(default_factory=list)
    compiled: set[tuple[int, int]] = field(default_factory=set)
    """The functions that JAX keeps, each for a run of `as_if`, or for outside: 0."""

    runs: int = 0

    def of(self, *kinds: str) -> list[Open]:
        return [block for block in self.blocks if block.kind in kinds]

    @property
    def run(self) -> int:
        return self.runs if self.of("as_if") else 0


LIMIT = 2
KINDS = ("record", "targets", "freeze", "limit", "as_if")


class Blocks(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.actors = Actors()
        self.model = Model()
        self.functions = [self._function() for _ in range(4)]
        # Of one object, too, each with-statement is its own.
        self.shared = {kind: self._new(kind) for kind in KINDS}

    @staticmethod
    def _function() -> Callable[[Any], Any]:
        return jax.jit(lambda x: x * 2)

    @initialize()
    def begin(self) -> None:
        assert active_target() == ""

    @staticmethod
    def _new(kind: str) -> Any:
        if kind == "as_if":
            return jitcount.as_if("tpu:v5e")
        if kind == "limit":
            return jitcount.max_compiles(LIMIT)
        if kind == "targets":
            return jitcount.record(targets=["tpu:v5e"])
        return jitcount.record() if kind == "record" else jitcount.freeze()

    @precondition(lambda self: len(self.model.blocks) < 6)
    @rule(
        actor=ACTORS,
        kind=st.sampled_from(["as_if", "as_if", "as_if", *KINDS]),
        is_shared=st.booleans(),
    )
    def open(self, actor: int, kind: str, is_shared: bool) -> None:  # noqa: FBT001 (drawn)
        generator = held(self.shared[kind] if is_shared else self._new(kind))
        if kind == "as_if" and not self.model.of("as_if"):
            self.model.runs += 1
        opened = self.actors.call(actor, lambda: next(generator))
        compiled = self._in_run() if kind == "as_if" else 0
        self.model.blocks.append(Open(kind, generator, opened, compiled))

    def _in_run(self) -> int:
        return sum(run == self.model.runs for _, run in self.model.compiled)

    @precondition(lambda self: self.model.blocks)
    @rule(actor=ACTORS, data=st.data(), is_dropped=st.booleans())
    def close(self, actor: int, data: st.DataObject, is_dropped: bool) -> None:  # noqa: FBT001
        block = data.draw(st.sampled_from(range(len(self.model.blocks))))
        self._close(actor, self.model.blocks.pop(block), is_dropped=is_dropped)

    def _close(self, actor: int, block: Open, *, is_dropped: bool) -> None:
        if is_dropped:
            holder = [block.generator]
            del block.generator

            def drop() -> None:
                holder.clear()
                gc.collect()

            self.actors.call(actor, drop)
        else:
            self.actors.call(actor, block.generator.close)
        self._check(block)

    def _check(self, block: Open) -> None:
        if block.kind == "as_if":
            assert len(block.opened.programs) == block.compiled
            assert block.opened.faithful
        elif block.kind in {"record", "targets"}:
            assert block.opened.count() == block.compiled
            names = {"tpu:v5e"} if block.kind == "targets" else set()
            assert all(compiled.on.keys() == names for compiled in block.opened.compiles)

    @rule(actor=ACTORS, number=st.integers(0, 3))
    def compute(self, actor: int, number: int) -> None:
        run, function = self.model.run, self.functions[number]
        compiles = (number, run) not in self.model.compiled
        limits = self.model.of("limit")
        is_refused = compiles and (
            self.model.of("freeze") or any(each.compiled >= LIMIT for each in limits)
        )
        if is_refused:
            with pytest.raises(jitcount.RecompileError):
                self.actors.call(actor, lambda: function(X))
            return
        found = self.actors.call(actor, lambda: np.asarray(function(X)))
        np.testing.assert_array_equal(found, X * (3 if run else 2))
        if compiles:
            self.model.compiled.add((number, run))
            for each in self.model.of("record", "targets", "limit", "as_if"):
                each.compiled += 1

    @precondition(lambda self: self.model.of("as_if"))
    @rule(
        actor=ACTORS,
        other=st.sampled_from([("cuda:h100", False), ("tpu:v5e", True)]),
    )
    def another_kind_is_refused(self, actor: int, other: tuple[str, bool]) -> None:
        target, is_exact = other
        block = jitcount.as_if(target, exact_products=is_exact)
        with pytest.raises(ValueError, match="as_if") as refused:
            self.actors.call(actor, block.__enter__)
        assert str(refused.value).endswith("end the other block first")

    @precondition(lambda self: not self.model.of("as_if"))
    @rule(number=st.integers(0, 3))
    def forget(self, number: int) -> None:
        self.functions[number] = self._function()
        self.model.compiled = {one for one in self.model.compiled if one[0] != number}

    @invariant()
    def jax_is_as_it_was_outside(self) -> None:
        is_open = bool(self.model.of("as_if"))
        assert active_target() == ("tpu:v5e" if is_open else "")
        assert (compiler.compile_or_get_cached is REAL) == (not is_open)
        assert (jax.config.values[SETTING] == 0) == (not is_open)

    def teardown(self) -> None:
        try:
            while self.model.blocks:
                self._close(0, self.model.blocks.pop(), is_dropped=False)
            self.jax_is_as_it_was_outside()
            for number in range(4):
                self.compute(number, number)
        finally:
            self.actors.end()


@pytest.fixture
def compilers() -> Iterator[None]:
    with fake_compilers():
        yield


@pytest.mark.usefixtures("compilers")
def test_blocks_end_in_any_order() -> None:
    run_state_machine_as_test(
        Blocks,
        settings=settings(
            max_examples=60 if IS_FULL else 5,
            stateful_step_count=40 if IS_FULL else 20,
            deadline=None,
            derandomize=not IS_FULL,
            suppress_health_check=list(HealthCheck),
            database=None,
            # A failure leaves blocks open, and what comes after it says nothing.
            phases=[Phase.generate],
            report_multiple_bugs=False,
        ),
    )


# --- Threads that wait for nobody -----------------------------------------------------------------

ROUNDS = 60 if IS_FULL else 4


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("compilers", "hurried")
def test_whatever_threads_do_at_once_the_block_says_what_is_not_as_there() -> None:
    functions = [jax.jit(lambda x: x * 2) for _ in range(3)]

    def work(seed: int) -> list[str]:
        chance, wrong = random.Random(f"{SEED} {seed}"), []  # noqa: S311 (it is to be repeated)
        for _ in range(ROUNDS):
            number = chance.randrange(len(functions))
            if chance.random() < 0.3:
                functions[number] = jax.jit(lambda x: x * 2)
            function = functions[number]
            if chance.random() < 0.4:
                np.asarray(function(X))  # as there, if another thread has a block open
                continue
            with jitcount.as_if("tpu:v5e") as emulation:
                found = np.asarray(function(X))
            if not np.array_equal(found, X * 3) and emulation.faithful:
                wrong.append(str(emulation))
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert [wrong for each in pool.map(work, range(6)) for wrong in each] == []
    assert (compiler.compile_or_get_cached is REAL, jax.config.values[SETTING]) == (True, 0)
    for function in functions:
        np.testing.assert_array_equal(function(X), X * 2)
