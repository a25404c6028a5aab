"""``jitcount compare``: any number of ledgers, from whichever machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from jitcount.ledger.comparison import compare
from jitcount.ledger.files import FileError
from jitcount.ledger.ledger import read_ledger
from jitcount.observe.visible import spelled
from jitcount.show import markdown, terminal
from jitcount.show.comparison_table import comparison_tables

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from jitcount.ledger.compared import Comparison


def main(asked: argparse.Namespace) -> int:
    """Compare them: 1 where they differ, 2 where one cannot be read."""
    try:
        ledgers = {
            name: read_ledger(path)
            for name, path in zip(_names(asked.ledgers), asked.ledgers, strict=True)
        }
    except FileError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    compared = compare(ledgers)
    print(_shown(compared, asked))  # noqa: T201
    return 1 if compared.differences else 0


def _shown(compared: Comparison, asked: argparse.Namespace) -> str:
    if asked.json:
        return json.dumps(compared.to_dict(), indent=2)  # in ASCII, which every stream takes
    parts = comparison_tables(compared)
    if asked.markdown:
        return spelled(markdown.render(parts))
    return terminal.render(parts, colour=terminal.has_colour())


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names that tell the files apart: stems, or paths where stems are alike.

    >>> from pathlib import Path
    >>> _names([Path("a/cpu.json"), Path("a/tpu.json")])
    ['cpu', 'tpu']
    >>> _names([Path("a/cpu.json"), Path("b/cpu.json"), Path("a/cpu.json")])
    ['a/cpu.json', 'b/cpu.json', 'a/cpu.json (3)']
    """
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return [
        name if name not in names[:place] else f"{name} ({place + 1})"
        for place, name in enumerate(names)
    ]
