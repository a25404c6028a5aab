"""``jitcount compare``: any number of ledgers, from whichever machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from jitcount._ledger.compare import compare
from jitcount._ledger.files import LedgerError
from jitcount._show import markdown, terminal
from jitcount._show.comparison_table import comparison_tables
from jitcount._text import encode_safely

if TYPE_CHECKING:
    import argparse

    from jitcount._ledger.comparison import Comparison


def main(asked: argparse.Namespace) -> int:
    """Compare them: 1 where they differ, 2 where one cannot be read."""
    try:
        compared = compare(*asked.ledgers)
    except LedgerError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(_shown(compared, asked))  # noqa: T201
    return 1 if compared.differences else 0


def _shown(compared: Comparison, asked: argparse.Namespace) -> str:
    if asked.json:
        return json.dumps(compared.to_dict(), indent=2)  # in ASCII, which every stream takes
    parts = comparison_tables(compared)
    if asked.markdown:
        return encode_safely(markdown.render(parts))
    return terminal.render(parts, colour=terminal.has_colour())
