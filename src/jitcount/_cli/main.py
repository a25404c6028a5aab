"""The command: ``jitcount``, also as ``python -m jitcount``."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from jitcount._cli.arguments import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 good, 1 a difference or a failure found, 2 bad usage."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # the shell must see it, and nobody a traceback of ours
        sys.excepthook = lambda *_: None
        raise
    except BrokenPipeError:  # the reader has seen enough: jitcount compare ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: Sequence[str] | None) -> int:
    asked = parse(arguments)
    command = importlib.import_module(f"jitcount._cli.{asked.command}")
    code: int = command.main(asked)
    if asked.command != "run":  # its stdout is the program's, and ends as under Python
        sys.stdout.flush()  # here: at the end of the process it could not be helped
    return code
