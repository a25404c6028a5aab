"""``jitcount run --ledger FILE``: all compiles of a run in a file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jitcount._cli.outputs import Output
from jitcount._ledger.environment import Environment, environment
from jitcount._ledger.files import FileError
from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile
    from jitcount._record.log import CompileLog


class LedgerOutput(Output):
    """Writes the ledger of a run."""

    _where: Environment | None = None

    def before_exit_handlers(self, log: CompileLog) -> None:
        """Read what JAX's backend is, which JAX's own exit handler takes down."""
        if log.compiles:  # else there may be no backend to look at
            with contextlib.suppress(Exception):
                self._where = environment()

    def save(self, compiles: Sequence[Compile]) -> None:
        """Write the ledger, with the program as its only case."""
        path = self._options.ledger
        assert path is not None  # noqa: S101 (else there is no such output)
        cases = {self._options.program[0]: CaseEntry(compiles=tuple(compiles))}
        try:
            write_ledger(path, Ledger(environment=self._where or environment(), cases=cases))
        except FileError:
            raise
        except Exception as error:  # noqa: BLE001 (JAX is half imported, or no backend starts)
            raise FileError(f"{path}: cannot be written: {one_line(error)}") from None
