"""Files of ours are written whole or not at all, through links, and by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from typing import TYPE_CHECKING

from jitcount.ledger.files import FileError, require_kind, why

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
