"""Text files: their encoding, and CSV and TSV as pieces of text columns.

The encoding is UTF-8, or UTF-16 or UTF-32 if the file begins with the mark of one, or as given.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv

from cqrf.cli.notation import Notation

STDIN = "-"
# Schema metadata of a table whose numbers may have a decimal comma.
WITH_COMMAS = {b"decimal": b","}
PIECE_BYTES = 1 << 20  # of text that is read at once
MOST_COLUMNS = 50_000  # of a text file; time and memory grow faster than their number
FIELD_BYTES = 100  # per value, for rows that are longer than a piece
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16: it begins like that
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class _Utf8(io.RawIOBase):
    """A file of any encoding as UTF-8; an error names the line."""

    def __init__(self, file: Any, path: str, encoding: str | None) -> None:
        self.file, self.path = file, path
        start = file.read(4)
        mark = next((mark for mark in MARKS if start.startswith(mark)), b"")
        if b"\0" in start and not mark and encoding is None:
            raise ValueError(
                f"{path} looks like UTF-16 without a mark: give --encoding utf-16-le or utf-16-be."
            )
        self.encoding = codecs.lookup(encoding or MARKS.get(mark, "utf-8")).name
        if mark and codecs.lookup(MARKS[mark]).name.startswith(self.encoding):
            self.encoding, start = MARKS[mark], start[len(mark) :]
        self.decoder = codecs.getincrementaldecoder(self.encoding)()
        self.waiting, self.lines = b"", 0
        self._take(start, is_last=len(start) == 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.waiting:
            chunk = self.file.read(len(buffer))
            self._take(chunk, is_last=not chunk)
            if not chunk:
                break
        taken = self.waiting[: len(buffer)]
        buffer[: len(taken)] = taken
        self.waiting = self.waiting[len(taken) :]
        return len(taken)

    def _take(self, chunk: bytes, is_last: bool) -> None:
        try:
            text = self.decoder.decode(chunk, is_last)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self.encoding, "replace")
            line = self.lines + before.count("\n") + 1
            raise ValueError(
                f"{self.path}: line {line} is not text in {self.encoding.upper()} (byte "
                f"0x{error.object[error.start]:02x}). Give the file's own encoding, such as "
                "--encoding cp1252 (Windows, Western Europe) or --encoding latin-1."
            ) from None
        self.lines += text.count("\n")
        self.waiting += text.encode()


@contextmanager
def open_text(path: str, encoding: str | None) -> Iterator[io.BufferedReader]:
    """A text file, gzipped or not, or standard input, as UTF-8."""
    try:
        codecs.lookup(encoding or "utf-8")
    except LookupError:
        raise ValueError(
            f"--encoding {encoding} is unknown; there are utf-8, utf-16, cp1252, latin-1 and more."
        ) from None
    if path == STDIN:
        yield io.BufferedReader(_Utf8(sys.stdin.buffer, path, encoding), PIECE_BYTES)
        return
    with gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb") as file:
        yield io.BufferedReader(_Utf8(file, path, encoding), PIECE_BYTES)


def read_csv(
    path: str, delimiter: str | None, notation: Notation
) -> Generator[pa.Table, None, None]:
    """Pieces of a CSV file, the first of them empty; every column is text."""
    with open_text(path, notation.encoding) as file:
        heading = read_heading(file, path)
        delimiter = delimiter or _guess_delimiter(heading)
        names = [name.strip() for name in next(csv.reader([heading], delimiter=delimiter))]
        if len(names) > MOST_COLUMNS:
            raise ValueError(
                f"{path} has {len(names):,} columns; of a text file at most {MOST_COLUMNS:,} are "
                "read. Leave out some, or save it as Parquet."
            )
        check_names(names, path)
        types = {name: pa.string() for name in names}
        noted = WITH_COMMAS if delimiter == ";" else None
        yield pa.schema(types.items(), noted).empty_table()
        try:
            reader = pyarrow.csv.open_csv(
                file,
                pyarrow.csv.ReadOptions(
                    block_size=max(PIECE_BYTES, FIELD_BYTES * len(names)),
                    use_threads=False,
                    column_names=names,
                ),
                pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    null_values=notation.nulls,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=notation.na is not None,
                    column_types=types,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            raise
        with reader:  # close it even if it is not read to the end: it has threads
            for batch in reader:
                yield pa.Table.from_batches([batch]).replace_schema_metadata(noted)


def read_heading(file: io.BufferedReader, path: str) -> str:
    """The first line, which names the columns."""
    heading = file.readline().decode("utf-8").rstrip("\r\n")
    if not heading.strip():
        raise ValueError(f"{path} is empty: its first line must name the columns.")
    if "\r" in heading:
        raise ValueError(f"{path} ends its lines with CR alone: save it with LF or CRLF.")
    return heading


def find_line(path: str, row: int, delimiter: str | None, notation: Notation) -> int:
    """The line of a CSV file in which a row ends; the first row is 0."""
    with open_text(path, notation.encoding) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        heading = lines.readline()
        reader = csv.reader(lines, delimiter=delimiter or _guess_delimiter(heading))
        for number, _ in enumerate(filter(None, reader)):
            if number == row:
                break
        return reader.line_num + 1


def check_names(names: list[str], path: str) -> None:
    """Raise if two columns have the same name, or several none."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if "" in twice:
        raise ValueError(f"{path} has {names.count('')} columns without a name: name them.")
    if twice:
        raise ValueError(f"{path} has more than one column of the name {list_names(twice)}.")


def list_names(names: Sequence[str]) -> str:
    """The first names, quoted."""
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _guess_delimiter(heading: str) -> str:
    return max(",;\t|", key=heading.count)
