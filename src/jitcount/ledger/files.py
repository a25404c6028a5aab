"""Files of ours: told from other people's, and read strictly."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from jitcount.observe.call_site import CallSite
from jitcount.observe.visible import encoding_of, spelled, visible

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

_LARGEST = 2**30
"""A compile takes about a kilobyte: no run makes a million of them."""


class FileError(Exception):
    """A file that cannot be used; its text is one line that says which, and why."""

    def __str__(self) -> str:
        return spelled(visible(super().__str__()), encoding_of(sys.stderr))


class _Site(msgspec.Struct, forbid_unknown_fields=True):
    """A call site in a file."""

    text: str
    file: str
    line: int
    function: str


def encode(content: object) -> bytes:
    """JSON of our types."""
    return _ENCODER.encode(content)


def decode(content: bytes, form: type[T]) -> T:
    """Our types, strictly, of JSON.

    Raises:
        msgspec.DecodeError: it is not JSON, or not of that form.
    """
    return msgspec.json.decode(content, type=form, dec_hook=_from_plain)


def _to_plain(value: Any) -> Any:
    if isinstance(value, CallSite):
        return _Site(str(value), value.file, value.line, value.function)
    raise NotImplementedError(f"{type(value).__name__} does not go into a file")


def _from_plain(form: type, value: Any) -> Any:
    if form is CallSite:
        site = msgspec.convert(value, _Site)
        return CallSite(site.text, site.file, site.line, site.function)
    raise NotImplementedError(f"{form.__name__} does not come from a file")


_ENCODER = msgspec.json.Encoder(enc_hook=_to_plain)


class _Header(msgspec.Struct):
    """What tells our files from other people's, and from those of another release."""

    kind: str = ""
    schema: int = 0


def read_whole(
    path: Path, form: type[T], *, kind: str, schema: int, oldest: int | None = None
) -> T:
    """Read a file of ours; `kind` and `schema` tell it from other people's and from later ones.

    Args:
        path: where it is.
        form: what is in it.
        kind: what it says that it is.
        schema: the newest that is read.
        oldest: the oldest that is; without it, no other.
    """
    content = _read(path, kind)
    header = _header(path, content, kind)
    if not (schema if oldest is None else oldest) <= header.schema <= schema:
        remedy = "a newer jitcount wrote it"
        if header.schema < schema:
            remedy = "an older jitcount wrote it: make it anew with this one"
        read = f"this jitcount reads {schema if oldest is None else f'{oldest} to {schema}'}"
        raise FileError(f"{path}: has schema {header.schema}; {read}; {remedy}")
    try:
        return decode(content, form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"{path}: is a {kind} that has been damaged: {_one_line(error)}") from None


def is_there(path: Path) -> bool:
    """Whether there is anything at a path."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # a name that is too long, a folder that is closed
        raise FileError(f"{path}: cannot be read: {why(error)}") from None


def require_kind(path: Path, kind: str) -> None:
    """Refuse what is not one of ours."""
    _header(path, _read(path, kind), kind)


def _read(path: Path, kind: str) -> bytes:
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise FileError(f"{path}: is a folder")
        if not stat.S_ISREG(found.st_mode):  # it could be waited for without end
            raise FileError(f"{path}: is a pipe or a device, not a file")
        if found.st_size > _LARGEST:
            size = f"{found.st_size / 2**30:.1f} GiB"
            raise FileError(f"{path}: is too large to be a {kind}: {size}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from None


def _header(path: Path, content: bytes, kind: str) -> _Header:
    try:
        header = msgspec.json.decode(content, type=_Header)
    except msgspec.ValidationError:
        header = _Header()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"{path}: is not JSON, or is cut short: {_one_line(error)}") from None
    if header.kind != kind:
        raise FileError(f"{path}: is not a {kind}")
    return header


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def why(error: Exception) -> str:
    """What the system said, without its number and the path, in one line."""
    return getattr(error, "strerror", None) or _one_line(error)
