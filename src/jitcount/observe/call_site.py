"""The user's line in a stack full of other people's frames."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._jax.origin import JAX_DIRECTORIES
from jitcount.observe.observation import UNKNOWN
from jitcount.observe.paths import shown_path

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE = Path(__file__).parents[1]

# Our own frames between the user and JAX. The suite is not among them: its programs are users.
_OURS = tuple(str(_PACKAGE / name) for name in ("observe", "explain", "recorder", "problem.py"))

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def call_site(frame: FrameType | None) -> str:
    """Name the innermost line of the user's: ``"train.py:42 in main"``.

    The user's is what is neither JAX's, nor the standard library's, nor installed. In a program
    that has only installed code (a console script), it is the innermost line outside of JAX.
    """
    library: FrameType | None = None
    while frame is not None:
        owner = _owner(frame.f_code.co_filename)
        if owner == "user":
            return _describe(frame)
        if owner == "library" and library is None:
            library = frame
        frame = frame.f_back
    return UNKNOWN if library is None else _describe(library)


@functools.lru_cache(maxsize=4096)
def _owner(filename: str) -> str:
    """Whose code a file is: ``"user"``, ``"library"`` or ``"passed over"``."""
    if filename.startswith("<"):
        # An interpreter's prompt and exec'd text are the user's; <frozen ...> and generated
        # wrappers are not.
        return "user" if filename.startswith(("<stdin>", "<string>", "<ipython")) else "passed over"
    if filename.startswith((*JAX_DIRECTORIES, *_OURS)):
        return "passed over"
    if "site-packages" in filename or "dist-packages" in filename:
        return "library"
    return "passed over" if filename.startswith(_STANDARD_LIBRARY) else "user"


def _describe(frame: FrameType) -> str:
    function = frame.f_code.co_qualname.replace("<locals>.", "")
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno} in {function}"
