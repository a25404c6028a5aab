"""The files that jitcount writes: known from other people's, read strictly, written whole.

A file begins with its kind and its schema, so that another program's file, a later release's and
one that was damaged are each refused in a line that says so. Files are written whole or not at all,
through links, and merged by one process at a time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from jitcount._stored import from_plain, to_plain
from jitcount._text import encode_safely, encoding_of, escape_control_chars, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

# The kinds of file. They are here so that a file can be told without loading what is in it.
LEDGER: Final = "jitcount ledger"
BUDGET: Final = "jitcount budget"
TRACE: Final = "jitcount trace"
REFERENCES: Final = "jitcount reference file"

_LARGEST = 2**30
"""A compile takes about a kilobyte: no run makes a million of them."""


class LedgerError(Exception):
    """A ledger or budget that cannot be read or written; its text is one line: which, and why.

    >>> import jitcount
    >>> try:
    ...     jitcount.load("no/such/run.json")
    ... except jitcount.LedgerError as error:
    ...     print(error)
    no/such/run.json: cannot be read: No such file or directory
    """

    def __str__(self) -> str:
        return encode_safely(escape_control_chars(super().__str__()), encoding_of(sys.stderr))


# --- Reading --------------------------------------------------------------------------------------


def encode(content: object) -> bytes:
    """The JSON of a value of ours."""
    return msgspec.json.encode(content, enc_hook=to_plain)


def decode(content: bytes, form: type[T]) -> T:
    """A value of a type of ours, read strictly from JSON.

    Raises:
        msgspec.DecodeError: it is not JSON, or not of that type.
    """
    return msgspec.json.decode(content, type=form, dec_hook=from_plain)


class _Header(msgspec.Struct):
    """What tells our files from other people's, and from those of another release."""

    kind: str = ""
    schema: int = 0


