"""Records what a script compiles, from its import of JAX on, and reports that on stderr.

Every run of ``jitcount run`` needs this; what an option adds is in `jitcount._cli.outputs`.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from jitcount._explain.causes import Kind
from jitcount._explain.explain import to_compile
from jitcount._explain.summary import sentences
from jitcount._ledger.files import FileError
from jitcount._record.log import CompileLog
from jitcount._record.record import record
from jitcount._registry import registry
from jitcount._show.log_table import log_table
from jitcount._show.parts import Note
from jitcount._show.target_table import target_tables
from jitcount._show.text import plural, seconds
from jitcount._text import one_line

if TYPE_CHECKING:
    from jitcount._cli.run import Options
    from jitcount._observe.in_flight import Observation
    from jitcount._show.stderr import StderrWriter


class RunReport:
    """What ``jitcount run`` does once the script has imported JAX."""

    def __init__(self, options: Options, stderr: StderrWriter) -> None:
        self._options = options
        self._stderr = stderr
        self._outputs = list(options.outputs(stderr))
        self._log = CompileLog()
        self._recording = contextlib.ExitStack()

    def begin(self) -> None:
        """Record from now on."""
        options = self._options
        if options.live:
            registry.listen(self._show_live)
        for output in self._outputs:
            output.begin(self._recording)
        profile = options.profile or options.what_if
        recorder = record(options.targets, progress=True, redact=options.redact, profile=profile)
        self._log = self._recording.enter_context(recorder)

    def before_exit_handlers(self) -> None:
        """Read what the exit handlers take down, and keep the compilers of targets running."""
        for output in self._outputs:
            output.before_exit_handlers(self._log)
        if (compilers := _target_compilers()) is not None:
            atexit.unregister(compilers.close_compilers)  # what a handler compiles goes to them too

    def end(self, *, is_interrupt: bool) -> None:
        """Stop recording, and wait for the compilers of targets, unless the user interrupted.

        Raises:
            KeyboardInterrupt: it came while they were waited for; they are stopped.
        """
        try:
            with contextlib.suppress(Exception):
                if is_interrupt:  # then no compiler is waited for
                    self._recording.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
                else:
                    self._recording.close()
        finally:
            if (compilers := _target_compilers()) is not None:
                compilers.close_compilers()
        if not is_interrupt:
            for output in self._outputs:
                output.measure()

    def finish(self) -> int:
        """Save and show what was recorded, and hold it to the limit; returns the exit code.

        The files come first: whatever becomes of what is shown, or of one of them, they are there.
        """
        compiles = self._log.compiles
        for output in self._outputs:
            compiles = output.with_measured(compiles)
        problems = []
        for output in self._outputs:
            try:
                output.save(compiles)
            except FileError as error:
                problems.append(str(error))
        try:
            self._stderr.write(log_text(self._log, self._stderr, whole=self._options.all))
            for output in self._outputs:
                if parts := output.parts(compiles):
                    self._stderr.write(f"\n{self._stderr.rendered(parts)}")
        except Exception as error:  # noqa: BLE001 (what was not saved, and the limit, are shown)
            problems.append(f"could not tell: {one_line(error)}")
        for problem in problems:
            self._stderr.write(f"jitcount: {problem}")
        made, limit = self._log.count(), self._options.max
        is_past_limit = limit is not None and made > limit
        if is_past_limit:
            self._stderr.write(f"jitcount: {plural(made, 'compile')}, and --max allows {limit}")
        return 2 if problems else int(is_past_limit)

    def _show_live(self, observation: Observation) -> None:
        compiled = to_compile(observation, redact=self._options.redact)
        why = [cause for cause in compiled.causes if cause.kind != Kind.FIRST_CALL]
        if why and not compiled.from_disk:
            where = f"{compiled.call} at {compiled.call_site}, {seconds(compiled.total_s)}"
            line = f"jitcount: {where}: {'; '.join(sentences(why))}"
            self._stderr.write(self._stderr.rendered([Note(line)]))


def log_text(log: CompileLog, stderr: StderrWriter, *, whole: bool = False) -> str:
    """The tables of a log, as they are shown on that stderr."""
    return stderr.rendered([*log_table(log.compiles, whole=whole), *target_tables(log.compiles)])


def _target_compilers() -> Any:
    """The module that runs compilers of targets, if an option or the program has imported it."""
    return sys.modules.get("jitcount._targets.compilers")
