"""``jitcount run --as-if T``: the program computes as a target would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._cli.outputs import Output
from jitcount._emulate.as_if import as_if
from jitcount._show.emulation_table import emulation_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from jitcount._emulate.result import Emulation
    from jitcount._explain.compile import Compile
    from jitcount._show.parts import Part


class EmulationOutput(Output):
    """Emulates a target from the import of JAX on, and shows what rounded."""

    _emulation: Emulation | None = None

    def begin(self, recording: ExitStack) -> None:
        """Emulate the target until recording ends."""
        self._emulation = recording.enter_context(as_if(self._options.as_if))

    def parts(self, compiles: Sequence[Compile]) -> Sequence[Part]:  # noqa: ARG002
        """The table of what was emulated."""
        return emulation_table(self._emulation) if self._emulation is not None else ()
