"""What an exception says, in one line: where a program goes on, its traceback has no place."""

from __future__ import annotations


def one_line(error: BaseException) -> str:
    r"""Its kind and its text, whatever lines that has.

    >>> one_line(ValueError("no such\nthing"))
    'ValueError: no such thing'
    """
    return " ".join(f"{type(error).__name__}: {error}".split())
