"""The command: ``jitcount``, also as ``python -m jitcount``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jitcount._cli.arguments import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 good, 1 a difference or a failure found, 2 bad usage."""
    try:
        command = parse(arguments)
        code = command.run()
        if command.verb != "run":  # its stdout is the program's, and ends as under Python
            sys.stdout.flush()  # here: at the end of the process it could not be helped
    except KeyboardInterrupt:  # the shell must see it, and nobody a traceback of ours
        sys.excepthook = lambda *_: None
        raise
    except BrokenPipeError:  # the reader has seen enough: jitcount compare ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code
