"""The bytes of a model file: mark, length, checksum, header and sections.

=========  ==========================================================================
bytes      content
=========  ==========================================================================
8          the mark of the kind of file
4 + 4 + 8  version of the format, length of the header, length of the file
header     JSON: sizes, settings, and the length in bytes of every section
sections   numbers, lowest byte first, each padded to a multiple of 8 bytes
32         SHA-256 of everything before
=========  ==========================================================================

There are three kinds of files: of a forest (:mod:`cqrf._model.file`), of a conformal forest
(:mod:`cqrf._conformal.file`) and of a treatment forest (:mod:`cqrf._effects.file`). The sections of
the last two are whole files of forests, and some numbers. Nothing here needs a kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from numpy.typing import NDArray

from cqrf._model.file_sections import (
    CONFORMAL_FOREST,
    COUNTS,
    FOREST,
    SAMPLING,
    TREATMENT_FOREST,
    ModelFileError,
    invalid,
    padding,
)
from cqrf._runtime.files import replacing

MARK = b"\x93cqrf\r\n\x1a"  # changes if a copy converts line ends or drops the top bit
FORMAT = 4
PREAMBLE = struct.Struct("<8sIIQ")
DIGEST_BYTES = 32
MOST_HEADER_BYTES = 2**16
# Keys of the headers.
EVERY_FILE = ("cqrf", "settings", "notes", "sections")
FOREST_KEYS = (
    *EVERY_FILE,
    *COUNTS,
    *SAMPLING,
    "named",
    "seed",
    "censoring",
    "root_share",
    "causes",
)
CONFORMAL_KEYS = (
    *EVERY_FILE,
    "forest_settings",
    "coverage",
    "cutoff",
    "weights_depend_on_query",
    "lower_total",
    "upper_total",
)
TREATMENT_KEYS = (*EVERY_FILE, "nuisance_settings", "arms", "treated")


class FileKind(NamedTuple):
    """A kind of model file.

    Its mark, the format that is written, its content, what reads it, and the keys of its header.
    """

    mark: bytes
    newest_format: int
    content: str
    loader: str
    keys: tuple[str, ...]


FOREST_FILE = FileKind(MARK, FORMAT, FOREST, "cqrf.CensoredQuantileForest.load", FOREST_KEYS)
CONFORMAL_FILE = FileKind(
    b"\x93cqrc\r\n\x1a",
    1,
    CONFORMAL_FOREST,
    "cqrf.conformal.ConformalForest.load",
    CONFORMAL_KEYS,
)
TREATMENT_FILE = FileKind(
    b"\x93cqrt\r\n\x1a",
    1,
    TREATMENT_FOREST,
    "cqrf.effects.CensoredTreatmentForest.load",
    TREATMENT_KEYS,
)


def pack(
    kind: FileKind, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> list[bytes]:
    """Bytes of a file, in parts. The lengths of the sections are added to the header."""
    lengths = {name: array.nbytes for name, array in arrays.items()}
    text = json.dumps(
        {**header, "sections": lengths}, allow_nan=False, separators=(",", ":")
    ).encode()
    if len(text) > MOST_HEADER_BYTES:
        raise ValueError(
            f"settings and notes take {len(text)} bytes of JSON; a model file holds at most "
            f"{MOST_HEADER_BYTES}. Give fewer split_quantiles, or shorter notes."
        )
    chunks = [text + padding(len(text))]
    for array in arrays.values():
        chunks += [array.tobytes(), padding(array.nbytes)]
    length = PREAMBLE.size + sum(map(len, chunks)) + DIGEST_BYTES
    chunks.insert(0, PREAMBLE.pack(kind.mark, kind.newest_format, len(text), length))
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, digest.digest()]


def write_bytes(path: str | os.PathLike[str], chunks: Sequence[bytes]) -> None:
    """Write the file whole, or leave what was there."""
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk)


def read_bytes(
    path: str | os.PathLike[str], kind: FileKind = FOREST_FILE
) -> tuple[int, dict[str, Any], memoryview]:
    """Format, header and bytes of the sections of a file whose length and checksum are right."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ModelFileError("is not a file.")
        check_start(file.read(PREAMBLE.size), about.st_size, kind)
        file.seek(0)
        data = file.read(about.st_size)
    return unpack(memoryview(data), kind)


def check_start(start: bytes, n_bytes: int, kind: FileKind) -> None:
    """Raise unless a file of so many bytes can start with these."""
    for other in (FOREST_FILE, CONFORMAL_FILE, TREATMENT_FILE):
        if other != kind and start.startswith(other.mark):
            raise ModelFileError(
                f"holds {other.content}, not {kind.content}: load it with {other.loader}."
            )
    if len(start) < PREAMBLE.size or not start.startswith(kind.mark):
        raise ModelFileError("is not a model file of cqrf.")
    _, written_format, _, length = PREAMBLE.unpack(start)
    if written_format > kind.newest_format:
        raise ModelFileError(
            f"has format {written_format}; this version of cqrf reads up to "
            f"{kind.newest_format}. Upgrade cqrf."
        )
    if length != n_bytes:
        raise ModelFileError(f"has {n_bytes} of {length} bytes: it was cut short, or added to.")


def unpack(data: memoryview, kind: FileKind) -> tuple[int, dict[str, Any], memoryview]:
    """Format, header and bytes of the sections, if length and checksum are right."""
    start = bytes(data[: PREAMBLE.size])
    check_start(start, len(data), kind)
    if len(data) < PREAMBLE.size + DIGEST_BYTES:
        raise ModelFileError("was cut short.")
    if hashlib.sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
        raise ModelFileError("is damaged: its checksum is another.")
    data = data[PREAMBLE.size : -DIGEST_BYTES]
    _, written_format, header_length, _ = PREAMBLE.unpack(start)
    header_end = header_length + len(padding(header_length))
    if written_format < 1 or header_length > MOST_HEADER_BYTES or header_end > len(data):
        raise invalid("format or length of the header", kind.content)
    try:
        # As text: of bytes, json would guess whether they are UTF-16.
        header = json.loads(
            str(data[:header_length], "utf-8"),
            parse_constant=_refuse,
            object_pairs_hook=_read_object,
        )
    except (ValueError, RecursionError):
        raise invalid("header", kind.content) from None
    if not isinstance(header, dict):
        raise invalid("header", kind.content)
    if not header.keys() <= set(kind.keys):
        raise invalid("header (it has unknown keys)", kind.content)
    return written_format, header, data[header_end:]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key stands twice."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key stands twice")
    return read
