"""The command: ``jitcount``, also as ``python -m jitcount``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jitcount._cli.arguments import parse
from jitcount._cli.streams import UsageError, remark

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 good, 1 a difference or a failure found, 2 bad usage."""
    try:
        return parse(arguments).run()
    except KeyboardInterrupt:  # the shell must see it, and nobody a traceback of ours
        sys.excepthook = lambda *_: None
        raise
    except UsageError as error:  # of a help that cannot be shown, too
        remark(f"jitcount: error: {error}")
        return 2
