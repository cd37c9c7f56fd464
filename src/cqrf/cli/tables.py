"""Tables from files: CSV and TSV (also gzipped), Parquet, Feather; whole or in pieces.

Text files have no types. A column is numbers if every value is a number, or true or false; else
dates; else text. Columns that are known to hold labels stay text, and ``predict`` reads each
column as the model has it. If the delimiter is a semicolon, a number may have a decimal comma.
Parquet and Feather files keep their types.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from cqrf._input.features import CATEGORY, DATE, NUMBER, Columns

STDIN = "-"
NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A")
TRUTHS = {"true": 1.0, "false": 0.0}
DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
# Schema metadata of a table whose numbers may have a decimal comma.
WITH_COMMAS = {b"decimal": b","}
NUMBER_WITH_COMMA = r"^([+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?)$"
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow", ".ipc")
PIECE_BYTES = 1 << 20  # of text that is read at once
FIELD_BYTES = 100  # per value, for rows that are longer than a piece
PIECE_ROWS = 20_000


def describe_formats() -> str:
    """Suffixes that a file may have."""
    return ", ".join((*DELIMITERS, *PARQUET, *FEATHER))


def name_source(path: str) -> str:
    """Name of a table for notes and titles."""
    return "standard input" if path == STDIN else Path(path).name


def suffix_of(path: str) -> str:
    """Suffix that tells the format, without that of a compression."""
    name = Path(path).name.lower()
    return Path(name.removesuffix(".gz")).suffix


def is_text(path: str) -> bool:
    """Whether a file is a text file, whose types have to be inferred."""
    return path == STDIN or suffix_of(path) in DELIMITERS


def read_whole(path: str, labels: Collection[str | None] = ()) -> pa.Table:
    """All rows of a file; types of a text file are inferred, but columns of labels stay text."""
    table = pa.concat_tables(_raw_pieces(path))
    if is_text(path):
        commas = has_commas(table)
        columns = {
            name: column if name in labels else _infer(column, commas)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        table = pa.table(columns).replace_schema_metadata(table.schema.metadata)
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows.")
    return table


def read_pieces(path: str) -> Generator[pa.Table, None, None]:
    """The rows of a file, some thousand at a time; columns of a text file stay text."""
    return _raw_pieces(path)


def name_labels(names: list[str], columns: Columns) -> list[str]:
    """Columns of a model that hold labels."""
    return [name for name, kind in zip(names, columns.kinds, strict=True) if kind == CATEGORY]


def as_known(table: pa.Table, names: list[str], columns: Columns, path: str) -> pa.Table:
    """The columns of a model, in its order, with the types that the model has."""
    there = set(table.column_names)
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(
            f"{path} lacks {_count(missing, 'column')} of the model: {list_names(missing)}; it has "
            f"{list_names(table.column_names)}."
        )
    read, commas = {}, has_commas(table)
    for name, kind, levels in zip(names, columns.kinds, columns.levels, strict=True):
        column = table.column(name)
        if kind == CATEGORY:
            column = _as_labels(column, levels or ())
        elif is_string(column) and kind in (NUMBER, DATE):
            values = _as_numbers(commas, column) if kind == NUMBER else _as_dates(column)
            if values is None:
                is_number = kind == NUMBER
                problem = (
                    describe_no_number(column, commas) if is_number else describe_no_date(column)
                )
                raise ValueError(f"{path}: column {name!r} {problem}.")
            column = values
        read[name] = column
    return pa.table(read)


def is_string(column: pa.ChunkedArray) -> bool:
    """Whether a column is text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def holds_labels(column: pa.ChunkedArray) -> bool:
    """Whether a column holds labels by its type: text, or what pandas calls a category."""
    return is_string(column) or bool(pa.types.is_dictionary(column.type))


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels of a column, the same for every file format.

    Whole numbers have no decimal point, booleans are True and False, empty labels are missing.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_string(column):
        text = column.cast(pa.string())
        text = pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), None, text)
        return pc.replace_substring_regex(text, r"^([+-]?[0-9]+)\.0+$", r"\1")
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    if pa.types.is_floating(column.type):
        whole = pc.all(pc.equal(column, pc.floor(column)), min_count=0).as_py()
        column = column.cast(pa.int64()) if whole else column
    return column.cast(pa.string())


