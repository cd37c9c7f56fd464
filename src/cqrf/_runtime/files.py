"""Atomic writing of files.

A file is written beside its target, as ``.NAME.########.part``, and renamed once it is complete.
The process that writes a part holds a lock on it, so that a part without a lock is left over from a
process that was killed: the next one that writes the same file removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: there an open file cannot be removed, which serves as well
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

# Errors of a disk, which do not name the file that is written.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that replaces ``path`` once it is complete and on disk.

    Until then an error, a full disk or a kill leaves the old file unchanged. A link keeps its
    target, and a file that is replaced keeps its permissions. A terminal, a pipe or another
    character device is written to, not replaced.
    """
    target = find_target(path)
    with naming_disk_errors(target):
        if is_stream(target):
            with target.open("wb") as stream:
                yield stream
            return
        remove_leftovers(target)
        part, opened = open_part(target)
        try:
            with opened as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                part.chmod(target.stat().st_mode & 0o777)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not every system can open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def find_target(path: str | os.PathLike[str]) -> Path:
    """The file to write, behind all links; an OSError if it cannot be written."""
    given = Path(path)
    try:
        target = given.resolve()
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, RuntimeError) as error:
        is_loop = isinstance(error, RuntimeError) or error.errno == errno.ELOOP
        if not is_loop:  # such as a name that is too long
            raise
        raise OSError(errno.ELOOP, "is a link that leads to itself", str(given)) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{target} is a folder: give the name of a file.")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, "is a disk or a socket: give the name of a file", str(given))
    return target


def is_stream(target: Path) -> bool:
    """Whether this is a character device or a pipe."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


@contextlib.contextmanager
def naming_disk_errors(target: Path) -> Iterator[None]:
    """Give the errors of a full or broken disk the name of the file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in DISK_ERRORS:
            raise
        raise type(error)(error.errno, error.strerror, str(target)) from None


def open_part(target: Path) -> tuple[Path, BinaryIO]:
    """A new file beside the target, locked by this process, and its name."""
    while True:
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            opened = part.open("xb")
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(target)) from None
        if not HAS_LOCKS:
            return part, opened
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX)
        if part.exists():
            return part, opened
        opened.close()  # another process took it for a leftover before it was locked


def remove_leftovers(target: Path) -> None:
    """Remove the parts of this file that no process is writing any more."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError):
        parts = [part for part in target.parent.iterdir() if pattern.fullmatch(part.name)]
        for part in parts:
            with contextlib.suppress(OSError), part.open("rb+") as opened:
                if HAS_LOCKS:
                    fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()
            if not HAS_LOCKS:
                with contextlib.suppress(OSError):
                    part.unlink()
