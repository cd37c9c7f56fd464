"""Tables from files: CSV and TSV (also gzipped), Parquet, Feather; whole or in pieces.

Text files tell no types. A column is numbers if every value is one, else true and false, else
dates, else text; ``predict`` reads each column as the model knows it. Parquet and Feather files
keep the types they have.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from cqrf.table import CATEGORY, DATE, NUMBER, Columns

STDIN = "-"
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A")
TRUTHS = {"true": 1.0, "false": 0.0}
DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
PIECE_BYTES = 1 << 20  # of text, read at a time
PIECE_ROWS = 20_000


def describe_formats() -> str:
    """The names a file may have."""
    return ", ".join((*DELIMITERS, *PARQUET, *FEATHER))


def suffix_of(path: str) -> str:
    """Ending of a name that says what is in the file, without that of a compression."""
    name = Path(path).name.lower()
    return Path(name.removesuffix(".gz")).suffix


def is_text(path: str) -> bool:
    """Whether a file holds text, from which types have to be found."""
    return path == STDIN or suffix_of(path) in DELIMITERS


def read_whole(path: str) -> pa.Table:
    """All rows of a file, with the types they show."""
    table = pa.concat_tables(_raw_pieces(path))
    if is_text(path):
        columns = [_infer(column) for column in table.columns]
        table = pa.table(dict(zip(table.column_names, columns, strict=True)))
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows.")
    return table


def read_pieces(path: str) -> Generator[pa.Table, None, None]:
    """The rows of a file, some thousands at a time; text stays text."""
    return _raw_pieces(path)


def as_known(table: pa.Table, names: list[str], columns: Columns, path: str) -> pa.Table:
    """The columns a model needs, in its order, each as what the model knows it to be."""
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{path} lacks {_count(missing, 'column')} of the model: {name_some(missing)}; it has "
            f"{name_some(table.column_names)}."
        )
    read = {}
    for name, kind in zip(names, columns.kinds, strict=True):
        column = table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            if kind == NUMBER:
                column = _require(name, column, _as_numbers(column), "a number", path)
            elif kind == DATE:
                column = _require(name, column, _as_dates(column), "a date", path)
        elif kind == CATEGORY:
            column = as_text(column)
        read[name] = column
    return pa.table(read)


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels of a column; whole numbers without a decimal point, as a text file has them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        whole = pc.all(pc.equal(column, pc.floor(column)), min_count=0).as_py()
        column = column.cast(pa.int64()) if whole else column
    return column.cast(pa.string())


def _raw_pieces(path: str) -> Generator[pa.Table, None, None]:
    suffix = suffix_of(path)
    with _said_plainly(path):
        if is_text(path):
            yield from _pieces_of_text(path, DELIMITERS.get(suffix))
        elif suffix in PARQUET:
            with pyarrow.parquet.ParquetFile(path) as file:
                _check_names(file.schema_arrow.names, path)
                for batch in file.iter_batches(PIECE_ROWS):
                    yield pa.Table.from_batches([batch])
                if file.metadata.num_rows == 0:
                    yield file.schema_arrow.empty_table()
        elif suffix in FEATHER:
            with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
                _check_names(reader.schema.names, path)
                for i in range(reader.num_record_batches):
                    yield pa.Table.from_batches([reader.get_batch(i)])
                if reader.num_record_batches == 0:
                    yield reader.schema.empty_table()
        else:
            raise ValueError(
                f"{path}: unknown kind of file {suffix!r}; the name must end in one of "
                f"{describe_formats()}, or be - for CSV on standard input."
            )


def _pieces_of_text(path: str, delimiter: str | None) -> Iterator[pa.Table]:
    with _open_text(path) as file:
        heading = file.readline().removeprefix(codecs.BOM_UTF8).decode("utf-8").rstrip("\r\n")
        if not heading.strip():
            raise ValueError(f"{path} is empty: its first line must name the columns.")
        delimiter = delimiter or _guess_delimiter(heading)
        names = [name.strip() for name in next(csv.reader([heading], delimiter=delimiter))]
        _check_names(names, path)
        types = {name: pa.string() for name in names}
        yield pa.schema(types.items()).empty_table()
        try:
            reader = pyarrow.csv.open_csv(
                file,
                pyarrow.csv.ReadOptions(
                    block_size=PIECE_BYTES, use_threads=False, column_names=names
                ),
                pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    null_values=NULLS,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    column_types=types,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            raise
        with reader:  # closed even if nobody reads to the end: it has threads of its own
            for batch in reader:
                yield pa.Table.from_batches([batch])


def _open_text(path: str) -> Any:
    if path == STDIN:
        return nullcontext(sys.stdin.buffer)
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _guess_delimiter(heading: str) -> str:
    return max(",;\t|", key=heading.count)


def _check_names(names: list[str], path: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has more than one column of the name {name_some(twice)}.")


def _infer(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text as what all of its values are."""
    for read in (_as_numbers, _as_dates):
        values = read(column)
        if values is not None:
            return values
    return column


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Numbers, 1 and 0 for true and false; None if some value is neither."""
    trimmed = pc.utf8_trim_whitespace(column)
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowInvalid:
        lowered = pc.utf8_lower(trimmed)
        is_truth = pc.is_in(lowered, pa.array(TRUTHS))
        if not pc.all(pc.or_(is_truth, pc.is_null(column))).as_py():
            return None
        return pc.equal(lowered, "true").cast(pa.float64())


def _as_dates(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return pc.utf8_trim_whitespace(column).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


def _require(
    name: str, column: pa.ChunkedArray, read: pa.ChunkedArray | None, what: str, path: str
) -> pa.ChunkedArray:
    """What was read of a column, or an error that shows the first value that could not be."""
    if read is not None:
        return read
    convert = _as_numbers if what == "a number" else _as_dates
    for value in column:
        if convert(pa.chunked_array([[value.as_py()]], pa.string())) is None:
            raise ValueError(
                f"{path}: column {name!r} holds {value.as_py()!r}, which is not {what}."
            )
    raise ValueError(f"{path}: column {name!r} mixes numbers with true and false.")


@contextmanager
def _said_plainly(path: str) -> Iterator[None]:
    """Turn what the readers raise into one line that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from None
    except (pa.ArrowException, EOFError, gzip.BadGzipFile) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(f"{path} cannot be read: {lines[0]}") from None


def name_some(names: list[str]) -> str:
    """A few names, quoted."""
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _count(names: list[str], noun: str) -> str:
    return f"a {noun}" if len(names) == 1 else f"{len(names)} {noun}s"
