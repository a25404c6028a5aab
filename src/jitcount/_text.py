r"""Other people's texts, made safe to print: in one line, and in letters that the stream has.

A name, a path or a ledger may hold anything: a line break, an escape sequence that moves the
cursor, a mark that turns the direction of writing. All of these are shown as Python writes them:
``\n``, ``\x1b``, ``\u202e``. Errors in one line, and "did you mean", are here too.
"""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def escape_control_chars(text: str) -> str:
    r"""Return a text as one line that forges no other and moves no cursor.

    >>> print(escape_control_chars("a\x1b[2Jb\nc"))
    a\x1b[2Jb\nc
    >>> escape_control_chars("größe 大 e\u0301") == "größe 大 e\u0301"
    True
    """
    if text.isprintable():
        return str(text)
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else _escaped(c) for c in text
    )


def encoding_of(stream: object) -> str:
    """Return the encoding of a stream; UTF-8 if it has none."""
    encoding = getattr(stream, "encoding", None)
    return encoding if isinstance(encoding, str) else "utf-8"


def encode_safely(text: str, encoding: str | None = None) -> str:
    r"""Replace what `encoding` (stdout's) lacks: our own signs by ASCII, others by escapes.

    >>> encode_safely("größer → 大 …", "latin-1")
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


def one_line(error: BaseException | str) -> str:
    r"""Return an exception's class and text in one line, or a text without its line breaks.

    >>> one_line(ValueError("no such\nthing")), one_line("no such\nthing")
    ('ValueError: no such thing', 'no such thing')
    """
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the names nearest to a mistyped one; empty if none is near.

    >>> did_you_mean("sum-1O", ["sum-10", "matmul", "sum-100"])
    'did you mean sum-10 or sum-100?'
    >>> did_you_mean("nothing", ["sum-10"])
    ''
    """
    import difflib  # noqa: PLC0415 (only for those who mistype)

    by_folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    *others, last = [by_folded[each] for each in near] or [""]
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if last else ""
