"""The process that holds a platform's compiler: ``python -m jitcount.targets.worker``.

Requests come in on stdin and answers go out on stdout, one after the other. Whatever a compiler
prints goes to stderr, whichever stream it meant. When the other side is gone it ends at once, in
the midst of a compile too.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jitcount.targets.pipe import Message, receive, send

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTHING = """
    module @nothing {
      func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    }
"""


def main() -> None:
    """Answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    while True:
        asked, program = requests.get()
        send(answers, *answer(asked, program))


def _read(requests: queue.SimpleQueue[Message]) -> None:
    """Take requests in while a compile runs, to see the end of the other side."""
    while (message := receive(sys.stdin.buffer)) is not None:
        requests.put(message)
    with contextlib.suppress(AttributeError, OSError):
        if os.getpgid(0) == os.getpid():  # a group of our own: with what the compiler has started
            os.killpg(0, signal.SIGKILL)
    os._exit(0)


def answer(asked: dict[str, Any], program: bytes) -> Message:
    """Compile one program; what the compiler raises is an answer too."""
    begin = time.perf_counter()
    try:
        devices = devices_of(asked["topology"])
        if "program" not in asked:  # only to be ready
            _compile(_NOTHING, devices[:1], {"may_move": ([False], [False]), "options": {}}, "")
            return {}, b""
        set_up(asked["settings"])
        chosen = devices[: asked["devices"]]
        begin = time.perf_counter()
        made = _compile(program, chosen, asked, asked["topology"]["platform"])
        seconds = time.perf_counter() - begin
        found = {"compile_s": seconds} | _figures(made)
        hlo = made.hlo_modules()[0].to_string() if asked["keep_hlo"] else ""
    except Exception as error:  # noqa: BLE001 (a compiler may raise anything)
        text = str(error).strip() or type(error).__name__
        return {"compile_s": time.perf_counter() - begin, "error": text}, b""
    return found, hlo.encode()


_devices: dict[str, Sequence[Any]] = {}


def devices_of(topology: dict[str, Any]) -> Sequence[Any]:
    """Devices to compile for; none of them need be there."""
    key = repr(topology)
    if key not in _devices:
        asked = dict(topology)
        if asked["platform"] == "cpu":
            import jax  # noqa: PLC0415

            _devices[key] = jax.devices("cpu")
        else:
            from jax.experimental import topologies  # noqa: PLC0415

            _devices[key] = topologies.get_topology_desc(**asked).devices
    return _devices[key]


def set_up(settings: dict[str, Any]) -> None:
    """Take over the settings of the process that asks."""
    import jax  # noqa: PLC0415

    for name, value in settings.items():
        if jax.config.values.get(name) != value:
            jax.config.update(name, value)


def _compile(
    program: bytes | str, devices: Sequence[Any], asked: dict[str, Any], platform: str
) -> Any:
    from jitcount._jax.lowering import compile_module  # noqa: PLC0415

    return compile_module(program, devices, asked["may_move"], asked["options"], platform)


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


if __name__ == "__main__":
    main()
