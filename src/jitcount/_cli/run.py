"""``jitcount run SCRIPT`` runs a script as ``python SCRIPT`` would, and counts.

What the script sets before it imports JAX must hold. So JAX is not imported here, nor NumPy, which
reads the environment too; counting, which needs them, begins when the script itself has imported
JAX. It ends when the program has ended, with its threads and its exit handlers.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._after_jax import after_import_of_jax
from jitcount._cli import program
from jitcount._ledger import files
from jitcount._ledger.files import LedgerError, require_replaceable
from jitcount._show.stderr import Beside
from jitcount._targets.host import prefer_cpu
from jitcount._targets.installed import require_installed
from jitcount._targets.names import parse
from jitcount._text import one_line

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from jitcount._cli.program import Ending
    from jitcount._cli.report import Counting


def main(asked: argparse.Namespace) -> int:
    """Refuse what cannot be run; else the exit code is the script's, or 1 past the limit."""
    try:
        if asked.ledger:
            asked.ledger = asked.ledger.absolute()  # wherever the script goes from here
            require_replaceable(asked.ledger, files.LEDGER)
        if asked.profile_trace:
            asked.profile, asked.profile_trace = True, asked.profile_trace.absolute()
            require_replaceable(asked.profile_trace, files.TRACE)
            _require_other_file(asked.profile_trace, asked.ledger)
        for target in [*asked.target, *filter(None, [asked.as_if])]:
            require_installed(parse(target))
    except (LedgerError, ValueError, ImportError) as error:  # of a file, or of a target
        asked.parser.error(str(error))
    if asked.target or asked.as_if:
        prefer_cpu()
    try:
        ending = _Run(asked).to_the_end()
    except KeyboardInterrupt:  # a second one, while the first was being dealt with
        ending = program.Ending(1, is_interrupt=True)
    return program.leave(ending)


def _require_other_file(trace: Path, ledger: Path | None) -> None:
    """Refuse a trace that would replace the ledger of the same run."""
    if ledger is not None and trace.resolve() == ledger.resolve():
        raise LedgerError(f"{trace}: is to hold the ledger, too; give --profile-trace another file")


class _Run:
    """One run of a program."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._beside = Beside()
        self._counting: Counting | None = None
        self._problem = ""
        self._process = os.getpid()

    def to_the_end(self) -> Ending:
        """Run the program, count, tell; gives what the process ends with."""
        after_import_of_jax(self._begin)
        ending = program.run(list(self._asked.script), is_module=self._asked.module)
        program.wait_for_threads()
        if self._counting is not None:
            with contextlib.suppress(Exception):  # whatever the program has done to Python
                self._counting.before_exit_handlers()
        program.run_exit_handlers()
        if os.getpid() != self._process:  # a fork of the program; to tell is the first one's part
            return ending
        try:
            if self._counting is not None:
                self._counting.end(is_interrupt=ending.is_interrupt)
        except KeyboardInterrupt:  # while compilers of targets were waited for
            ending = replace(ending, is_interrupt=True)
        return self._tell(ending)

    def _begin(self) -> None:
        try:
            self._counting = self._new_counting()
            self._counting.begin()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (the program's own import must not fail)
            self._problem = f"could not count: {one_line(error)}"

    def _new_counting(self) -> Counting:
        from jitcount._cli.report import Counting  # noqa: PLC0415 (it needs JAX)

        return Counting(self._asked, self._beside)

    def _tell(self, ending: Ending) -> Ending:
        if self._problem:
            self._beside.say(f"jitcount: {self._problem}")
            return _or_else(ending, 2)
        if self._counting is None and not self._asked.ledger:  # a script without JAX needs none
            self._beside.say("nothing was compiled")
            return ending
        try:
            code = (self._counting or self._new_counting()).tell()
        except Exception as error:  # noqa: BLE001 (the program's exit code must not be lost)
            self._beside.say(f"jitcount: could not tell: {one_line(error)}")
            code = 2
        return _or_else(ending, code)


def _or_else(ending: Ending, code: int) -> Ending:
    """A code of ours, where the program's own says that all is well."""
    return replace(ending, code=code) if code and ending.is_good else ending
