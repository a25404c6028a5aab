"""``jitcount run SCRIPT`` runs a script as ``python SCRIPT`` would, and counts."""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount.explain.causes import Kind
from jitcount.explain.explaining import explained
from jitcount.explain.hub import hub
from jitcount.explain.summing import sentences
from jitcount.ledger import ledger
from jitcount.ledger.environment import environment
from jitcount.ledger.files import FileError, require_replaceable
from jitcount.ledger.ledger import CaseEntry, Ledger, write_ledger
from jitcount.recorder.record import record
from jitcount.show.log_table import log_table
from jitcount.show.target_table import target_tables
from jitcount.show.terminal import render, width
from jitcount.show.text import seconds
from jitcount.targets.host import prefer_cpu

if TYPE_CHECKING:
    import argparse

    from jitcount.observe.observation import Observation
    from jitcount.recorder.log import CompileLog


def main(asked: argparse.Namespace) -> int:
    """Refuse what cannot be run; else the exit code is the script's, or 1 past the limit."""
    if asked.ledger:
        try:
            require_replaceable(asked.ledger, ledger.KIND)
        except FileError as error:
            asked.parser.error(str(error))
    try:
        recorder = record(asked.target, progress=True)
    except (ValueError, ImportError) as error:
        asked.parser.error(str(error))
    if asked.target:
        prefer_cpu()
    return _run(asked, list(asked.script), recorder)


def _run(asked: argparse.Namespace, script: list[str], recorder: record) -> int:
    if asked.live:
        hub.listen(_show_live)
    code = 0
    try:
        with recorder as log:
            code = _as_python_would(script, is_module=asked.module)
            if code == -signal.SIGINT:
                raise KeyboardInterrupt  # noqa: TRY301 (then no compiler is waited for)
    except KeyboardInterrupt:  # in the script, or in that wait
        code = -signal.SIGINT
    _say_log(log, whole=asked.all)
    if asked.ledger:
        found = {script[0]: CaseEntry(compiles=tuple(log.compiles))}
        try:
            write_ledger(asked.ledger, Ledger(environment=environment(), cases=found))
        except FileError as error:
            _say(f"jitcount: {error}")
            code = code or 2
    if asked.max is not None and log.count() > asked.max:
        _say(f"jitcount: {log.count()} compiles, and --max allows {asked.max}")
        code = code or 1
    if code == -signal.SIGINT:  # the shell must see that it was Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _as_python_would(script: list[str], *, is_module: bool) -> int:
    """Run a script, or a module, with its arguments in this process; returns its exit code."""
    sys.argv = script
    sys.path[0] = str(Path.cwd()) if is_module else str(Path(script[0]).resolve().parent)
    try:
        if is_module:
            runpy.run_module(script[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script[0], run_name="__main__")
    except SystemExit as end:
        return _exit_code(end)
    except KeyboardInterrupt:
        _show_traceback()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001 (whatever it is, the user sees it as ever)
        _show_traceback()
        return 1
    return 0


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    _say(str(end.code))
    return 1


def _show_traceback() -> None:
    """Show the exception at hand without our own frames and those of `runpy`."""
    kind, error, traceback = sys.exc_info()
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    if kind is not None and error is not None:
        sys.excepthook(kind, error.with_traceback(traceback), traceback)


def _show_live(observation: Observation) -> None:
    compiled = explained(observation)
    why = [c for c in compiled.causes if c.kind != Kind.FIRST_CALL]
    if why and not compiled.from_disk:
        reasons = "; ".join(sentences(why))
        where = f"{compiled.call} at {compiled.call_site}"
        _say(f"jitcount: {where}, {seconds(compiled.total_s)}: {reasons}")


def summarise_at_exit() -> CompileLog:
    """Record from now on, and show the summary when the process ends: ``JITCOUNT=1``."""
    log = record().__enter__()
    atexit.register(_say_log, log)
    return log


def _say_log(log: CompileLog, *, whole: bool = False) -> None:
    parts = [*log_table(log.compiles, whole=whole), *target_tables(log.compiles)]
    _say(render(parts, width(sys.stderr)))


def _say(text: str) -> None:
    """Speak beside the script, whose own output may be read by another process."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
