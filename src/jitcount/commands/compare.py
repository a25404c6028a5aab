"""``jitcount compare``: any number of ledgers, from whichever machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitcount.ledger.comparison import compare
from jitcount.ledger.files import FileError
from jitcount.ledger.ledger import read_ledger
from jitcount.show.comparison_table import comparison_tables
from jitcount.show.terminal import render

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def add(commands: Any) -> None:
    """Add ``jitcount compare`` to the parser."""
    parser = commands.add_parser(
        "compare",
        help="compare ledgers: results, within what floating point promises, and compiles",
    )
    parser.add_argument("ledgers", nargs="+", type=Path, metavar="LEDGER")
    parser.set_defaults(do=_compare, parser=parser)


def _compare(asked: argparse.Namespace) -> int:
    if len(asked.ledgers) < 2:
        asked.parser.error("compare needs two ledgers or more")
    try:
        ledgers = {
            name: read_ledger(path)
            for name, path in zip(_names(asked.ledgers), asked.ledgers, strict=True)
        }
    except FileError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    compared = compare(ledgers)
    print(render(comparison_tables(compared, ledgers)))  # noqa: T201
    return 1 if compared.differences else 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names that tell the files apart: stems, or paths where stems are alike.

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
