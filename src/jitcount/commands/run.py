"""``jitcount run SCRIPT`` runs a script as ``python SCRIPT`` would, and counts.

What the script sets before it imports JAX must hold: JAX is not imported here, and counting, which
needs it, begins when the script itself has imported it.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._after_jax import after_import_of_jax
from jitcount.ledger import ledger
from jitcount.ledger.files import FileError
from jitcount.ledger.writing import require_replaceable
from jitcount.targets.host import prefer_cpu
from jitcount.targets.installed import require_installed
from jitcount.targets.names import parse

if TYPE_CHECKING:
    import argparse

    from jitcount.recorder.log import CompileLog


def main(asked: argparse.Namespace) -> int:
    """Refuse what cannot be run; else the exit code is the script's, or 1 past the limit."""
    try:
        if asked.ledger:
            asked.ledger = asked.ledger.absolute()  # wherever the script goes from here
            require_replaceable(asked.ledger, ledger.KIND)
        for target in asked.target:
            require_installed(parse(target))
    except (FileError, ValueError, ImportError) as error:  # of a file, or of a target
        asked.parser.error(str(error))
    if asked.target:
        prefer_cpu()
    return _run(asked, list(asked.script))


def _run(asked: argparse.Namespace, script: list[str]) -> int:
    logs: list[CompileLog] = []
    code = 0
    try:
        with contextlib.ExitStack() as counting:
            after_import_of_jax(lambda: logs.append(_count(asked, counting)))
            code = _as_python_would(script, is_module=asked.module)
            if code == -signal.SIGINT:
                raise KeyboardInterrupt  # noqa: TRY301 (then no compiler is waited for)
    except KeyboardInterrupt:  # in the script, or in that wait
        code = -signal.SIGINT
    code = _tell(asked, logs, code)
    if code == -signal.SIGINT:  # the shell must see that it was Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _count(asked: argparse.Namespace, counting: contextlib.ExitStack) -> CompileLog:
    from jitcount.commands.counting import count  # noqa: PLC0415 (it needs JAX)

    return count(asked, counting)


def _tell(asked: argparse.Namespace, logs: list[CompileLog], code: int) -> int:
    if not logs and not asked.ledger:  # a script without JAX needs none to hear so
        print("nothing was compiled", file=sys.stderr, flush=True)  # noqa: T201
        return code
    from jitcount.commands.counting import tell  # noqa: PLC0415 (the same)

    return tell(asked, logs, code)


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
    print(end.code, file=sys.stderr, flush=True)  # noqa: T201 (as Python does)
    return 1


def _show_traceback() -> None:
    """Show the exception at hand without our own frames and those of `runpy`."""
    kind, error, traceback = sys.exc_info()
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    if kind is not None and error is not None:
        sys.excepthook(kind, error.with_traceback(traceback), traceback)
