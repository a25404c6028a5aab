"""What options add to the report of ``jitcount run``: a module each, imported if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from jitcount._cli.run import Options
    from jitcount._explain.compile import Compile
    from jitcount._record.log import CompileLog
    from jitcount._show.parts import Part
    from jitcount._show.stderr import StderrWriter


class Output:
    """One output of a run; a subclass overrides the steps that it takes part in."""

    def __init__(self, options: Options, stderr: StderrWriter) -> None:
        self._options = options
        self._stderr = stderr

    def begin(self, recording: ExitStack) -> None:
        """Prepare: JAX has been imported, and recording is about to begin."""

    def before_exit_handlers(self, log: CompileLog) -> None:
        """Read what the exit handlers of the program, and of JAX, will take down."""

    def measure(self) -> None:
        """Find out more, once the program has ended and was not interrupted."""

    def with_measured(self, compiles: Sequence[Compile]) -> Sequence[Compile]:
        """The compiles, completed with what `measure` has found."""
        return compiles

    def save(self, compiles: Sequence[Compile]) -> None:
        """Write a file.

        Raises:
            FileError: it cannot be written.
        """

    def parts(self, compiles: Sequence[Compile]) -> Sequence[Part]:
        """What is shown below the table of compiles."""
        del compiles
        return ()
