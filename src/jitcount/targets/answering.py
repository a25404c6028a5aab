"""What the process of a compiler does with a request; JAX and the compiler are loaded here."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import jax
from jax.experimental import topologies

from jitcount._jax.lowering import compile_module, optimised_text
from jitcount.profile.elsewhere import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount.targets.pipe import Message

_NOTHING = """
    module @nothing {
      func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    }
"""


def answer(asked: dict[str, Any], bytecode: bytes) -> Message:
    """Compile one program; what the compiler raises is an answer too."""
    begin = time.perf_counter()
    try:
        devices = devices_of(asked["topology"])
        if "program" not in asked:  # only to be ready
            compile_module(_NOTHING, devices[:1], ([False], [False]), {}, "")
            return {}, b""
        set_up(asked["settings"])
        chosen = devices[: asked["devices"]]
        platform = asked["topology"]["platform"]
        watching = Watching() if asked.get("profile") else None
        begin = time.perf_counter()
        made = compile_module(bytecode, chosen, asked["may_move"], asked["options"], platform)
        seconds = time.perf_counter() - begin
        found = {"compile_s": seconds} | _figures(made)
        if watching is not None:
            found["profile"] = watching.profile(bytecode, made, seconds)
        hlo = optimised_text(made) if asked["keep_hlo"] else ""
    except Exception as error:  # noqa: BLE001 (a compiler may raise anything)
        text = str(error).strip() or type(error).__name__
        return {"compile_s": time.perf_counter() - begin, "error": text}, b""
    return found, hlo.encode()


_devices: dict[str, Sequence[Any]] = {}


def devices_of(topology: dict[str, Any]) -> Sequence[Any]:
    """Devices to compile for; none of them need be there."""
    key = repr(topology)
    if key not in _devices:
        is_here = topology["platform"] == "cpu"
        _devices[key] = (
            jax.devices("cpu") if is_here else topologies.get_topology_desc(**topology).devices
        )
    return _devices[key]


def set_up(settings: dict[str, Any]) -> None:
    """Take over the settings of the process that asks."""
    for name, value in settings.items():
        if jax.config.values.get(name) != value:
            jax.config.update(name, value)


def _figures(made: Any) -> dict[str, Any]:
    """Sizes and costs, where the compiler tells them."""
    found: dict[str, Any] = {}
    with contextlib.suppress(Exception):
        sizes = made.get_compiled_memory_stats()
        found |= {
            "argument_bytes": sizes.argument_size_in_bytes,
            "output_bytes": sizes.output_size_in_bytes,
            "aliased_bytes": sizes.alias_size_in_bytes,
            "temporary_bytes": sizes.temp_size_in_bytes,
            # No program has no code: 0 is how XLA:GPU says that it does not know.
            "code_bytes": sizes.generated_code_size_in_bytes or None,
        }
    with contextlib.suppress(Exception):
        costs = made.cost_analysis()
        found["flops"] = costs.get("flops")
        seconds = costs.get("optimal_seconds", -1.0)
        # Below 0 where there is something in the program that has no known cost.
        found["estimated_s"] = seconds if seconds >= 0 else None
    return found
