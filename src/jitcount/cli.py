"""The command: ``jitcount``, also as ``python -m jitcount``; its parts are in `commands`."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from jitcount.commands.arguments import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 good, 1 a difference or a failure found, 2 bad usage."""
    asked = parse(arguments)
    command = importlib.import_module(f"jitcount.commands.{asked.command}")
    if asked.command == "run":  # its stdout is the program's, and ends as under Python
        return int(command.main(asked))
    try:
        code: int = command.main(asked)
        sys.stdout.flush()  # here: at the end of the process it could not be helped
    except BrokenPipeError:  # the reader has seen enough: jitcount compare ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code
