"""What the command can be asked, and what is refused without a look at any script.

Neither this nor what it imports imports JAX, so that help is there at once. The work is done in the
module that has the command's name, by its ``main``.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import jitcount
from jitcount._text import did_you_mean, encode_safely, encoding_of, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Sequence


_CODES = "0 good, 1 a difference or a failure found, 2 bad usage"


class _Parser(argparse.ArgumentParser):
    """Refuses in one line, whatever the words that it names hold."""

    def error(self, message: str) -> NoReturn:
        super().error(encode_safely(escape_control_chars(message), encoding_of(sys.stderr)))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments, by default the process's; ends the process where they cannot be meant."""
    parser = _Parser(
        prog="jitcount",
        description="Count, explain and price the compiles of a JAX program.",
        **_ending(
            "jitcount run train.py --epochs 3",
            "jitcount run --target tpu:v5e -m package.train",
            "jitcount suite --ledger here.json && jitcount compare there.json here.json",
        ),
    )
    parser.add_argument("--version", action="version", version=f"jitcount {jitcount.__version__}")
    parser.set_defaults(command="", parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add in (_add_run, _add_suite, _add_compare, _add_targets):
        add(commands)
    words = sys.argv[1:] if arguments is None else arguments
    if words and not words[0].startswith("-") and words[0] not in commands.choices:
        nearest = did_you_mean(words[0], commands.choices)
        remedy = nearest or f"there are {', '.join(commands.choices)}"
        parser.error(f"no command is called {words[0]!r}; {remedy}")
    asked, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse(unknown[0], asked.parser)
    if not asked.command:
        parser.error(f"which COMMAND? There are {', '.join(commands.choices)}")
    if asked.command == "run":
        _require_script(asked)
    if asked.command == "compare" and len(asked.ledgers) < 2:
        asked.parser.error("compare needs two ledgers or more")
    return asked


def _refuse(word: str, parser: argparse.ArgumentParser) -> None:
    """End the process for a word that a command does not know."""
    option = word.partition("=")[0]
    if not option.startswith("-"):
        parser.error(f"one argument too many: {word}")
    known = ["--help", *re.findall(r"--[a-z][a-z-]*", parser.format_usage())]
    nearest = did_you_mean(option, known)
    parser.error(f"no option is called {option}; {nearest or f'{parser.prog} --help lists them'}")


def _ending(*examples: str, codes: str = _CODES) -> dict[str, Any]:
    """What help ends with: examples, and what the exit code says."""
    lines = ["examples:", *(f"  {example}" for example in examples), "", f"exit code: {codes}"]
    return {
        "epilog": "\n".join(lines),
        "formatter_class": argparse.RawDescriptionHelpFormatter,  # else argparse joins the lines
    }


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program, then show what it compiled and why",
        usage="jitcount run [--live] [--all] [--max N] [--ledger FILE] [--target T]... "
        "[--as-if T] [--profile] [--what-if] [--profile-trace FILE] [--redact] "
        "(SCRIPT | -m MODULE) [ARGS]...",
        **_ending(
            "jitcount run train.py --epochs 3",
            "jitcount run --max 20 --ledger run.json -m package.train",
            "jitcount run --target tpu:v5e --target cuda:h100 train.py",
            codes="the program's own; 1 past --max; 2 bad usage",
        ),
    )
    run.add_argument("--live", action="store_true", help="show each recompile as it happens")
    run.add_argument("--all", action="store_true", help="show each compile in a row of its own")
    run.add_argument("--max", type=_count, metavar="N", help="exit 1 past so many compiles")
    run.add_argument("--ledger", type=Path, metavar="FILE", help="keep all compiles in a file")
    run.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="T",
        help="compile for this too: tpu:v5e, cuda:h100, ...; jitcount targets lists them",
    )
    run.add_argument(
        "--as-if", default="", metavar="T",
        help="compute as this TPU or GPU would: its compiler's programs, its roundings",
    )  # fmt: skip
    run.add_argument(
        "--profile", action="store_true", help="show where the time of compiles goes, by line"
    )
    run.add_argument(
        "--profile-trace", type=Path, metavar="FILE",
        help="that, as a file that Perfetto and speedscope open",
    )  # fmt: skip
    run.add_argument(
        "--what-if", action="store_true",
        help="show unrolled loops, and measure what each would cost as jax.lax.scan",
    )  # fmt: skip
    run.add_argument("--redact", action="store_true", help="leave out what static arguments were")
    run.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m")
    run.add_argument("script", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(command="run", parser=run)


def _count(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count of {least} or more")
    return int(text)


def _number_of_processes(text: str) -> int:
    return _count(text, least=1)


def _require_script(asked: argparse.Namespace) -> None:
    if asked.script[:1] == ["--"]:  # whatever follows is no option of ours
        del asked.script[0]
    if not asked.script:
        asked.parser.error("run needs a SCRIPT, or -m and a MODULE")
    if asked.module:
        return
    try:
        Path(asked.script[0]).stat()
    except FileNotFoundError:
        asked.parser.error(f"no such file: {asked.script[0]}")
    except (OSError, ValueError) as error:  # a name that is too long, a folder that is closed
        reason = getattr(error, "strerror", None) or error
        asked.parser.error(f"{asked.script[0]}: cannot be read: {reason}")


def _add_suite(commands: Any) -> None:
    suite = commands.add_parser(
        "suite",
        help="run the suite's cases on the backend that JAX has here",
        **_ending(
            "jitcount suite --ledger here.json",
            "jitcount suite 'sum-*' softmax",
            "jitcount suite --as-if tpu:v5e --ledger as-if-tpu.json",
            codes="0 all cases hold, 1 one does not, 2 bad usage",
        ),
    )
    suite.add_argument("--ledger", type=Path, metavar="FILE", help="keep what it found")
    suite.add_argument("--bench", action="store_true", help="time cached calls too")
    suite.add_argument(
        "--target", action="append", default=[], metavar="T", dest="targets",
        help="compile for this TPU or GPU too, without having it (as jitcount targets lists them)",
    )  # fmt: skip
    suite.add_argument(
        "--as-if", default="", metavar="T",
        help="compute as this TPU or GPU would: its compiler's programs, its roundings",
    )  # fmt: skip
    suite.add_argument(
        "--processes",
        type=_number_of_processes,
        default=1,
        metavar="N",
        help="compute in N processes together",
    )
    suite.add_argument(
        "cases", nargs="*", metavar="CASE", help="ids, also as patterns (sum-*); all by default"
    )
    suite.set_defaults(command="suite", parser=suite)


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="compare ledgers: results, within what floating point promises, and compiles",
        **_ending(
            "jitcount compare cpu.json gpu.json tpu.json",
            'jitcount compare --markdown results/*.json >> "$GITHUB_STEP_SUMMARY"',
            codes="0 no difference, 1 a difference, 2 bad usage or no ledger",
        ),
    )
    form = compare.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print plain data, for other programs")
    form.add_argument("--markdown", action="store_true", help="print Markdown, as for GitHub")
    compare.add_argument("ledgers", nargs="+", type=Path, metavar="LEDGER")
    compare.set_defaults(command="compare", parser=compare)


def _add_targets(commands: Any) -> None:
    targets = commands.add_parser(
        "targets",
        help="list the TPUs and GPUs that can be compiled for without having them",
        **_ending("jitcount targets", codes="0 good, 2 bad usage"),
    )
    targets.set_defaults(command="targets", parser=targets)
