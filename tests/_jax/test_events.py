"""What JAX reports of itself, and how to listen to it."""

import logging
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jax import monitoring

from jitcount._jax import events
from jitcount._jax.events import COMPILE_LOGGER
from tests.helpers import unregister

if TYPE_CHECKING:
    from collections.abc import Callable


def test_unregistering_takes_a_listener_back_and_twice_is_no_error() -> None:
    heard: list[str] = []

    def on_event(event: str, **_about: Any) -> None:
        heard.append(event)

    monitoring.register_event_listener(on_event)
    monitoring.record_event("/jitcount/test")
    unregister({"event": on_event})
    monitoring.record_event("/jitcount/test")
    unregister({"event": on_event})
    assert heard == ["/jitcount/test"]


@pytest.mark.parametrize("kind", ["event", "event_duration", "scalar"])
def test_every_kind_of_listener_can_be_unregistered(kind: str) -> None:
    def listener(*_: Any, **__: Any) -> None: ...

    registers: dict[str, Callable[..., None]] = {
        "event": monitoring.register_event_listener,
        "event_duration": monitoring.register_event_duration_secs_listener,
        "scalar": monitoring.register_scalar_listener,
    }
    registers[kind](listener)
    before = listeners()
    unregister({kind: listener})
    assert [len(b) - len(a) for b, a in zip(before, listeners(), strict=True)].count(1) == 1


def listeners() -> list[list[Any]]:
    from jax._src import monitoring as private  # noqa: PLC0415

    return [
        private.get_event_listeners(),
        private.get_event_duration_listeners(),
        list(private._scalar_listeners),
    ]


def test_the_logger_of_compiles_is_where_jax_logs_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, COMPILE_LOGGER), jax.log_compiles():
        jax.jit(lambda x: 2 * x)(np.ones(3, np.float32))
    lines = [r for r in caplog.records if r.name == COMPILE_LOGGER]
    assert [str(r.msg).split()[0] for r in lines] == ["Compiling"]


def test_what_is_registered_is_known_and_registered_once() -> None:
    def listener(*_: Any, **__: Any) -> None: ...

    ours: events.Handlers = dict.fromkeys(("scalar", "event", "event_duration"), listener)
    before = list(map(len, listeners()))
    events.register(ours)
    events.register(ours)
    assert [len(now) - then for now, then in zip(listeners(), before, strict=True)] == [1, 1, 1]
    unregister({"scalar": listener})
    events.register(ours)
    assert [len(now) - then for now, then in zip(listeners(), before, strict=True)] == [1, 1, 1]
    unregister(ours)
    assert list(map(len, listeners())) == before


def test_where_jaxs_lists_are_renamed_a_listener_is_registered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listener(*_: Any, **__: Any) -> None: ...

    monkeypatch.setattr(events, "_LISTS", dict.fromkeys(events._LISTS, "no_such_list"))
    before = len(listeners()[2])
    events.register({"scalar": listener})
    events.register({"scalar": listener})
    assert len(listeners()[2]) == before + 1
    unregister({"scalar": listener})
    events.register({"scalar": listener})
    assert len(listeners()[2]) == before + 1
    unregister({"scalar": listener})
