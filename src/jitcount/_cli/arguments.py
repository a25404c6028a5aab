"""Reads the command line: collects what each verb declares, and refuses what none of them knows.

A verb is a module of this folder with three names: `declare` adds its arguments to a parser,
`options` makes a typed record of what argparse has read, and `main` does the work with that. Only
the verb that was asked for is imported. Neither this nor a verb's module imports JAX before its
`main` runs, so that help comes at once.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import jitcount
from jitcount._cli.streams import UsageError, show
from jitcount._text import did_you_mean, encode_safely, encoding_of, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

# Each verb, with its line of `jitcount --help`.
VERBS = {
    "run": "run a program, then show what it compiled and why",
    "suite": "run the suite's cases, or your own, on the backend that JAX has here",
    "compare": "compare ledgers: results, within what floating point promises, and compiles",
    "plan": "plan a few sizes for the ragged axes in a ledger, and show what to paste",
    "targets": "list the TPUs and GPUs that can be compiled for without having them",
    "init": "write sessions and a workflow that test a project on every backend",
}


class Command(NamedTuple):
    """A verb that was asked for, with its options."""

    verb: str
    main: Callable[[Any], int]
    options: object
    parser: argparse.ArgumentParser

    def run(self) -> int:
        """Run the verb, and return the exit code; what it refuses ends the process."""
        try:
            return self.main(self.options)
        except UsageError as error:
            self.parser.error(str(error))


class _Parser(argparse.ArgumentParser):
    """Refuses in one line, whatever the words that it names hold."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a help or a version as all that is asked for; argparse would ignore a full disk."""
        if message and file is not None and file is sys.stdout:
            show(message.removesuffix("\n"))
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        ignored = re.fullmatch(r"argument (\S+): ignored explicit argument '(.*)'", message)
        if ignored:  # of an option that takes none, or only certain ones
            message = (
                f"no option is called {'='.join(ignored.groups())}; {self.prog} --help lists them"
            )
        line = f"{self.prog}: error: {escape_control_chars(message)}\n"
        self.exit(2, encode_safely(line, encoding_of(sys.stderr)))


def parse(arguments: Sequence[str] | None) -> Command:
    """Read the arguments, by default the process's; ends the process where they make no sense."""
    parser = _Parser(
        prog="jitcount", description="Count, explain and price the compiles of a JAX program."
    )
    end_help(
        parser,
        "jitcount run train.py --epochs 3",
        "jitcount run --target tpu:v5e -m package.train",
        "jitcount suite --ledger here.json && jitcount compare there.json here.json",
        codes="0 good, 1 a difference or a failure found, 2 bad usage",
    )
    parser.add_argument("--version", action="version", version=f"jitcount {jitcount.__version__}")
    parser.set_defaults(verb="", parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    words = sys.argv[1:] if arguments is None else arguments
    asked_for = next((word for word in words if not word.startswith("-")), "")
    module: Any = None
    for verb, line in VERBS.items():
        added = commands.add_parser(verb, help=line)
        added.set_defaults(verb=verb, parser=added)
        if verb == asked_for:
            module = importlib.import_module(f"jitcount._cli.{verb}")
            module.declare(added)
    if words and not words[0].startswith("-") and words[0] not in VERBS:
        nearest = did_you_mean(words[0], VERBS)
        remedy = nearest or f"there are {', '.join(VERBS)}"
        parser.error(f"no command is called {words[0]!r}; {remedy}")
    asked, unknown = parser.parse_known_args(words)
    of_verb: _Parser = asked.parser
    if unknown:
        _refuse(unknown[0], of_verb)
    if not asked.verb:
        parser.error(f"which COMMAND? There are {', '.join(VERBS)}")
    try:
        return Command(asked.verb, module.main, module.options(asked), of_verb)
    except UsageError as error:
        of_verb.error(str(error))


def _refuse(word: str, parser: argparse.ArgumentParser) -> None:
    """End the process for a word that a command does not know."""
    option = word.partition("=")[0]
    if not option.startswith("-"):
        parser.error(f"one argument too many: {word}")
    known = ["--help", *re.findall(r"--[a-z][a-z-]*", parser.format_usage())]
    nearest = did_you_mean(option, known)
    parser.error(f"no option is called {option}; {nearest or f'{parser.prog} --help lists them'}")


# --- For the verbs --------------------------------------------------------------------------------


def end_help(parser: argparse.ArgumentParser, *examples: str, codes: str) -> None:
    """Let a parser's help end with examples, and with what the exit code says."""
    lines = ["examples:", *(f"  {example}" for example in examples), "", f"exit code: {codes}"]
    parser.epilog = "\n".join(lines)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # else argparse joins the lines


def add_targets(parser: argparse.ArgumentParser, about_target: str) -> None:
    """Declare ``--target`` and ``--as-if``, which several verbs have."""
    parser.add_argument(
        "--target", action="append", default=[], metavar="T", dest="targets", help=about_target
    )
    parser.add_argument(
        "--as-if", default="", metavar="T",
        help="compute as this TPU or GPU would: its compiler's programs, its roundings; or as this "
        "machine would with other roundings: rounding, or rounding:7 for another seed",
    )  # fmt: skip


def add_releases(parser: argparse.ArgumentParser) -> None:
    """Declare ``--jax``, which several verbs have."""
    parser.add_argument(
        "--jax", action="append", default=[], type=_release, metavar="RELEASE", dest="releases",
        help="do the same under this release of JAX, in an environment that uv makes, and compare",
    )  # fmt: skip


def _release(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)+[\w.]*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a release of JAX, such as 0.9.2")
    return text


def count(text: str, least: int = 0) -> int:
    """Read an argument that is a count."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count of {least} or more")
    return int(text)


def typed(kind: type[T], asked: argparse.Namespace, **changed: object) -> T:
    """A verb's options: each field is the argument of the same name, or what `changed` has."""
    read = {field.name: getattr(asked, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**read | changed)
