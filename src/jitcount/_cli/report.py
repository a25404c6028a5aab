"""Records what a script compiles, from its import of JAX on, and reports that on stderr.

What only an option needs is imported where that option is looked at: a run without options imports
no emulation, no profile and no targets.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

from jitcount._cli.run_files import write_files
from jitcount._explain.causes import Kind
from jitcount._explain.explain import to_compile
from jitcount._explain.summary import with_codes
from jitcount._miscompiles.known import has_recognisable
from jitcount._record.log import CompileLog
from jitcount._record.record import record
from jitcount._registry import registry
from jitcount._show.log_table import log_table
from jitcount._show.parts import Note
from jitcount._show.target_table import failures_on, target_tables
from jitcount._show.text import arguments_of, plural, seconds
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jitcount._cli.children import Children
    from jitcount._cli.program import Ending
    from jitcount._cli.run import Options
    from jitcount._emulate.result import Emulation
    from jitcount._explain.compile import Compile
    from jitcount._ledger.environment import Environment
    from jitcount._miscompiles.checking import Checker
    from jitcount._miscompiles.suspects import Suspects
    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._profile.loops import LoopPrograms
    from jitcount._show.parts import Part
    from jitcount._show.stderr import StderrWriter
    from jitcount._targets.result import OnTarget
    from jitcount._try_calls.jitted_call import JittedCall
    from jitcount._try_calls.processes import Program
    from jitcount._try_calls.trying import Trial
    from jitcount._what_if import Scans


class RunReport:
    """What ``jitcount run`` does once the script has imported JAX."""

    def __init__(
        self,
        options: Options,
        stderr: StderrWriter,
        started_at: float,
        children: Children | None = None,
    ) -> None:
        self._options = options
        self._children = children
        self._stderr = stderr
        self._started_at = started_at
        self._log = CompileLog()
        self._recording = contextlib.ExitStack()
        self._emulation: Emulation | None = None
        self._where: Environment | None = None
        self._loops: LoopPrograms | None = None
        self._scans: Scans | None = None
        self._checker: Checker | None = None
        self._suspects: Suspects | None = None
        self._trials: list[Trial] = []
        self._calls: list[JittedCall] = []

    def begin(self) -> None:
        """Record from now on."""
        options = self._options
        if options.live:
            self._recording.enter_context(registry.listening(self._show_live))
        if options.as_if:
            from jitcount._emulate.as_if import as_if

            self._emulation = self._recording.enter_context(as_if(options.as_if))
            if self._children is not None:
                self._children.watch(self._emulation)
        if options.what_if:
            self._loops = self._recording.enter_context(registry.keeping_loops())
        if has_recognisable():
            from jitcount._miscompiles.suspects import Suspects

            self._suspects = Suspects()
            self._recording.enter_context(registry.listening(self._suspects))
        if options.check:
            from jitcount._miscompiles.checking import Checker

            self._checker = Checker()
            self._recording.enter_context(registry.listening(self._checker))
        profile = options.profile or options.what_if
        recorder = record(options.targets, progress=True, redact=options.redact, profile=profile)
        self._log = self._recording.enter_context(recorder)
        # Of the program, not of its import of JAX.
        self._log.started_at, self._log.outer = self._started_at, ()

    def before_exit_handlers(self) -> None:
        """Read what JAX's exit handler takes down, and keep the compilers of targets running."""
        if self._options.ledger:
            from jitcount._ledger.environment import environment_so_far

            with contextlib.suppress(Exception):
                self._where = environment_so_far()
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
        if self._loops is not None and not is_interrupt:
            self._measure(self._loops)

    def _measure(self, loops: LoopPrograms) -> None:
        """Compile loops as scans too; if that fails it costs a line, and no exit code."""
        from jitcount._what_if import Scans, measure_loops

        self._scans = Scans()
        try:
            measure_loops(loops.programs, self._options.targets, self._scans)
        except KeyboardInterrupt:
            self._stderr.write("jitcount: --what-if was interrupted: not all loops were measured")
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is)
            self._stderr.write(f"jitcount: --what-if could not measure: {one_line(error)}")

    def try_calls(self, program: Program, ending: Ending) -> None:
        """Run the program again with the calls jitted that are advised to be.

        If that fails it costs a line, and no exit code.

        Raises:
            KeyboardInterrupt: it came meanwhile; what runs is ended.
        """
        from jitcount._explain.fixes import fixes
        from jitcount._try_calls.advised import jitted_calls
        from jitcount._try_calls.trying import try_calls

        if ending.is_interrupt:
            return
        try:
            self._calls = jitted_calls(fixes(self._log.compiles))
            if self._calls:
                try_calls(program, ending.code, self._calls, self._trials)
        except KeyboardInterrupt:
            self._stderr.write(
                "jitcount: --what-if=calls was interrupted: not all calls were tried"
            )
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is)
            self._stderr.write(f"jitcount: --what-if=calls could not try: {one_line(error)}")

    def finish(self, *, signal: str = "") -> int:
        """Save and show what was recorded, and hold it to the limit; returns the exit code.

        The files come first: whatever becomes of what is shown, or of one of them, they are there.

        Args:
            signal: the name of the one that is about to end the program, while it goes on.
        """
        compiles = self._compiles()
        span = self._log.started_at, self._log.ended_at or time.time()
        files = write_files(self._options, compiles, self._where, span)
        problems = files.problems
        try:
            if not self._options.is_elsewhere:
                self._show(compiles, signal)
        except Exception as error:  # noqa: BLE001 (what was not saved, and the limit, are shown)
            problems.append(f"could not tell: {one_line(error)}")
        for line in files.lines:
            self._stderr.write(f"jitcount: {line}")
        for problem in problems:
            self._stderr.write(f"jitcount: {problem}")
        return 2 if problems else int(self._is_past_a_limit(compiles))

    def _is_past_a_limit(self, compiles: Sequence[Compile]) -> bool:
        """Whether something was found that the user has asked to be told by the exit code."""
        made, limit = self._log.count(), self._options.max
        is_past_limit = limit is not None and made > limit
        if is_past_limit:
            self._stderr.write(f"jitcount: {plural(made, 'compile')}, and --max allows {limit}")
        refused = self._refused(compiles) if self._options.fail_on_refusal else []
        for line in refused:
            self._stderr.write(f"jitcount: {line}, and --fail-on-refusal is set")
        checked = self._checker.programs if self._checker is not None else ()
        wrong = sum(bool(program.wrong) for program in checked)
        if wrong and self._options.is_elsewhere:
            self._stderr.write(f"jitcount: {plural(wrong, 'program')} compiled wrongly")
        return is_past_limit or bool(wrong or refused)

    def _show(self, compiles: Sequence[Compile], signal: str) -> None:
        options, steps = self._options, self._next_steps(compiles)
        if signal:
            self._stderr.write(f"jitcount: {signal} came: this is what was compiled until then")
        text = log_text(self._log, self._stderr, whole=options.all, next_steps=steps)
        self._stderr.write(text)
        for parts in self._tables(compiles):
            self._stderr.write(f"\n{self._stderr.rendered(parts)}")

    def _refused(self, compiles: Sequence[Compile]) -> list[str]:
        """For each target, how many programs were not compiled for it, in words."""
        failed: dict[str, list[OnTarget]] = {}
        for compiled in compiles:
            for name, result in compiled.on.items():
                if result.error is not None:
                    failed.setdefault(name, []).append(result)
        return [failures_on(name, results) for name, results in failed.items()]

    def _next_steps(self, compiles: Sequence[Compile]) -> list[str]:
        """What else would help, in a line each."""
        from jitcount._show.next_steps import next_steps

        if self._options.as_if:  # what is compiled here is no program of the user's machine
            return []
        return next_steps(compiles, has_profile=self._options.profile or self._options.what_if)

    def _compiles(self) -> Sequence[Compile]:
        """What was compiled, with what was measured of its loops."""
        if self._scans is None:
            return self._log.compiles
        from jitcount._what_if import with_scans

        return with_scans(self._log.compiles, self._scans)

    def _tables(self, compiles: Sequence[Compile]) -> Iterator[Sequence[Part]]:
        """What options show below the table of compiles."""
        if self._children is not None:
            from jitcount._show.emulation_table import EmulationSums, sums_table

            own = self._emulation.programs if self._emulation is not None else ()
            sums = EmulationSums.from_programs(own)
            notes = self._children.end(sums)
            yield [*sums_table(self._options.as_if, sums), *notes]
        if self._options.profile or self._options.what_if:
            from jitcount._show.profile_table import loops_table, profile_tables

            # A profile has the loops below each program.
            parts = profile_tables(compiles) if self._options.profile else loops_table(compiles)
            if parts:
                yield parts
        if self._options.what_if_calls:
            from jitcount._try_calls.sentences import trial_parts

            yield trial_parts(self._trials, len(self._calls) - len(self._trials))
        if self._checker is not None:
            from jitcount._show.check_table import check_table

            yield check_table(self._checker.programs)
        if self._suspects is not None and self._suspects.found:
            notes = []
            for text, programs in self._suspects.lines(self._whether_wrong).items():
                notes += [Note(f"jitcount: {text}"), *(Note(line, depth=1) for line in programs)]
            yield notes

    def _whether_wrong(self, suspect: Compile) -> str:
        """What is known of a program that this release may have compiled wrongly."""
        if self._checker is None:
            return "jitcount run --check says whether it is wrong"
        same = [
            checked
            for checked in self._checker.programs
            if (checked.compiled.call, checked.compiled.call_site)
            == (suspect.call, suspect.call_site)
        ]
        if any(checked.wrong for checked in same):
            return "it is wrong, see above"
        if not same or any(checked.not_checked for checked in same):
            return "it was not compared"
        return "it was compared, and was right here, apart from rounding"

    def _show_live(self, observation: InFlightCompile) -> None:
        compiled = to_compile(observation, redact=self._options.redact)
        why = [cause for cause in compiled.causes if cause.kind != Kind.FIRST_CALL]
        if why and not compiled.from_disk:
            call = f"{compiled.function}({arguments_of(compiled)})"
            where = f"{call} at {compiled.call_site}, {seconds(compiled.total_s)}"
            line = f"jitcount: {where}: {'; '.join(with_codes(why))}"
            self._stderr.write(self._stderr.rendered([Note(line)]))


def log_text(
    log: CompileLog, stderr: StderrWriter, *, whole: bool = False, next_steps: Sequence[str] = ()
) -> str:
    """The tables of a log, as they are shown on that stderr."""
    shown = log_table(log.compiles, whole=whole, duration=log.duration_s, next_steps=next_steps)
    return stderr.rendered([*shown, *target_tables(log.compiles)])


def _target_compilers() -> Any:
    """The module that runs compilers of targets, if an option or the program has imported it."""
    return sys.modules.get("jitcount._targets.compilers")