def _as_labels(column: pa.ChunkedArray, levels: Collection[str]) -> pa.ChunkedArray:
    """Labels as the model has them; those that it does not have as ``fit`` reads them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    codes = column.combine_chunks().dictionary_encode()
    labels = [str(value) for value in codes.dictionary.to_pylist()]
    written = pa.array(labels, pa.string()).take(codes.indices)
    known = pc.is_in(written, pa.array(levels, pa.string()))
    return pc.if_else(known, written, as_text(column).combine_chunks())


def _raw_pieces(path: str) -> Generator[pa.Table, None, None]:
    suffix = suffix_of(path)
    with _naming_the_file(path):
        if is_text(path):
            yield from _pieces_of_text(path, DELIMITERS.get(suffix))
        elif suffix in PARQUET:
            with pyarrow.parquet.ParquetFile(path) as file:
                _check_names(file.schema_arrow.names, path)
                for batch in file.iter_batches(PIECE_ROWS):
                    yield _without_nan(pa.Table.from_batches([batch]))
                if file.metadata.num_rows == 0:
                    yield file.schema_arrow.empty_table()
        elif suffix in FEATHER:
            with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
                _check_names(reader.schema.names, path)
                for i in range(reader.num_record_batches):
                    yield _without_nan(pa.Table.from_batches([reader.get_batch(i)]))
                if reader.num_record_batches == 0:
                    yield reader.schema.empty_table()
        else:
            raise ValueError(
                f"{path}: unknown kind of file {suffix!r}; the name must end in one of "
                f"{describe_formats()}, or be - for CSV on standard input."
            )


def _without_nan(table: pa.Table) -> pa.Table:
    """Make NaN missing, as every other writer of files has it."""
    for at, column in enumerate(table.columns):
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            column = pc.if_else(pc.is_nan(column), None, column)
            table = table.set_column(at, table.field(at), column)
    return table


def _pieces_of_text(path: str, delimiter: str | None) -> Iterator[pa.Table]:
    with _open_text(path) as file:
        heading = file.readline().removeprefix(codecs.BOM_UTF8).decode("utf-8").rstrip("\r\n")
        if not heading.strip():
            raise ValueError(f"{path} is empty: its first line must name the columns.")
        if "\r" in heading:
            raise ValueError(f"{path} ends its lines with CR alone: save it with LF or CRLF.")
        delimiter = delimiter or _guess_delimiter(heading)
        names = [name.strip() for name in next(csv.reader([heading], delimiter=delimiter))]
        _check_names(names, path)
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
        with reader:  # close it even if it is not read to the end: it has threads
            for batch in reader:
                yield pa.Table.from_batches([batch]).replace_schema_metadata(noted)


def _open_text(path: str) -> Any:
    if path == STDIN:
        return nullcontext(sys.stdin.buffer)
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _guess_delimiter(heading: str) -> str:
    return max(",;\t|", key=heading.count)


def _check_names(names: list[str], path: str) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if "" in twice:
        raise ValueError(f"{path} has {names.count('')} columns without a name: name them.")
    if twice:
        raise ValueError(f"{path} has more than one column of the name {list_names(twice)}.")


def has_commas(table: pa.Table) -> bool:
    """Whether numbers may have a decimal comma."""
    return bool(table.schema.metadata == WITH_COMMAS)


def _infer(column: pa.ChunkedArray, commas: bool) -> pa.ChunkedArray:
    """A column of text as numbers or dates, if all of its values are."""
    for read in (partial(_as_numbers, commas), _as_dates):
        values = read(column)
        if values is not None:
            return values
    return column


def _as_numbers(commas: bool, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Numbers, 1 and 0 for true and false; None if some value is neither.

    Also None if some numbers have a decimal point and some a comma: one of them may separate
    thousands.
    """
    trimmed = _trim(column)
    if commas and pc.any(pc.match_substring_regex(trimmed, NUMBER_WITH_COMMA)).as_py():
        if pc.any(pc.match_substring(trimmed, ".")).as_py():
            return None
        trimmed = pc.replace_substring_regex(trimmed, NUMBER_WITH_COMMA, r"\1.\2")
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowInvalid:
        lowered = pc.utf8_lower(trimmed)
        is_truth = pc.is_in(lowered, pa.array(TRUTHS))
        if not pc.all(pc.or_(is_truth, pc.is_null(trimmed))).as_py():
            return None
        return pc.equal(lowered, "true").cast(pa.float64())


def _trim(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values without the space around them, None where they then are a word for missing."""
    trimmed = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(trimmed, pa.array(NULLS)), None, trimmed)


def _as_dates(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return _trim(column).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


def describe_no_number(column: pa.ChunkedArray, commas: bool) -> str:
    """Why a column of text does not hold numbers."""
    shown = _first_refused(column, partial(_as_numbers, commas))
    if shown is not None:
        return f"holds {shown}, which is not a number"
    if commas and pc.any(pc.match_substring(column, ",")).as_py():
        return "has decimal points in some numbers and commas in others"
    return "mixes numbers with true and false"


def describe_no_date(column: pa.ChunkedArray) -> str:
    """Why a column of text does not hold dates."""
    return f"holds {_first_refused(column, _as_dates)}, which is not a date"


def _first_refused(
    column: pa.ChunkedArray, read: Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
) -> str | None:
    for value in column.to_pylist():
        if read(pa.chunked_array([[value]], pa.string())) is None:
            return repr(value)
    return None


@contextmanager
def _naming_the_file(path: str) -> Iterator[None]:
    """Turn errors of the readers into one line that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}.") from None
    except (pa.ArrowException, EOFError, gzip.BadGzipFile, zlib.error, csv.Error) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(f"{path} cannot be read: {lines[0]}") from None


def list_names(names: list[str]) -> str:
    """The first names, quoted."""
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _count(names: list[str], noun: str) -> str:
    return f"a {noun}" if len(names) == 1 else f"{len(names)} {noun}s"
