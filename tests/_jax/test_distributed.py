"""Where JAX's processes listen: on loopback, on every release that the sessions install."""

from typing import Any

import jax
import pytest
from jax._src import xla_bridge as _xla_bridge

from jitcount._jax import distributed

xla_bridge: Any = _xla_bridge  # its own imports are looked into


def test_coordinator_and_collectives_are_told_to_listen_on_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = getattr(xla_bridge, "_jax", None) or xla_bridge.xla_client._xla
    told: list[tuple[Any, ...]] = []

    def collectives(*, distributed_client: Any, hostname: str | None = None) -> None:
        told.append(("collectives", hostname))

    def initialize(address: str, *numbers: int, coordinator_bind_address: str) -> None:
        told.append(("coordinator", address, numbers, coordinator_bind_address))

    # What JAX calls for a client with several processes stands there.
    monkeypatch.setattr(client, "make_gloo_tcp_collectives", collectives)
    monkeypatch.setattr(xla_bridge.distributed.global_state, "client", object())
    monkeypatch.setattr(xla_bridge.xla_client, "make_cpu_client", lambda **_: None)
    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    distributed.join(4711, 2, 1)
    make: Any = xla_bridge.make_cpu_client
    make()
    assert told == [
        ("coordinator", "127.0.0.1:4711", (2, 1), "127.0.0.1:4711"),
        ("collectives", "127.0.0.1"),
    ]
