"""``jitcount run --profile`` and ``--profile-trace FILE``: where the time of compiles goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._cli.outputs import Output
from jitcount._ledger.files import write_whole
from jitcount._show.chrome_trace import chrome_trace
from jitcount._show.profile_table import profile_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile
    from jitcount._show.parts import Part


class ProfileOutput(Output):
    """Shows the profiles of a run, and writes them as a trace."""

    def save(self, compiles: Sequence[Compile]) -> None:
        """Write the profiles for Perfetto and speedscope, if a file was named."""
        if self._options.profile_trace:
            write_whole(self._options.profile_trace, chrome_trace(compiles).encode())

    def parts(self, compiles: Sequence[Compile]) -> Sequence[Part]:
        """The lines of each program that took the time, with its loops."""
        return profile_tables(compiles)
