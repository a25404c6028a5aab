"""Counts a script from its import of JAX on, and tells of it beside the script's own output."""

from __future__ import annotations

import atexit
import contextlib
from typing import TYPE_CHECKING

from jitcount._emulate.as_if import as_if_or_null
from jitcount._explain.causes import Kind
from jitcount._explain.explain import to_compile
from jitcount._explain.summary import sentences
from jitcount._ledger.environment import Environment, environment
from jitcount._ledger.files import LedgerError, write_whole
from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger
from jitcount._profile.loops import keeper
from jitcount._record.log import CompileLog
from jitcount._record.record import record
from jitcount._registry import registry
from jitcount._show.chrome_trace import chrome_trace
from jitcount._show.emulation_table import emulation_table
from jitcount._show.log_table import log_table
from jitcount._show.parts import Note
from jitcount._show.profile_table import loops_table, profile_tables
from jitcount._show.target_table import target_tables
from jitcount._show.text import plural, seconds
from jitcount._targets.compilers import close_compilers
from jitcount._text import one_line
from jitcount._what_if import Scans, measure_loops, with_scans

if TYPE_CHECKING:
    import argparse

    from jitcount._emulate.result import Emulation
    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._show.stderr import Beside


class Counting:
    """What `jitcount run` does once the script has imported JAX."""

    def __init__(self, asked: argparse.Namespace, beside: Beside) -> None:
        self._asked = asked
        self._beside = beside
        self._log = CompileLog()
        self._recording = contextlib.ExitStack()
        self._emulation: Emulation | None = None
        self._where: Environment | None = None
        self._scans = Scans()

    def begin(self) -> None:
        """Record from now on."""
        if self._asked.live:
            self._recording.enter_context(registry.listening(self._show_live))
        self._emulation = self._recording.enter_context(as_if_or_null(self._asked.as_if))
        keeper.is_wanted = self._asked.what_if
        self._log = self._recording.enter_context(
            record(
                self._asked.target,
                progress=True,
                redact=self._asked.redact,
                profile=self._asked.profile or self._asked.what_if,
            )
        )

    def before_exit_handlers(self) -> None:
        """Look at JAX's backend, which JAX's own handler takes down, and keep the compilers."""
        if self._asked.ledger and self._log.compiles:  # else there may be no backend to look at
            with contextlib.suppress(Exception):
                self._where = environment()
        atexit.unregister(close_compilers)  # what a handler compiles goes to them too

    def end(self, *, is_interrupt: bool) -> None:
        """Record no more, and wait for what the targets' compilers have yet to say.

        Raises:
            KeyboardInterrupt: it came while they were waited for; they are stopped.
        """
        try:
            with contextlib.suppress(Exception):
                if is_interrupt:  # then no compiler is waited for
                    error = KeyboardInterrupt()
                    self._recording.__exit__(KeyboardInterrupt, error, None)
                else:
                    self._recording.close()
        finally:
            close_compilers()
        if self._asked.what_if and not is_interrupt:
            self._measure_loops()

    def _measure_loops(self) -> None:
        """Have loops compiled as scans too; if that fails it costs a line, and no exit code."""
        try:
            measure_loops(self._asked.target, self._scans)
        except KeyboardInterrupt:
            self._beside.say("jitcount: --what-if was interrupted: not all loops were measured")
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is)
            self._beside.say(f"jitcount: --what-if could not measure: {one_line(error)}")

    def tell(self) -> int:
        """Keep what was found, show it, and hold it to the limit; gives the exit code.

        The files come first: whatever becomes of what is shown, or of one of them, they are there.
        """
        refused = [self._keep()] if self._asked.ledger else []
        refused += [self._keep_trace()] if self._asked.profile_trace else []
        try:
            self._show()
        except Exception as error:  # noqa: BLE001 (what was not kept, and the limit, are told)
            refused.append(f"could not tell: {one_line(error)}")
        code = 0
        for reason in filter(None, refused):
            self._beside.say(f"jitcount: {reason}")
            code = 2
        count, limit = self._log.count(), self._asked.max
        if limit is not None and count > limit:
            self._beside.say(f"jitcount: {plural(count, 'compile')}, and --max allows {limit}")
            code = code or 1
        return code

    def _show(self) -> None:
        """Say the tables."""
        self._beside.say(shown(self._log, self._beside, whole=self._asked.all))
        if self._emulation is not None:
            text = self._beside.rendered(emulation_table(self._emulation))
            self._beside.say(f"\n{text}")
        if self._asked.profile or self._asked.what_if:
            found = with_scans(self._log.compiles, self._scans)
            # A profile has the loops below each program.
            parts = profile_tables(found) if self._asked.profile else loops_table(found)
            if parts:
                self._beside.say(f"\n{self._beside.rendered(parts)}")

    def _keep(self) -> str:
        """Write the ledger; says why that cannot be, if it cannot."""
        found = {
            self._asked.script[0]: CaseEntry(
                compiles=tuple(with_scans(self._log.compiles, self._scans))
            )
        }
        try:
            where = self._where or environment()
            write_ledger(self._asked.ledger, Ledger(environment=where, cases=found))
        except LedgerError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 (JAX is half imported, or no backend starts)
            return f"{self._asked.ledger}: cannot be written: {one_line(error)}"
        return ""

    def _keep_trace(self) -> str:
        """Write the profiles for other tools; says why that cannot be, if it cannot."""
        try:
            text = chrome_trace(self._log.compiles)
            write_whole(self._asked.profile_trace, text.encode())
        except LedgerError as error:
            return str(error)
        return ""

    def _show_live(self, observation: InFlightCompile) -> None:
        compiled = to_compile(observation, redact=self._asked.redact)
        why = [c for c in compiled.causes if c.kind != Kind.FIRST_CALL]
        if why and not compiled.from_disk:
            reasons = "; ".join(sentences(why))
            where = f"{compiled.call} at {compiled.call_site}"
            line = f"jitcount: {where}, {seconds(compiled.total_s)}: {reasons}"
            self._beside.say(self._beside.rendered([Note(line)]))


def shown(log: CompileLog, beside: Beside, *, whole: bool = False) -> str:
    """The tables of a log, as they are said there."""
    parts = [*log_table(log.compiles, whole=whole), *target_tables(log.compiles)]
    return beside.rendered(parts)
