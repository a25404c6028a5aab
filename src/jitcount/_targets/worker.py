"""The process that holds a platform's compiler: ``python -m jitcount._targets.worker``.

Requests come in on stdin and answers go out on stdout, one after the other. Whatever a compiler
prints goes to stderr, whichever stream it meant. When the process that asks is gone this one ends
at once, even in the middle of a compile.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import traceback

from jitcount._targets.protocol import Request, receive, send


def main() -> None:
    """Answer until there are no more requests."""
    _end_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), name="jitcount reader", daemon=True).start()
    # Not before: what plugins print when JAX finds them must not come between the answers, and
    # the end of the process that asks is seen while they are loaded.
    from jitcount._targets.answer import answer  # noqa: PLC0415

    while True:  # no name for the request: it would be kept until the next one comes
        send(answers, answer(requests.get()))


def _end_with_parent() -> None:
    """Have Linux end this process with the thread that has started it, stopped (SIGSTOP) or not.

    Elsewhere, and where the parent was gone before, the end of stdin says so to the reader. For a
    process that is stopped that is no help: there it lives on until it is continued.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 (of no use elsewhere)

        set_parent_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):  # a system that has no such call
            ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)


def _read(requests: queue.SimpleQueue[Request]) -> None:
    """Read requests while a compile runs, to see the end of the process that asks."""
    try:
        while (request := receive(sys.stdin.buffer, Request)) is not None:
            requests.put(request)
            del request  # while the next one is waited for, this one need not be kept
    except ValueError:  # no request of this release: what is printed becomes part of the error
        traceback.print_exc()
    with contextlib.suppress(AttributeError, OSError):
        if os.getpgid(0) == os.getpid():  # a group of our own: with what the compiler has started
            os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
