"""``jitcount run --what-if``: what each unrolled loop would cost as a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._cli.outputs import Output
from jitcount._profile.loops import keeper
from jitcount._show.profile_table import loops_shown
from jitcount._text import one_line
from jitcount._what_if import Scans, measure_loops, with_scans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from jitcount._cli.run import Options
    from jitcount._explain.compile import Compile
    from jitcount._show.parts import Part
    from jitcount._show.stderr import StderrWriter


class WhatIfOutput(Output):
    """Keeps the programs that have loops, and compiles these as scans when the run has ended."""

    def __init__(self, options: Options, stderr: StderrWriter) -> None:
        super().__init__(options, stderr)
        self._scans = Scans()

    def begin(self, recording: ExitStack) -> None:  # noqa: ARG002
        """Have the programs with loops kept."""
        keeper.is_wanted = True

    def measure(self) -> None:
        """Compile the loops as scans; if that fails it costs a line, and no exit code."""
        try:
            measure_loops(self._options.targets, self._scans)
        except KeyboardInterrupt:
            self._stderr.write("jitcount: --what-if was interrupted: not all loops were measured")
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is)
            self._stderr.write(f"jitcount: --what-if could not measure: {one_line(error)}")

    def with_measured(self, compiles: Sequence[Compile]) -> Sequence[Compile]:
        """The compiles, with what their loops cost as scans."""
        return with_scans(compiles, self._scans)

    def parts(self, compiles: Sequence[Compile]) -> Sequence[Part]:
        """The loops of each program; a profile shows them itself."""
        return () if self._options.profile else loops_shown(compiles)
