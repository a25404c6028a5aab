"""``jitcount compare``: any number of ledgers, from whichever machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from jitcount.ledger.comparing import compare
from jitcount.ledger.files import FileError
from jitcount.observe.visible import spelled
from jitcount.show import markdown, terminal
from jitcount.show.comparison_table import comparison_tables

if TYPE_CHECKING:
    import argparse

    from jitcount.ledger.compared import Comparison


def main(asked: argparse.Namespace) -> int:
    """Compare them: 1 where they differ, 2 where one cannot be read."""
    try:
        compared = compare(*asked.ledgers)
    except FileError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(_shown(compared, asked))  # noqa: T201
    return 1 if compared.differences else 0


def _shown(compared: Comparison, asked: argparse.Namespace) -> str:
    if asked.json:
        return json.dumps(compared.to_dict(), indent=2)  # in ASCII, which every stream takes
    parts = comparison_tables(compared)
    if asked.markdown:
        return spelled(markdown.render(parts))
    return terminal.render(parts, colour=terminal.has_colour())
