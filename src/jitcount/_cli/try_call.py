"""Runs a program in a process of its own for ``--what-if=calls``, with one call under a jit.

It is started by `jitcount._try_calls.processes`, with a folder that says what to run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from jitcount._cli import program
from jitcount._try_calls.jitted_call import JittedCall
from jitcount._try_calls.measuring import Measuring
from jitcount._try_calls.rewriting import Rewriter


def main() -> None:
    """Run the program to its end, write down what was measured, and end as the program does."""
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "asked.json").read_text())
    if sys.argv[2:]:
        threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    calls = [
        JittedCall(**{**call, "static_argnames": tuple(call["static_argnames"])})
        for call in asked["calls"]
    ]
    if not sys.flags.safe_path:
        sys.path.insert(0, "")  # as it is for a command; the program's folder takes its place
    process = os.getpid()
    rewriter = Rewriter(calls)
    measuring = Measuring(calls, asked["jitted"], folder)
    rewriter.install(measuring.instead)
    ending = program.run(asked["words"], is_module=asked["is_module"], compiled=rewriter.compiled)
    error = getattr(sys, "last_value", None) if ending.code else None
    program.wait_for_threads()
    program.run_exit_handlers()
    if os.getpid() == process:  # and no fork of the program
        measuring.write(ending.code, error)
    sys.exit(program.leave(ending))


def _end_with(other: int) -> None:
    """End this process, and what it has started, when the one that started it is gone."""
    os.read(other, 1)  # nobody writes: it returns at the end
    os.killpg(0, signal.SIGKILL)
