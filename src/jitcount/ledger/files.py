"""Files of ours: written whole or not at all, and read strictly."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from jitcount.observe.call_site import CallSite
from jitcount.observe.visible import encoding_of, spelled, visible

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: readers find the old one or the new one, whatever happens."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(f"{path}: cannot be written: {error.strerror}") from None
        raise


def read_whole(path: Path, form: type[T], *, kind: str, schema: int) -> T:
    """Read a file of ours; `kind` and `schema` tell it from other people's and from later ones."""
    content = _read(path)
    header = _header(path, content, kind)
    if header.schema != schema:
        remedy = "a newer jitcount wrote it"
        if header.schema < schema:
            remedy = "an older jitcount wrote it: make it anew with this one"
        read = f"this jitcount reads {schema}"
        raise FileError(f"{path}: has schema {header.schema}; {read}; {remedy}")
    try:
        return decode(content, form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"{path}: is a {kind} that has been damaged: {_one_line(error)}") from None


def require_replaceable(path: Path, kind: str) -> None:
    """Refuse to write over a file that is not one of ours; better asked before a long run."""
    if path.is_dir():
        raise FileError(f"{path}: is a folder")
    if not path.exists():
        return
    try:
        _header(path, _read(path), kind)
    except FileError as error:
        raise FileError(f"{error}; it is left as it is") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


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
