"""Files of ours: told from other people's, and read strictly."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from jitcount._observe.call_site import CallSite
from jitcount._text import encode_safely, encoding_of, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T = TypeVar("T")

_LARGEST = 2**30
"""A compile takes about a kilobyte: no run makes a million of them."""


class FileError(Exception):
    """A file that cannot be used; its text is one line that says which, and why."""

    def __str__(self) -> str:
        return encode_safely(escape_control_chars(super().__str__()), encoding_of(sys.stderr))


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


def exists(path: Path) -> bool:
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


# --- The kinds of our files; alone, so that they can be told apart without loading what is in t


LEDGER: Final = "jitcount ledger"
BUDGET: Final = "jitcount budget"
TRACE: Final = "jitcount trace"


# --- Files of ours are written whole or not at all, through links, and by one process at a time ---


_PATIENCE_S = 30.0
"""A file is merged in milliseconds: who waits longer waits for a process that was stopped."""


def write_whole(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file in one step: readers find the old one or the new one, whatever happens.

    A link stays, and what it leads to is written. A file that is there keeps its mode and, as far
    as that is allowed, its owner.

    Args:
        path: where to; its folder is made if it is not there.
        content: all of it.
        is_private: a new file is its owner's alone; else the umask decides.
    """
    try:
        target = target_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, 0o600 if is_private else 0o666)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be written: {why(error)}") from None


def require_replaceable(path: Path, kind: str) -> None:
    """Refuse what cannot be written, or is not one of ours; better asked before a long run."""
    try:
        target = target_of(path)
        _require_writable(target)
        is_there = target.exists()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be written: {why(error)}") from None
    if is_there:
        try:
            require_kind(path, kind)
        except FileError as error:
            raise FileError(f"{error}; it is left as it is") from None


def _require_writable(target: Path) -> None:
    """See that a file can be made in the folder where it will be, or that this can be made."""
    folder = next(parent for parent in target.absolute().parents if parent.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"nothing may be written to {folder}")
    if target.exists() and not os.access(target, os.W_OK):  # it could be replaced all the same
        raise PermissionError(errno.EACCES, "it is write-protected")


def target_of(path: Path) -> Path:
    """The file that a path leads to, whether it is there or not.

    Raises:
        OSError: it leads round in a circle, or to what is no file.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return path.resolve() if path.is_symlink() else path


def _replace(target: Path, content: bytes, mode: int) -> None:
    """Write beside the file, then put that in its place."""
    # The name is not long, whatever the file's is, and nobody can have planted a link there.
    unfinished = target.with_name(f".jitcount-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(unfinished, flags, mode), "wb") as file:  # noqa: PTH123
            _keep_owner_and_mode(file.fileno(), target)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _keep_owner_and_mode(unfinished: int, target: Path) -> None:
    if sys.platform == "win32":  # there they come with the folder
        return
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    for owner in (old.st_uid, old.st_gid), (-1, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(unfinished, *owner)
            break
    os.fchmod(unfinished, stat.S_IMODE(old.st_mode) & 0o777)


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold off others that read a file, change it and write it: none loses what another has added.

    The lock leaves nothing behind, and ends with its process, however that ends. Where a file
    system has no locks, it is done without.
    """
    try:
        target = target_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = _opened_for_lock(target)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be written: {why(error)}") from None
    try:
        _lock(path, handle)
        yield
    finally:
        os.close(handle)  # and with it the lock


def _lock(path: Path, handle: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _try_lock(handle)
        except (BlockingIOError, PermissionError):  # another has it: on POSIX, on Windows
            if time.monotonic() > end:
                waited = f"and was so for {_PATIENCE_S:g} s"
                raise FileError(f"{path}: is in use by another process, {waited}") from None
            time.sleep(0.02)
        except OSError:  # some network file systems have no locks
            return
        else:
            return


if sys.platform == "win32":
    import msvcrt

    def _opened_for_lock(target: Path) -> int:
        """A file beside it, which is gone when the last one has closed it."""
        beside = target.with_name(f".{target.name}.lock")
        return os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TEMPORARY)

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _opened_for_lock(target: Path) -> int:
        """Its folder, since the file itself is replaced."""
        return os.open(target.parent, os.O_RDONLY)

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
