"""The files that ``jitcount run`` writes; without JAX where the program has not imported it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jitcount._ledger.files import LedgerError, made_folder, write_whole
from jitcount._observe.call_site import shown_path
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jitcount._cli.run import Options
    from jitcount._explain.compile import Compile
    from jitcount._ledger.environment import Environment


class RunFiles(NamedTuple):
    """What has become of the files that a run was asked for."""

    lines: list[str]
    """What to say of those that are there."""

    problems: list[str]
    """Why others are not."""


def write_files(
    options: Options,
    compiles: Sequence[Compile],
    where: Environment | None,
    span: tuple[float, float],
) -> RunFiles:
    """Write the files that were asked for; one that cannot be written does not cost the other.

    Args:
        options: what was asked for.
        compiles: what the program compiled.
        where: the backend that it used; None where that is still to be read.
        span: when it began and ended.
    """
    files = RunFiles([], [])
    made = []
    if (ledger := options.ledger) is not None:
        try:
            if _write_ledger(options, compiles, where, span):
                made.append(ledger)
            if not options.compared:  # else it is shown at once
                shown = shown_path(str(ledger))
                what = f"jitcount compare OTHER {shown} says what differs from another run's"
                files.lines.append(f"all of it is in {shown}: {what}")
        except Exception as error:  # noqa: BLE001 (no backend starts, or JAX is half imported)
            files.problems.append(_why(ledger, error))
    if (trace := options.profile_trace) is not None:
        try:
            if _write_trace(trace, compiles):
                made.append(trace)
        except Exception as error:  # noqa: BLE001 (as above)
            files.problems.append(_why(trace, error))
    files.lines.extend(map(made_folder, made))
    return files


def _why(path: Path, error: Exception) -> str:
    is_known = isinstance(error, LedgerError)
    return str(error) if is_known else f"{path}: cannot be written: {one_line(error)}"


def _write_ledger(
    options: Options,
    compiles: Sequence[Compile],
    where: Environment | None,
    span: tuple[float, float],
) -> bool:
    from jitcount._ledger.environment import environment_so_far
    from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger

    assert options.ledger is not None  # noqa: S101 (the caller has looked)
    ledger = Ledger(
        environment=where or environment_so_far(),
        started_at=span[0],
        ended_at=span[1],
        cases={options.program[0]: CaseEntry(compiles=tuple(compiles))},
    )
    return write_ledger(options.ledger, ledger)


def _write_trace(path: Path, compiles: Sequence[Compile]) -> bool:
    from jitcount._show.chrome_trace import chrome_trace

    return write_whole(path, chrome_trace(compiles).encode(), is_private=True)
