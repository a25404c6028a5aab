"""What is found of a compile is read later: until then it keeps nothing of the user's alive."""

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._profile import draft as drafts
from jitcount._profile import profiler
from jitcount._profile.draft import Draft
from jitcount._profile.profiler import CompileProfile, Profiler
from jitcount._record.log import CompileLog
from jitcount._registry import registry

ONES = np.ones((8, 8), np.float32)


class Weights:
    """An object of the user's, which a program closes over."""

    def __init__(self) -> None:
        self.array = jnp.full((40, 8), 2.0)


def five_layers() -> tuple[CompileLog, list[weakref.ref[object]]]:
    """A loop that closes over arrays and functions, compiled; and what must not be kept alive."""
    weights = Weights()

    @jax.custom_jvp
    def bent(x: jax.Array) -> jax.Array:
        return jnp.tanh(x) * weights.array.sum()

    bent.defjvp(lambda primals, tangents: (bent(*primals), tangents[0] * weights.array[0, 0]))

    @jax.jit
    def net(x: jax.Array) -> jax.Array:
        for _ in range(5):
            x = bent(x @ x) + jnp.sin(x) * weights.array[:8]
        return x

    with jitcount.record(profile=True) as log:
        net.lower(ONES).compile()
    return log, [weakref.ref(each) for each in (weights, weights.array, bent, net)]


def unread(log: CompileLog) -> int:
    drafts = [seen.profile for seen, *_ in log._seen]
    return sum(each.size for each in drafts if isinstance(each, CompileProfile))


def test_a_log_that_was_not_read_keeps_no_array_and_no_function_alive() -> None:
    log, held = five_layers()
    jax.clear_caches()
    gc.collect()
    assert [each() for each in held] == [None] * 4
    assert unread(log) > 0
    (found,) = [each for each in log.compiles if each.function == "net"]
    assert [(loop.copies, loop.call_site.function) for loop in found.loops] == [
        (5, "five_layers.net")
    ]
    assert any(line.compile_s for line in found.lines if line.is_attributed)
    assert unread(log) == 0


def test_plain_data_copies_and_pickles_of_a_log_have_the_loops() -> None:
    log, _ = five_layers()
    copied = copy.deepcopy(log)
    (plain,) = [each for each in log.to_dicts() if each["function"] == "net"]
    (loop,) = plain["profile"]["loops"]
    assert loop["copies"] == 5
    carried = pickle.loads(pickle.dumps(log.compiles))  # noqa: S301 (our own)
    assert [each.loops for each in carried] == [each.loops for each in log.compiles]
    assert [each.loops for each in copied.compiles] == [each.loops for each in log.compiles]


def test_where_logs_hold_too_much_the_oldest_programs_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drafts, "waiting", drafts._Waiting())
    monkeypatch.setattr(profiler, "waiting", drafts.waiting)
    log, _ = five_layers()
    monkeypatch.setattr(drafts, "_AT_MOST", 5 * unread(log) // 2)
    second, _ = five_layers()
    assert unread(log) > 0
    third, _ = five_layers()
    assert (unread(log), unread(second)) == (0, 0)  # down to one half of what may be
    assert unread(third) > 0
    assert [each.loops for each in log.compiles] == [each.loops for each in third.compiles]


def test_what_cannot_be_read_is_said_and_the_rest_is_there() -> None:
    def fails(_: Draft) -> None:
        raise ValueError("odd")

    draft = Draft()
    draft.read_later(3, fails, "its operations are not known")
    draft.read_later(4, lambda draft: draft.notes.append("read"), "never")
    assert draft.size == 7
    draft.read()
    assert draft.notes == ["its operations are not known: ValueError: odd", "read"]
    assert draft.size == 0


def test_two_threads_read_a_draft_once() -> None:
    draft, begun, goes_on = Draft(), threading.Event(), threading.Event()

    def read(draft: Draft) -> None:
        begun.set()
        goes_on.wait()
        draft.notes.append("read")

    draft.read_later(1, read, "never")
    threads = [threading.Thread(target=draft.read) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait()
    goes_on.set()
    for thread in threads:
        thread.join()
    assert draft.notes == ["read"]


def test_without_a_profile_the_profiler_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def spy_on(kind: type, name: str) -> None:
        real = getattr(kind, name)

        def spy(*arguments: Any) -> Any:
            called.append(name)
            return real(*arguments)

        monkeypatch.setattr(kind, name, spy)

    spy_on(Profiler, "begin_trace")
    spy_on(Profiler, "end_trace")
    spy_on(CompileProfile, "end_lowering")
    spy_on(CompileProfile, "begin_compile")
    spy_on(CompileProfile, "end_compile")
    with jitcount.record():
        assert registry.profiler is None
        jax.jit(lambda x: x + 41)(ONES)
    assert called == []
    with jitcount.record(profile=True):
        jax.jit(lambda x: x + 42)(ONES)
    assert set(called) == {
        "begin_trace", "end_trace", "end_lowering", "begin_compile", "end_compile",
    }  # fmt: skip
    assert registry.profiler is None
