"""``jitcount plan``: for the ragged axes in a ledger, a few sizes, and the lines to paste."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._cli.arguments import count, end_help, typed
from jitcount._cli.streams import remark, show

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``jitcount plan`` was asked to do."""

    ledger: Path
    sizes: int | None
    multiple_of: int
    steps: int | None
    step_s: float | None


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``jitcount plan``."""
    parser.add_argument(
        "--sizes", type=_count, metavar="K",
        help="how many sizes to plan at most; by default as many as there are powers of two, "
        "or with --steps or --step-s as many as pay",
    )  # fmt: skip
    parser.add_argument(
        "--multiple-of", type=_count, default=1, metavar="N",
        help="plan multiples of this: 128 where a chip has tiles of that size",
    )  # fmt: skip
    parser.add_argument("--steps", type=_count, metavar="N", help="how many calls are ahead")
    parser.add_argument(
        "--step-s", type=_seconds, metavar="S",
        help="the seconds that a call at the largest size takes",
    )  # fmt: skip
    parser.add_argument("ledger", type=Path, metavar="LEDGER")
    end_help(
        parser,
        "jitcount run --ledger run.json train.py; jitcount plan run.json",
        "jitcount plan --sizes 4 --multiple-of 128 run.json",
        codes="0 good, 1 nothing is ragged, 2 bad usage or no ledger",
    )


def _count(text: str) -> int:
    return count(text, least=1)


def _seconds(text: str) -> float:
    import argparse
    import math

    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, such as 0.02")
    return value


def options(asked: argparse.Namespace) -> Options:
    """The options of ``jitcount plan``, as argparse has read them."""
    return typed(Options, asked)


def main(options: Options) -> int:
    """Plan sizes for each ragged axis, and return the exit code: 1 if nothing is ragged."""
    from jitcount._buckets.ragged import ragged_axes
    from jitcount._buckets.snippet import plan_parts
    from jitcount._ledger.files import LedgerError
    from jitcount._ledger.ledger import read_ledger
    from jitcount._show import terminal

    try:
        found = ragged_axes(read_ledger(options.ledger).compiles)
    except LedgerError as error:
        remark(str(error))
        return 2
    if not found:
        show(f"no axis is ragged in {options.ledger}: no function was compiled for several lengths")
        return 1
    parts = plan_parts(found, options.sizes, options.multiple_of, options.steps, options.step_s)
    show(terminal.render(parts, colour=terminal.has_colour()))
    return 0
