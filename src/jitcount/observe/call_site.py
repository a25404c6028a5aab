"""The user's line in a stack full of other people's frames, and the library's line that asked."""

from __future__ import annotations

import functools
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount.observe.paths import absolute_path, is_installed, shown_path, working_directory

if TYPE_CHECKING:
    from types import CodeType

_PACKAGE = Path(__file__).parents[1]

# Our own frames between the user and JAX. The suite is not among them: its cases stand for users.
_OURS = tuple(
    str(_PACKAGE / name)
    for name in (
        "_jax",
        "observe",
        "profile",
        "explain",
        "recorder",
        "targets",
        "emulate",
        "problem.py",
    )
)

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")

# What people type: into Python's prompt (another name since 3.13), IPython's, or a command line.
_TYPED = ("<stdin>", "<python-input", "<string>", "<ipython", "<doctest")


class CallSite(str):
    """A line of source, as people read it; its parts are there for tools.

    >>> site = CallSite("train.py:42 in main", file="/home/me/train.py", line=42, function="main")
    >>> print(site, site.file, site.line, site.function)
    train.py:42 in main /home/me/train.py 42 main
    """

    __slots__ = ("file", "function", "line")

    file: str
    """Where the file is, absolute; empty where there is none."""

    line: int
    function: str

    def __new__(cls, text: str, file: str = "", line: int = 0, function: str = "") -> Self:
        """A line with its parts."""
        self = super().__new__(cls, text)
        self.file, self.line, self.function = file, line, function
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.file, self.line, self.function


NOWHERE = CallSite("")
UNKNOWN_SITE = CallSite("unknown")


class Sites(NamedTuple):
    """Where a compile comes from."""

    user: CallSite = UNKNOWN_SITE
    via: CallSite = NOWHERE
    """The library's line that asked for it, where the user's line called a library."""


UNKNOWN_SITES = Sites()


class Frame(Protocol):
    """A frame of a stack: Python's own, or one that JAX has kept of a trace."""

    @property
    def f_code(self) -> CodeType: ...  # noqa: D102
    @property
    def f_lineno(self) -> int: ...  # noqa: D102
    @property
    def f_back(self) -> Self | None: ...  # noqa: D102


def sites_in(frame: Frame | None) -> Sites:
    """Name the innermost line of the user's, and the innermost one of a library inside of it.

    The user's is what is neither JAX's, nor the standard library's, nor installed. In a script
    that has only installed code (a console script), it is the innermost line outside of JAX.
    """
    library: Frame | None = None
    while frame is not None:
        owner = owner_of(frame.f_code.co_filename)
        if owner == "user":
            via = NOWHERE if library is None else _describe(library)
            return Sites(_describe(frame), via)
        if owner == "library" and library is None:
            library = frame
        frame = frame.f_back
    return UNKNOWN_SITES if library is None else Sites(_describe(library))


@functools.lru_cache(maxsize=4096)
def owner_of(filename: str) -> str:
    """Whose code a file is: ``"user"``, ``"library"`` or ``"passed over"``."""
    if filename.startswith("<"):
        # An interpreter's prompt and exec'd text are the user's; <frozen ...> and generated
        # wrappers are not.
        return "user" if filename.startswith(_TYPED) else "passed over"
    if filename.startswith((*JAX_DIRECTORIES, *_OURS)):
        return "passed over"
    if is_installed(filename):
        return "library"
    return "passed over" if filename.startswith(_STANDARD_LIBRARY) else "user"


def _describe(frame: Frame) -> CallSite:
    code = frame.f_code
    return site_at(code.co_filename, frame.f_lineno, code.co_qualname)


def site_at(filename: str, line: int, qualified_name: str) -> CallSite:
    """Name a line of source."""
    if (cell := cell_of(filename)) is None:
        return _site_in_file(filename, line, qualified_name, working_directory())
    function = qualified_name.replace("<locals>.", "")
    where = f"In [{cell}], line {line}"
    text = where if function == "<module>" else f"{where} in {function}"
    return CallSite(text, absolute_path(filename), line, function)


@functools.lru_cache(maxsize=4096)
def _site_in_file(filename: str, line: int, qualified_name: str, _directory: str) -> CallSite:
    """The same line compiles again and again; as people read it, it depends on the directory."""
    function = qualified_name.replace("<locals>.", "")
    text = f"{shown_path(filename)}:{line} in {function}"
    return CallSite(text, absolute_path(filename), line, function)


def cell_of(filename: str) -> int | None:
    """The number of the notebook's cell that a file stands for; None for other files.

    IPython compiles each cell under a name of its own, and remembers which is which.
    """
    if "ipykernel_" not in filename and not filename.startswith("<ipython"):
        return None
    try:
        shell = sys.modules["IPython"].get_ipython()
        return int(shell.compile._filename_map[filename])  # noqa: SLF001 (nothing public tells)
    except Exception:  # noqa: BLE001 (no notebook, or another IPython)
        return None
