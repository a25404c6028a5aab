"""The command: ``jitcount``, also as ``python -m jitcount``; its parts are in `commands`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from jitcount.commands import compare, run, suite, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = (run, suite, compare, targets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 good, 1 a difference or a failure found, 2 bad usage."""
    asked = _parser().parse_args(arguments)
    try:
        code = int(asked.do(asked))
        sys.stdout.flush()  # here, and not at the end of the process, where nobody could help
    except BrokenPipeError:  # the reader has seen enough: jitcount compare ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jitcount", description="Count, explain and price the compiles of a JAX program."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
