"""The process that holds a platform's compiler: ``python -m jitcount.targets.worker``.

Requests come in on stdin and answers go out on stdout, one after the other. Whatever a compiler
prints goes to stderr, whichever stream it meant. When the process that asks is gone this one ends
at once, in the midst of a compile too.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading

from jitcount.targets.pipe import Message, receive, send


def main() -> None:
    """Answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), name="jitcount reader", daemon=True).start()
    # Not before: what plugins print when JAX finds them must not come between the answers, and
    # the end of the process that asks is seen while they are loaded.
    from jitcount.targets.answering import answer  # noqa: PLC0415

    while True:
        asked, bytecode = requests.get()
        send(answers, *answer(asked, bytecode))


def _read(requests: queue.SimpleQueue[Message]) -> None:
    """Take requests in while a compile runs, to see the end of the process that asks."""
    while (message := receive(sys.stdin.buffer)) is not None:
        requests.put(message)
    with contextlib.suppress(AttributeError, OSError):
        if os.getpgid(0) == os.getpid():  # a group of our own: with what the compiler has started
            os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
