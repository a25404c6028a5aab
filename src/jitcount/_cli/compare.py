"""``jitcount compare``: any number of ledgers, from whichever machines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._cli.arguments import end_help, typed
from jitcount._cli.streams import UsageError, remark, show

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``jitcount compare`` was asked to do."""

    ledgers: list[Path]
    json: bool
    markdown: bool


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``jitcount compare``."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print plain data, for other programs")
    form.add_argument("--markdown", action="store_true", help="print Markdown, as for GitHub")
    parser.add_argument("ledgers", nargs="+", type=Path, metavar="LEDGER")
    end_help(
        parser,
        "jitcount compare cpu.json gpu.json tpu.json",
        'jitcount compare --markdown results/*.json >> "$GITHUB_STEP_SUMMARY"',
        codes="0 no difference, 1 a difference, 2 bad usage or no ledger",
    )


def options(asked: argparse.Namespace) -> Options:
    """The options of ``jitcount compare``, as argparse has read them."""
    if len(asked.ledgers) < 2:
        raise UsageError("compare needs two ledgers or more")
    return typed(Options, asked)


def main(options: Options) -> int:
    """Compare the ledgers, and return the exit code: 1 if they differ, 2 if one cannot be read."""
    from jitcount._ledger.compare import compare
    from jitcount._ledger.files import LedgerError
    from jitcount._show import markdown, terminal
    from jitcount._show.comparison_table import comparison_tables
    from jitcount._text import encode_safely

    try:
        found = compare(*options.ledgers)
    except LedgerError as error:
        remark(str(error))
        return 2
    if options.json:
        text = json.dumps(found.to_dict(), indent=2)  # in ASCII, which every stream takes
    elif options.markdown:
        text = encode_safely(markdown.render(comparison_tables(found)))
    else:
        text = terminal.render(comparison_tables(found), colour=terminal.has_colour())
    show(text)
    return 1 if found.differences else 0
