import gc
import sys
import tracemalloc
import weakref
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._explain import history
from jitcount._explain.history import History
from jitcount._observe.program import Program
from jitcount._observe.surroundings import Settings
from jitcount._observe.values import Leaf

SETTINGS = Settings({}, frozenset())


def program(function: str = "step", **lengths: int) -> Program:
    """A program of arrays, each of one axis."""
    values = tuple(Leaf((length,), "float32", is_weak=False) for length in lengths.values())
    return Program(
        group=(function,), name=function, settings=SETTINGS, places=tuple(lengths), values=values
    )


def lengths_of(found: tuple[Program, ...] | None) -> list[dict[str, int]]:
    """The earlier programs, as `program` takes them."""
    assert found is not None
    return [
        {p: v.shape[0] for p, v in zip(one.places, one.values, strict=True) if isinstance(v, Leaf)}
        for one in found
    ]


def nearest(past: History, new: Program) -> list[dict[str, int]]:
    return lengths_of(past.add(new))


def test_a_first_program_has_no_neighbour() -> None:
    past = History()
    assert past.add(program(x=1)) == ()
    assert past.add(program("other", x=1)) == ()


def test_the_nearest_has_the_fewest_differences() -> None:
    past = History()
    for x, y in (3, 2), (3, 7), (9, 9):
        past.add(program(x=x, y=y))
    assert nearest(past, program(x=5, y=2)) == [{"x": 3, "y": 2}]


def test_the_latest_of_equals_is_the_nearest() -> None:
    past = History()
    for x in 30, 20, 10:
        past.add(program(x=x))
    assert nearest(past, program(x=5)) == [{"x": 10}]


def test_an_identical_program_is_the_nearest_however_old() -> None:
    past = History()
    for x in range(100):
        past.add(program(x=x))
    assert nearest(past, program(x=3)) == [{"x": 3}]


def test_programs_of_another_layout_are_looked_at_too() -> None:
    past = History()
    past.add(program(x=3))
    past.add(program(x=5))
    found = nearest(past, program(x=3, y=1))
    assert found == [{"x": 3}]


def test_the_nearest_is_found_among_thousands() -> None:
    past = History()
    for x in range(5000):
        past.add(program(x=x, y=x))
    assert nearest(past, program(x=1234, y=-1)) == [{"x": 1234, "y": 1234}]


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_PROGRAMS", 10)
    past = History()
    for number in range(30):
        past.add(program(f"f{number}", x=1))
    assert len(past) == 10
    assert past.add(program("f19", x=1)) == ()
    assert past.add(program("f29", x=1)) != ()


def test_many_places_leave_room_for_fewer_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_NUMBERS", 150)
    past = History()
    for number in range(30):
        wide: dict[str, Any] = {f"x{i}": number for i in range(10)}
        past.add(program(**wide))
    assert len(past) == 10


def test_a_dropped_program_is_no_longer_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_PROGRAMS", 5)
    past = History()
    for x in range(20):
        past.add(program(x=x, y=x))
    found = nearest(past, program(x=0, y=100))
    assert found == [{"x": x, "y": x} for x in (19, 18, 17, 16)]  # equally near


def test_a_hundred_thousand_programs_fit_into_a_hundred_megabytes() -> None:
    count = 10_000  # as a tenth of them fits into a tenth of that
    past = History()
    tracemalloc.start()
    try:
        for number in range(count):
            past.add(program(x=number, a=0, b=0, c=0, d=0, e=0, f=0))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(past) == count
    assert size / count * history.MOST_PROGRAMS < 100e6


def test_the_history_keeps_no_function_and_no_static_object_alive() -> None:
    class Static:
        pass

    def scale(x: jax.Array, _static: Static) -> jax.Array:
        return 2 * x

    static = Static()
    references: list[weakref.ref[Any]] = [weakref.ref(scale), weakref.ref(static)]
    with jitcount.record() as log:
        jax.jit(scale, static_argnums=1)(np.ones(3), static)
    assert log.count("scale") == 1
    del scale, static
    jax.clear_caches()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_the_history_keeps_no_array_alive() -> None:
    x = jax.device_put(np.ones(1000, np.float32))
    jax.jit(lambda x: x + 1)(x)
    before = sys.getrefcount(x)
    with jitcount.record() as log:
        jax.jit(lambda x: x + 2)(x)
        log.compiles  # noqa: B018 (worked out when asked for)
    jax.clear_caches()
    gc.collect()
    assert sys.getrefcount(x) <= before
