"""The user's line in a stack full of other people's frames, and the library's line that asked."""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from jitcount._jax.origin import JAX_DIRECTORIES

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._jax.jaxprs import TracedFrame

# Our own frames between the user and JAX. The suite's cases stand for users.
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_CASES = f"{_PACKAGE}_suite{os.sep}"

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")

# The few lines that start an installed program, jitcount itself for one.
_SCRIPTS = sysconfig.get_path("scripts") + os.sep

# They wrap the functions of others, and what is called is what they wrap.
_CHECKERS = {"beartype", "jaxtyping", "typeguard"}

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


def sites_in(frame: FrameType | TracedFrame | None) -> Sites:
    """Name the innermost line of the user's, and the innermost one of a library inside of it.

    The user's is what is neither JAX's, nor the standard library's, nor installed. In a script
    that has only installed code (a console script), it is the innermost line outside of JAX.
    """
    library: FrameType | TracedFrame | None = None
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
    is_ours = filename.startswith(_PACKAGE) and not filename.startswith(_CASES)
    if is_ours or filename.startswith(JAX_DIRECTORIES):
        return "passed over"
    if package_of(filename) in _CHECKERS:
        return "passed over"
    if is_installed(filename) or os.path.normpath(absolute_path(filename)).startswith(_SCRIPTS):
        return "library"
    return "passed over" if filename.startswith(_STANDARD_LIBRARY) else "user"


def _describe(frame: FrameType | TracedFrame) -> CallSite:
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


# --- Files, as people read them and as tools find them --------------------------------------------

_IN_A_PACKAGE = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


def shown_path(filename: str) -> str:
    """A file relative to the working directory, or to where packages are; else its name alone.

    >>> shown_path("/no/such/place/train.py"), shown_path("<stdin>")
    ('train.py', '<stdin>')
    >>> shown_path("/usr/lib/python3/site-packages/flax/linen/linear.py")
    'flax/linen/linear.py'
    """
    if not os.path.isabs(filename):  # noqa: PTH117 (much faster than pathlib's)
        return filename
    return _relative(filename, working_directory())


def working_directory() -> str:
    """Where the process is; empty where that is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 (the same)
    except OSError:
        return ""


def is_installed(filename: str) -> bool:
    """Whether a file belongs to an installed package, and not to the user."""
    return _IN_A_PACKAGE.match(filename) is not None


def package_of(filename: str) -> str:
    """The installed package that a file belongs to; empty where it belongs to none.

    >>> package_of("/usr/lib/python3/site-packages/flax/linen/linear.py"), package_of("train.py")
    ('flax', '')
    """
    installed = _IN_A_PACKAGE.match(filename)
    within = filename[installed.end() :] if installed else ""
    return re.split(r"[/\\]", within, maxsplit=1)[0].removesuffix(".py")


def absolute_path(filename: str) -> str:
    """Where a file is; empty for what was typed or made on the spot, and is in no file.

    >>> absolute_path("/home/me/train.py"), absolute_path("<stdin>")
    ('/home/me/train.py', '')
    """
    if os.path.isabs(filename):  # noqa: PTH117 (the same)
        return filename
    try:
        return "" if filename.startswith("<") else os.path.abspath(filename)  # noqa: PTH100 (the same)
    except OSError:  # the same
        return ""


@functools.lru_cache(maxsize=4096)
def _relative(filename: str, directory: str) -> str:
    if installed := _IN_A_PACKAGE.match(filename):
        return filename[installed.end() :]
    path = Path(filename)
    is_below = bool(directory) and path.is_relative_to(directory)
    return str(path.relative_to(directory)) if is_below else path.name


# --- Places in the arguments, as users write them: params['dense']['kernel'] ----------------------


def argument_in(place: str) -> str:
    """The argument that a place is in.

    >>> argument_in("params['a'].b"), argument_in("x")
    ('params', 'x')
    """
    return re.split(r"[\[.]", place, maxsplit=1)[0]
