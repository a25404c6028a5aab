"""Files as people read them, and as tools find them."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

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
