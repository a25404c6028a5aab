"""Runs a program in this process as ``python`` would, from its start to its end.

The interpreter does five things for a program: it makes a module ``__main__``, runs the program in
it, shows the error that it raises, waits for threads that are not daemons, and calls the functions
that `atexit` knows. Then it takes everything apart, and the exit code can no longer change. So all
five are done here by hand, in that order: what comes after (the report, the exit code of ``--max``)
has seen all of the program, and runs in an interpreter that still works. Two of them have no
public name, `threading._shutdown` and `atexit._run_exitfuncs`; the interpreter and
`multiprocessing` call them by these names too. When the interpreter itself ends it does both
again, and finds nothing left to do.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import sys
import threading
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended."""

    code: int = 0
    """The exit code as it was given to `sys.exit`; the system keeps only some bits of it."""

    is_interrupt: bool = False
    """Whether it was ended by Ctrl-C, which the shell must see."""

    @property
    def is_good(self) -> bool:
        """Whether the shell will take the code for success; a number that is too large is none."""
        return not self.is_interrupt and self.code & 0xFF == 0 and abs(self.code) < 1 << 63


def _compiled(source: bytes, file: str) -> types.CodeType:
    return compile(source, file, "exec", dont_inherit=True)


def run(
    words: list[str],
    *,
    is_module: bool,
    compiled: Callable[[bytes, str], types.CodeType] = _compiled,
) -> Ending:
    """Run a script, or a module, with its arguments; its error is shown, and not raised.

    Args:
        words: the script's path, or the module's name, and its arguments.
        is_module: whether it is a module, as by ``python -m``.
        compiled: makes code of a script's source and its path.
    """
    try:
        if is_module:
            _run_module(words)
        else:
            _run_script(words, compiled)
    except BaseException as raised:  # noqa: BLE001 (whatever it is, the user sees it as under Python)
        error = raised
    else:
        return Ending()
    return _shown(error)  # out here: a hook that shows it finds no exception being handled


# --- The start ------------------------------------------------------------------------------------


def _new_main() -> dict[str, Any]:
    """Make a new ``__main__``, as it is before a program runs in it; returns its names."""
    main = types.ModuleType("__main__")
    names = vars(main)
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return names


def _begin_path(place: str, *, is_archive: bool = False) -> None:
    """Put the program's folder first in `sys.path`; with ``-P`` only that of an archive."""
    if not sys.flags.safe_path:
        sys.path[0] = place
    elif is_archive:
        sys.path.insert(0, place)


def _run_module(words: list[str]) -> None:
    _new_main()
    sys.argv = ["-m", *words[1:]]
    with contextlib.suppress(OSError):  # a folder that is gone
        _begin_path(os.getcwd())  # noqa: PTH109 (as Python does)
    _run_as_main(words[0])


# What the interpreter itself calls for ``-m``, for a folder and for an archive.
_run_as_main: Callable[..., object] = vars(runpy)["_run_module_as_main"]


def _run_script(words: list[str], compiled: Callable[[bytes, str], types.CodeType]) -> None:
    sys.argv = words
    file = os.path.join(os.getcwd(), words[0])  # noqa: PTH109, PTH118 (nothing is resolved)
    if pkgutil.get_importer(file) is not None:  # a folder or an archive, with a `__main__.py`
        _new_main()
        _begin_path(file, is_archive=True)
        _run_as_main("__main__", alter_argv=False)
        return
    _begin_path(os.path.dirname(os.path.realpath(file)))  # noqa: PTH120
    names = _new_main()
    with io.open_code(file) as source:
        text = source.read()  # once: it may be a pipe
    code = pkgutil.read_code(io.BytesIO(text))  # of a .pyc
    kind = importlib.machinery.SourcelessFileLoader
    if code is None:
        kind = importlib.machinery.SourceFileLoader  # type: ignore[assignment]
        code = compiled(text, file)
    names |= {"__loader__": kind("__main__", file), "__file__": file, "__cached__": None}
    try:
        exec(code, names)  # noqa: S102
    except SystemExit:
        raise
    except BaseException:
        _forget_file(names)
        raise
    _forget_file(names)


def _forget_file(names: dict[str, Any]) -> None:
    """Remove the names that Python removes before threads end, except after `sys.exit`."""
    names.pop("__file__", None)
    names.pop("__cached__", None)


# --- What came out --------------------------------------------------------------------------------


def _shown(error: BaseException) -> Ending:
    """Show the exception that a program ended with, as Python does."""
    if isinstance(error, SystemExit):
        return _ending_of(error)
    _without_us(error)
    kind, traceback = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    ending = Ending(1, is_interrupt=kind is KeyboardInterrupt)
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        _write("sys.excepthook is missing\n")
        sys.__excepthook__(kind, error, traceback)
        return ending
    try:
        hook(kind, error, traceback)
    except SystemExit as end:
        return _ending_of(end)
    except BaseException as raised:  # noqa: BLE001 (whatever a hook raises)
        wrong = _without_us(raised)
    else:
        return ending
    _write("Error in sys.excepthook:\n")
    sys.__excepthook__(type(wrong), wrong, wrong.__traceback__)
    _write("\nOriginal exception was:\n")
    sys.__excepthook__(kind, error, traceback)
    return ending


def _without_us(error: BaseException) -> BaseException:
    """Take our own frames off an error's traceback."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return error.with_traceback(traceback)


def _ending_of(end: SystemExit) -> Ending:
    try:
        code: object = end.code
    except Exception:  # noqa: BLE001 (a class of the user's)
        code = end
    if code is None:
        return Ending(0)
    if isinstance(code, int):
        return Ending(code)
    try:
        text = str(code)
    except Exception:  # noqa: BLE001 (the same)
        text = ""
    _write(f"{text}\n")
    return Ending(1)


def _write(text: str) -> None:
    """Write to stderr as Python itself does, also where `sys.stderr` is None."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:  # noqa: BLE001 (None, closed, or of the user's own making)
        if sys.stderr is None:
            with contextlib.suppress(OSError):
                os.write(2, text.encode(errors="backslashreplace"))


# --- The end --------------------------------------------------------------------------------------


def wait_for_threads() -> None:
    """Wait for all threads that are not daemons, as the interpreter does when a program ends."""
    try:
        vars(threading)["_shutdown"]()
    except BaseException as error:  # noqa: BLE001 (Ctrl-C, most likely; the interpreter goes on)
        _write(f"Exception ignored in: {threading!r}\n")
        _without_us(error)
        sys.__excepthook__(type(error), error, error.__traceback__)


def run_exit_handlers() -> None:
    """Call what the program has registered with `atexit`, the last one first."""
    vars(atexit)["_run_exitfuncs"]()


def leave(ending: Ending) -> int:
    """Return the exit code; after Ctrl-C, raise that, so that the interpreter ends with it."""
    if ending.is_interrupt:
        raise KeyboardInterrupt  # the command shows it no second time
    return ending.code