def read_whole(
    path: Path, form: type[T], *, kind: str, schema: int, oldest: int | None = None
) -> T:
    """Read a file that jitcount wrote.

    Args:
        path: where the file is.
        form: the type of what is in it.
        kind: what the file must say that it is.
        schema: the newest schema that is read.
        oldest: the oldest schema that is read; without it, only `schema` is.

    Raises:
        LedgerError: it cannot be read, or is no such file.
    """
    content = _read(path, kind)
    header = _header(path, content, kind)
    if not (schema if oldest is None else oldest) <= header.schema <= schema:
        remedy = "a newer jitcount wrote it"
        if header.schema < schema:
            remedy = "an older jitcount wrote it: make it anew with this one"
        read = f"this jitcount reads {schema if oldest is None else f'{oldest} to {schema}'}"
        raise LedgerError(f"{path}: has schema {header.schema}; {read}; {remedy}")
    try:
        return decode(content, form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(
            f"{path}: is a {kind} that has been damaged: {one_line(str(error))}"
        ) from None


def exists(path: Path) -> bool:
    """Whether anything is at a path."""
    with _refusing(path, "read"):  # a name that is too long, a folder that is closed
        return path.exists()


def require_kind(path: Path, kind: str) -> None:
    """Raise `LedgerError` unless a file is one of jitcount's, of this kind."""
    _header(path, _read(path, kind), kind)


def _read(path: Path, kind: str) -> bytes:
    with _refusing(path, "read"):
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise LedgerError(f"{path}: is a folder")
        if not stat.S_ISREG(found.st_mode):  # it could be waited for without end
            raise LedgerError(f"{path}: is a pipe or a device, not a file")
        if found.st_size > _LARGEST:
            size = f"{found.st_size / 2**30:.1f} GiB"
            raise LedgerError(f"{path}: is too large to be a {kind}: {size}")
        return path.read_bytes()


def _header(path: Path, content: bytes, kind: str) -> _Header:
    try:
        header = msgspec.json.decode(content, type=_Header)
    except msgspec.ValidationError:
        header = _Header()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(f"{path}: is not JSON, or is cut short: {one_line(str(error))}") from None
    if header.kind != kind:
        raise LedgerError(f"{path}: is not a {kind}")
    return header


@contextlib.contextmanager
def _refusing(path: Path, done: str) -> Iterator[None]:
    """Raise what the system says of a file as a `LedgerError`: in one line, without its number."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or one_line(str(error))
        raise LedgerError(f"{path}: cannot be {done}: {why}") from None


# --- Writing --------------------------------------------------------------------------------------


def write_whole(path: Path, content: bytes, *, is_private: bool = False) -> bool:
    """Write a file in one step: readers find the old one or the new one, whatever happens.

    A link stays, and the file that it leads to is written. A file that exists keeps its mode and,
    as far as that is allowed, its owner.

    Args:
        path: where to write; missing folders are made.
        content: all that the file will hold.
        is_private: a new file can be read by its owner alone; else the umask decides.

    Returns:
        Whether its folder was made for it, which `made_folder` says in words.

    Raises:
        LedgerError: it cannot be written.
    """
    with _refusing(path, "written"):
        target = target_of(path)
        is_new = not target.parent.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, 0o600 if is_private else 0o666)
    return is_new


def made_folder(path: Path) -> str:
    """Say that a file's folder was made for it: a typing error would have passed unnoticed."""
    folder = target_of(path).parent
    with contextlib.suppress(OSError, ValueError):  # it is elsewhere
        folder = folder.relative_to(Path.cwd())
    return escape_control_chars(f"the folder {folder} was not there: it was made for {path.name}")


def require_replaceable(path: Path, kind: str) -> None:
    """Raise `LedgerError` for a path that cannot be written, or that holds another kind of file.

    Called before a long run, so that it does not end in vain.
    """
    with _refusing(path, "written"):
        target = target_of(path)
        _require_writable(target)
        is_replaced = target.exists()
    if is_replaced:
        try:
            require_kind(path, kind)
        except LedgerError as error:
            raise LedgerError(f"{error}; it is left as it is") from None


def _require_writable(target: Path) -> None:
    """Raise `PermissionError` unless a file can be made, or replaced, in its folder."""
    folder = next(parent for parent in target.absolute().parents if parent.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"nothing may be written to {folder}")
    if target.exists() and not os.access(target, os.W_OK):  # it could be replaced all the same
        raise PermissionError(errno.EACCES, "it is write-protected")


def target_of(path: Path) -> Path:
    """The file that a path leads to, whether it exists or not.

    Raises:
        OSError: the path leads round in a circle, or to something that is not a file.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return path.resolve() if path.is_symlink() else path


def _replace(target: Path, content: bytes, mode: int) -> None:
    """Write a new file beside the old one, then put it in its place."""
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
    if sys.platform == "win32":  # Windows takes them from the folder
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


# --- One process at a time ------------------------------------------------------------------------

_PATIENCE_S = 30.0
"""A file is merged in milliseconds: a longer wait is for a process that was stopped."""


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Let no other process read, change and write a file meanwhile: no addition is lost.

    The lock leaves nothing behind, and ends with its process, however that ends. On a file system
    without locks nothing is locked.
    """
    with _refusing(path, "written"):
        target = target_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = _opened_for_lock(target)
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
                raise LedgerError(f"{path}: is in use by another process, {waited}") from None
            time.sleep(0.02)
        except OSError:  # some network file systems have no locks
            return
        else:
            return


if sys.platform == "win32":
    import msvcrt

    def _opened_for_lock(target: Path) -> int:
        """Open a file beside the target, which is gone once all processes have closed it."""
        beside = target.with_name(f".{target.name}.lock")
        return os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TEMPORARY)

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _opened_for_lock(target: Path) -> int:
        """Open the target's folder, since the file itself is replaced."""
        return os.open(target.parent, os.O_RDONLY)

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
