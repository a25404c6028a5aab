r"""Texts of others, made fit to be shown: as one line, and in letters that the stream has.

A name, a path or a ledger may hold anything: a line break, an escape sequence that moves the
cursor, a mark that turns the direction of writing. All of these are shown as Python writes them:
``\n``, ``\x1b``, ``\u202e``.
"""

from __future__ import annotations

import sys
import unicodedata

# Our own signs, for streams that lack them.
_IN_ASCII = {
    "─": "-",
    "━": "-",
    "→": "->",
    "×": "x",
    "…": "...",
    "–": "-",
    "−": "-",
    "µ": "u",
    "≈": "~",
    "✗": "!",
    "·": "*",
}


def visible(text: str) -> str:
    r"""A text as one line that forges no other and moves no cursor.

    >>> print(visible("a\x1b[2Jb\nc"))
    a\x1b[2Jb\nc
    >>> visible("größe 大 e\u0301") == "größe 大 e\u0301"
    True
    """
    if text.isprintable():
        return str(text)
    return "".join(c if _is_plain(c) else _escaped(c) for c in text)


def _is_plain(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def encoding_of(stream: object) -> str:
    """What a stream can take; all letters, where it does not say."""
    encoding = getattr(stream, "encoding", None)
    return encoding if isinstance(encoding, str) else "utf-8"


def spelled(text: str, encoding: str | None = None) -> str:
    r"""A text in letters that `encoding` (stdout's) has: our own signs in ASCII, others as escapes.

    >>> spelled("größer → 大 …", "latin-1")
    'größer -> \\u5927 ...'
    """
    if text.isascii():
        return text
    encoding = encoding or encoding_of(sys.stdout)
    lacking = {c for c in set(text) if not c.isascii() and not _has(encoding, c)}
    return text.translate({ord(c): _IN_ASCII.get(c) or _escaped(c) for c in lacking})


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except (LookupError, UnicodeError):  # LookupError: there is no such encoding
        return False
    return True


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
