"""``jitcount run SCRIPT`` runs a script as ``python SCRIPT`` would, and counts its compiles.

What the script sets before it imports JAX must hold. So JAX is not imported here, nor NumPy, which
reads the environment too; recording, which needs them, begins when the script itself has imported
JAX. It ends when the program has ended, with its threads and its exit handlers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount import _signals
from jitcount._after_jax import after_import_of_jax
from jitcount._cli import program
from jitcount._cli.arguments import add_releases, add_targets, count, end_help, typed
from jitcount._cli.streams import UsageError
from jitcount._ledger import files
from jitcount._ledger.files import LedgerError, require_replaceable
from jitcount._show.stderr import StderrWriter
from jitcount._text import one_line

if TYPE_CHECKING:
    from jitcount._cli.children import Children
    from jitcount._cli.program import Ending
    from jitcount._cli.report import RunReport
    from jitcount._try_calls.processes import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``jitcount run`` was asked to do."""

    program: list[str]
    """The script's path, or the module's name, and the arguments of the program."""

    module: bool = False
    """Whether a module is run, as by ``python -m``."""

    live: bool = False
    all: bool = False
    max: int | None = None
    ledger: Path | None = None
    targets: list[str]
    fail_on_refusal: bool = False
    as_if: str = ""
    profile: bool = False
    profile_trace: Path | None = None
    what_if: bool = False
    what_if_calls: bool = False
    check: bool = False
    redact: bool = False
    releases: list[str] = field(default_factory=list)
    compared: str = ""
    """Of a run that ``--jax`` has started, ``"here"`` or ``"elsewhere"``."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether nothing is reported but what is wrong: it is a run under another release."""
        return self.compared == "elsewhere"


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``jitcount run``."""
    add = parser.add_argument
    parser.usage = (
        "jitcount run [--live] [--all] [--max N] [--ledger FILE] [--target T]... "
        "[--fail-on-refusal] [--as-if T] [--profile] [--what-if] [--what-if=calls] "
        "[--profile-trace FILE] [--check] [--redact] [--jax RELEASE]... "
        "(SCRIPT | -m MODULE) [ARGS]..."
    )
    add("--live", action="store_true", help="show each recompile as it happens")
    add("--all", action="store_true", help="show each compile in a row of its own")
    add("--max", type=count, metavar="N", help="exit 1 past so many compiles")
    add("--ledger", type=Path, metavar="FILE", help="keep all compiles in a file")
    add_targets(
        parser, "compile for this too: tpu:v5e, cuda:h100, ...; jitcount targets lists them"
    )
    add(
        "--fail-on-refusal", action="store_true",
        help="exit 1 if a program was not compiled for a target",
    )  # fmt: skip
    add("--profile", action="store_true", help="show where the time of compiles goes, by line")
    add(
        "--profile-trace", type=Path, metavar="FILE",
        help="that, as a file that Perfetto and speedscope open",
    )  # fmt: skip
    add(
        "--what-if", action="store_true",
        help="show unrolled loops, and measure what each would cost as jax.lax.scan",
    )  # fmt: skip
    add(
        "--what-if=calls", action="store_true", dest="what_if_calls",
        help="try advice to jit a call: runs the program again, several times; "
        "what it writes or sends happens again each time",
    )  # fmt: skip
    add(
        "--check", action="store_true",
        help="compute what is compiled operation by operation too, and exit 1 if that differs",
    )  # fmt: skip
    add("--redact", action="store_true", help="leave out what static arguments were")
    add_releases(parser)
    add("--compared", default="", help=argparse.SUPPRESS)
    add("-m", dest="module", action="store_true", help="run a module, as python -m")
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    end_help(
        parser,
        "jitcount run train.py --epochs 3",
        "jitcount run --max 20 --ledger run.json -m package.train",
        "jitcount run --target tpu:v5e --target cuda:h100 train.py",
        "jitcount run --jax 0.9.2 --jax 0.12.0.1 train.py",
        codes="the program's own; 1 by --max, --check, --fail-on-refusal or --jax; 2 bad usage",
    )


def options(asked: argparse.Namespace) -> Options:
    """The options of ``jitcount run``, as argparse has read them; there must be a program."""
    words = asked.program
    if words[:1] == ["--"]:  # whatever follows is no option of ours
        del words[0]
    if not words:
        raise UsageError("run needs a SCRIPT, or -m and a MODULE")
    if not asked.module:
        try:
            Path(words[0]).stat()
        except FileNotFoundError:
            raise UsageError(f"no such file: {words[0]}") from None
        except (OSError, ValueError) as error:  # a name that is too long, a folder that is closed
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{words[0]}: cannot be read: {reason}") from None
    if asked.fail_on_refusal and not asked.targets:
        raise UsageError("--fail-on-refusal needs a --target that can refuse: --target tpu:v5e")
    if asked.check and asked.as_if:
        raise UsageError("--check compares what this machine's compiler made: not with --as-if")
    if asked.what_if_calls and asked.releases:
        raise UsageError("--what-if=calls is for one release: not with --jax")
    if asked.what_if_calls and asked.as_if:
        raise UsageError("--what-if=calls measures what this machine runs: not with --as-if")
    return typed(
        Options,
        asked,
        releases=list(dict.fromkeys(asked.releases)),
        # Absolute, wherever the script goes from here.
        ledger=asked.ledger and asked.ledger.absolute(),
        profile_trace=asked.profile_trace and asked.profile_trace.absolute(),
        profile=asked.profile or asked.profile_trace is not None,
    )


def main(options: Options) -> int:
    """Refuse what cannot be run; else the exit code is the script's, or 1 past the limit."""
    try:
        _require_files(options.ledger, options.profile_trace)
        if options.targets or options.as_if:
            from jitcount._targets.host import prefer_cpu
            from jitcount._targets.installed import installed_targets, require_usable

            installed_targets(options.targets)
            if options.as_if:
                require_usable(options.as_if)
            prefer_cpu()
    except (LedgerError, ValueError, ImportError) as error:  # of a file, or of a target
        raise UsageError(str(error)) from None
    if options.releases:
        from jitcount._cli.releases import run_in_releases

        return run_in_releases(options)
    try:
        ending = _Run(options).to_the_end()
    except KeyboardInterrupt:  # a second one, while the first was being dealt with
        ending = program.Ending(1, is_interrupt=True)
    return program.leave(ending)


