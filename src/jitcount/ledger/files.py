"""Files of ours: written whole or not at all, and read strictly."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


class FileError(Exception):
    """A file that cannot be used; its text is one line that says which, and why."""


class _Header(msgspec.Struct):
    """What tells our files from other people's, and from those of another release."""

    kind: str = ""
    schema: int = 0


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever reads it, or kills us, finds the old one or the new one."""
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
        remedy = "; a newer jitcount wrote it" if header.schema > schema else ""
        raise FileError(f"{path}: has schema {header.schema}; this jitcount reads {schema}{remedy}")
    try:
        return msgspec.json.decode(content, type=form)
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
