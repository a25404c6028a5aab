"""Counts a script from its import of JAX on, and tells of it beside the script's own output."""

from __future__ import annotations

import atexit
import functools
import sys
from typing import TYPE_CHECKING

from jitcount.explain.causes import Kind
from jitcount.explain.explaining import explained
from jitcount.explain.hub import hub
from jitcount.explain.summing import sentences
from jitcount.ledger.environment import environment
from jitcount.ledger.files import FileError
from jitcount.ledger.ledger import CaseEntry, Ledger, write_ledger
from jitcount.recorder.log import CompileLog
from jitcount.recorder.record import record
from jitcount.show.log_table import log_table
from jitcount.show.parts import Note
from jitcount.show.target_table import target_tables
from jitcount.show.terminal import render
from jitcount.show.text import seconds

if TYPE_CHECKING:
    import argparse
    import contextlib

    from jitcount.observe.observation import Observation


def count(asked: argparse.Namespace, counting: contextlib.ExitStack) -> CompileLog:
    """Record from now on, until `counting` ends."""
    if asked.live:
        hub.listen(functools.partial(_show_live, redact=asked.redact))
    return counting.enter_context(record(asked.target, progress=True, redact=asked.redact))


def tell(asked: argparse.Namespace, logs: list[CompileLog], code: int) -> int:
    """Keep what was found, show it, and hold it to the limit; gives the exit code.

    The file comes first: whatever becomes of what is shown, it is there.
    """
    log = logs[0] if logs else CompileLog()
    refused = _keep(asked, log) if asked.ledger else ""
    _say_log(log, whole=asked.all)
    if refused:
        _say(f"jitcount: {refused}")
        code = code or 2
    if asked.max is not None and log.count() > asked.max:
        _say(f"jitcount: {log.count()} compiles, and --max allows {asked.max}")
        code = code or 1
    return code


def _keep(asked: argparse.Namespace, log: CompileLog) -> str:
    """Write the ledger; says why that cannot be, if it cannot."""
    found = {asked.script[0]: CaseEntry(compiles=tuple(log.compiles))}
    try:
        write_ledger(asked.ledger, Ledger(environment=environment(), cases=found))
    except FileError as error:
        return str(error)
    return ""


def _show_live(observation: Observation, *, redact: bool) -> None:
    compiled = explained(observation, redact=redact)
    why = [c for c in compiled.causes if c.kind != Kind.FIRST_CALL]
    if why and not compiled.from_disk:
        reasons = "; ".join(sentences(why))
        where = f"{compiled.call} at {compiled.call_site}"
        line = f"jitcount: {where}, {seconds(compiled.total_s)}: {reasons}"
        _say(render([Note(line)], stream=sys.stderr))


def summarise_at_exit() -> CompileLog:
    """Record from now on, and show the summary when the process ends: ``JITCOUNT=1``."""
    log = record().__enter__()
    atexit.register(_say_log, log)
    return log


def _say_log(log: CompileLog, *, whole: bool = False) -> None:
    parts = [*log_table(log.compiles, whole=whole), *target_tables(log.compiles)]
    _say(render(parts, stream=sys.stderr))


def _say(text: str) -> None:
    """Speak beside the script, whose own output may be read by another one."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