def _require_files(ledger: Path | None, trace: Path | None) -> None:
    """Refuse files that cannot be written, before the program runs for hours."""
    if ledger is not None:
        require_replaceable(ledger, files.LEDGER)
    if trace is not None:
        require_replaceable(trace, files.TRACE)
        if ledger is not None and trace.resolve() == ledger.resolve():
            raise LedgerError(
                f"{trace}: is to hold the ledger, too; give --profile-trace another file"
            )


class _Run:
    """One run of a program, from its start to its report."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stderr = StderrWriter()
        self._report: RunReport | None = None
        self._problem = ""
        self._process = os.getpid()
        self._started_at = 0.0
        self._finishing = threading.Lock()
        self._has_finished = False
        self._has_told = False
        self._program: Program | None = None
        self._children: Children | None = None
        if options.what_if_calls:  # before the program changes what it was started with
            from jitcount._try_calls.processes import Program

            self._program = Program(options.program, options.module)

    def to_the_end(self) -> Ending:
        """Run the program, record and report; returns what the process ends with."""
        self._started_at = time.time()
        if self._options.as_if:
            from jitcount._cli.children import Children

            self._children = Children(self._options.as_if)
        after_import_of_jax(self._begin)
        ending = program.run(list(self._options.program), is_module=self._options.module)
        program.wait_for_threads()
        if self._report is not None:
            with contextlib.suppress(Exception):  # whatever the program has done to Python
                self._report.before_exit_handlers()
        program.run_exit_handlers()
        if os.getpid() != self._process:  # a fork of the program: its parent reports
            return ending
        try:
            if self._report is not None:
                self._report.end(is_interrupt=ending.is_interrupt)
                if self._program is not None:
                    self._report.try_calls(self._program, ending)
        except KeyboardInterrupt:  # while compilers of targets were waited for
            ending = replace(ending, is_interrupt=True)
        with self._finishing:
            code = 0 if self._has_told else self._finish()
            self._has_finished = True
        _signals.forget(self._end_by_signal)  # where a signal has come, the process ends in here
        if self._has_told:  # or not: the first process of a container is not ended by it
            code = self._finish()
        # A code of ours, where the program's own says that all is well.
        return replace(ending, code=code) if code and ending.is_good else ending

    def _begin(self) -> None:
        try:
            self._report = self._new_report()
            self._report.begin()
            _signals.before_end_by_signal(self._end_by_signal)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (the program's own import must not fail)
            self._problem = f"could not count: {one_line(error)}"

    def _end_by_signal(self, name: str) -> None:
        """Report what was recorded so far; called in another thread, while the program goes on."""
        with self._finishing:
            if self._report is not None and not self._has_finished:
                self._has_told = True
                self._report.finish(signal=name)

    def _new_report(self) -> RunReport:
        from jitcount._cli.report import RunReport  # it needs JAX

        return RunReport(self._options, self._stderr, self._started_at, self._children)

    def _finish(self) -> int:
        """Report what was recorded; returns an exit code of ours."""
        if self._problem:
            self._stderr.write(f"jitcount: {self._problem}")
            return 2
        if self._report is None and self._children is not None and self._children.have_computed:
            return self._new_report().finish()  # the program has left JAX to its children
        try:
            return self._finish_without_jax() if self._report is None else self._report.finish()
        except Exception as error:  # noqa: BLE001 (the program's exit code must not be lost)
            self._stderr.write(f"jitcount: could not tell: {one_line(error)}")
            return 2

    def _finish_without_jax(self) -> int:
        """Report that there was nothing to record; JAX is not imported for that."""
        from jitcount._cli.run_files import write_files

        files = write_files(self._options, (), None, (self._started_at, time.time()))
        if not self._options.is_elsewhere:
            self._stderr.write("nothing was compiled")
        for line in (*files.lines, *files.problems):
            self._stderr.write(f"jitcount: {line}")
        return 2 if files.problems else 0
