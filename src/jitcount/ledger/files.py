"""Small JSON files: written whole or not at all, refused with one clear line."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class FileError(Exception):
    """A file that cannot be used; its text is one line that says which, and why."""


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file in one step: whoever reads it, or kills us, finds the old one or the new one."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def read_json(path: Path, *, kind: str, schema: int) -> dict[str, Any]:
    """Read a file of ours; `kind` and `schema` tell it from other people's and from later ones."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # not JSON, or not UTF-8
        raise FileError(f"{path}: is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise FileError(f"{path}: is not a {kind}")
    if content.get("schema") != schema:
        found = content.get("schema")
        raise FileError(f"{path}: has schema {found!r}; this jitcount reads {schema}")
    return content
