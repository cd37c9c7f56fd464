"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that replaces ``path`` once it is complete and on disk.

    Until then an error, a full disk or a kill leaves the old file unchanged. A link keeps its
    target, and a file that is replaced keeps its permissions.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file.")
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        opened = part.open("xb")
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(target)) from None
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
