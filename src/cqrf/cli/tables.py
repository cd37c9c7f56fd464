"""Tables from files, whole or in pieces.

CSV and TSV (also gzipped), JSON lines, Excel workbooks, Parquet, Feather. Text files have no types:
:mod:`cqrf.cli.notation` says how their columns are read. Columns that are known to hold labels stay
text, and ``predict`` reads each column as the model has it. In files with types, only texts that
are written dates or numbers are converted.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from cqrf._input.columns import CATEGORY, DATE, DURATION, MAX_LEVELS, NUMBER, Columns
from cqrf._input.written_values import describe_written
from cqrf._runtime.arguments import name_row
from cqrf.cli.cells import PIECE_ROWS, find_json_line, read_json_lines, read_workbook
from cqrf.cli.notation import (
    Found,
    Notation,
    describe_found,
    describe_no_date,
    describe_no_number,
    infer,
    read_dates,
    read_durations,
    read_plain,
    read_written,
)
from cqrf.cli.text_files import (
    STDIN,
    WITH_COMMAS,
    check_names,
    find_line,
    list_names,
    read_csv,
)

DELIMITERS = {".csv": None, ".txt": None, ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
WORKBOOKS = (".xlsx", ".xlsm")
PARQUET = (".parquet", ".pq")
EXAMPLES = {"dates": "2024-12-31", "numbers": "1234.5"}
FEATHER = (".feather", ".arrow", ".ipc")


class WholeTable(NamedTuple):
    """All rows of a file, the notation they were read with, and notes about it."""

    table: pa.Table
    notation: Notation
    messages: list[str]


def describe_formats() -> str:
    """Suffixes that a file to read may have."""
    return ", ".join((*DELIMITERS, *JSON_LINES, *WORKBOOKS, *PARQUET, *FEATHER))


def name_source(path: str) -> str:
    """Name of a table for notes and titles."""
    return "standard input" if path == STDIN else Path(path).name


def suffix_of(path: str) -> str:
    """Suffix that tells the format, without that of a compression."""
    name = Path(path).name.lower()
    return Path(name.removesuffix(".gz")).suffix


def is_text(path: str) -> bool:
    """Whether a file is a text file without types."""
    return path == STDIN or suffix_of(path) in DELIMITERS


def name_place(path: str, row: int, notation: Notation) -> str:
    """Where a row is in its file, for messages."""
    suffix = suffix_of(path)
    if path != STDIN and is_text(path):
        return f"line {find_line(path, row, DELIMITERS[suffix], notation)}"
    if suffix in JSON_LINES:
        return f"line {find_json_line(path, row, notation)}"
    without = ", without empty rows" if suffix in WORKBOOKS else ""
    return f"{name_row(row)}{without}"


def read_whole(
    path: str, labels: Collection[str | None] = (), notation: Notation | None = None
) -> WholeTable:
    """All rows of a file. Text is read as what it stands for, but columns of labels stay text."""
    notation = notation or Notation()
    table = _join_pieces(list(read_pieces(path, notation)))
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows.")
    plain, commas = is_text(path) or suffix_of(path) in WORKBOOKS, has_commas(table)
    found = {
        name: _read_text(column, name, path, notation, commas, plain)
        for name, column in zip(table.column_names, table.columns, strict=True)
        if is_string(column) and name not in labels
    }
    columns = dict(zip(table.column_names, table.columns, strict=True))  # one by one is quadratic
    columns |= {name: each.column for name, each in found.items()}
    table = pa.table(columns, metadata=table.schema.metadata)
    orders = {name: each.order for name, each in found.items() if each.order}
    decimals = {name: each.decimal for name, each in found.items() if each.decimal}
    inferred = {name: each for name, each in found.items() if name not in notation.dates}
    return WholeTable(
        table,
        notation._replace(
            dates={name: order for name, order in orders.items() if order != "iso"},
            numbers=decimals,
        ),
        [*describe_found(inferred), *_describe_text(inferred, path)],
    )


def read_pieces(path: str, notation: Notation) -> Generator[pa.Table, None, None]:
    """The rows of a file, some thousand at a time; columns of a text file stay text."""
    for piece in _raw_pieces(path, notation):
        yield _without_missing(piece, notation)


def name_labels(names: list[str], columns: Columns) -> list[str]:
    """Columns of a model that hold labels."""
    return [name for name, kind in zip(names, columns.kinds, strict=True) if kind == CATEGORY]


def as_known(
    table: pa.Table, names: list[str], columns: Columns, path: str, notation: Notation
) -> pa.Table:
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
        elif is_string(column) and kind == NUMBER:
            column = _as_numbers(column, name, path, notation, commas)
        elif is_string(column) and kind == DATE:
            column = _as_dates(column, name, path, notation)
        elif is_string(column) and kind == DURATION:
            column = _as_durations(column, name, path, notation)
        read[name] = column
    return pa.table(read)


def has_commas(table: pa.Table) -> bool:
    """Whether numbers may have a decimal comma."""
    return bool(table.schema.metadata == WITH_COMMAS)


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


def _raw_pieces(path: str, notation: Notation) -> Generator[pa.Table, None, None]:
    suffix = suffix_of(path)
    with _naming_the_file(path):
        if is_text(path):
            yield from read_csv(path, DELIMITERS.get(suffix), notation)
        elif suffix in JSON_LINES:
            yield from read_json_lines(path, notation)
        elif suffix in WORKBOOKS:
            yield read_workbook(path)
        elif suffix in PARQUET:
            with pyarrow.parquet.ParquetFile(path) as file:
                check_names(file.schema_arrow.names, path)
                for batch in file.iter_batches(PIECE_ROWS):
                    yield pa.Table.from_batches([batch])
                if file.metadata.num_rows == 0:
                    yield file.schema_arrow.empty_table()
        elif suffix in FEATHER:
            with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
                check_names(reader.schema.names, path)
                for i in range(reader.num_record_batches):
                    yield pa.Table.from_batches([reader.get_batch(i)])
                if reader.num_record_batches == 0:
                    yield reader.schema.empty_table()
        else:
            old = " Save an .xls file as .xlsx." if suffix == ".xls" else ""
            raise ValueError(
                f"{path}: unknown kind of file {suffix!r}; the name must end in one of "
                f"{describe_formats()}, or be - for CSV on standard input.{old}"
            )


def _join_pieces(pieces: list[pa.Table]) -> pa.Table:
    """One table; a column that is numbers in one piece and text in another is text."""
    if not pieces:
        return pa.table({})
    types: dict[str, set[pa.DataType]] = {}
    for piece in pieces:
        for field in piece.schema:
            types.setdefault(field.name, set()).add(field.type)
    for name in (name for name, found in types.items() if len(found) > 1):
        pieces = [
            piece.set_column(piece.column_names.index(name), name, as_text(piece.column(name)))
            if name in piece.column_names
            else piece
            for piece in pieces
        ]
    return pa.concat_tables(pieces, promote_options="default")


def _without_missing(table: pa.Table, notation: Notation) -> pa.Table:
    """Make NaN missing, and what the user says is missing."""
    texts = pa.array(notation.na or (), pa.string())
    numbers = pa.array(notation.missing_numbers, pa.float64())
    for at, column in enumerate(table.columns):
        gone = None
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            floats = column.cast(pa.float64(), safe=False)
            gone = pc.or_(pc.is_nan(floats), pc.is_in(floats, numbers))
        elif is_string(column) and len(texts):
            gone = pc.is_in(pc.utf8_trim_whitespace(column.cast(pa.string())), texts)
        if gone is not None and pc.any(gone).as_py():
            column = pc.if_else(pc.fill_null(gone, False), None, column)
            table = table.set_column(at, table.field(at), column)
    return table


def _read_text(
    column: pa.ChunkedArray, name: str, path: str, notation: Notation, commas: bool, plain: bool
) -> Found:
    """A column of text, as the notation says or as it can be inferred."""
    if name in notation.dates:
        order = notation.dates[name] or infer(column, notation, commas, plain).order
        if order is None:
            raise ValueError(
                f"{path}: the order of day and month in column {name!r} cannot be told from its "
                f"values: give --dates {name}=dmy or --dates {name}=mdy."
            )
        return Found(_as_dates(column, name, path, notation, order), order=order)
    return infer(column, notation, commas, plain)


def _as_numbers(
    column: pa.ChunkedArray, name: str, path: str, notation: Notation, commas: bool
) -> pa.ChunkedArray:
    values = read_plain(column, notation, commas)
    if values is None and name in notation.numbers:
        values = read_written(column, notation.numbers[name], notation)
    if values is None:
        problem = describe_no_number(column, notation, commas)
        raise ValueError(f"{path}: column {name!r} {problem}.")
    return values


def _as_dates(
    column: pa.ChunkedArray, name: str, path: str, notation: Notation, order: str | None = None
) -> pa.ChunkedArray:
    order = order or notation.dates.get(name, "iso")
    values = read_dates(column, order, notation)
    if values is None:
        values = read_dates(column, "iso", notation)
    if values is None:
        problem = describe_no_date(column, order, notation)
        raise ValueError(f"{path}: column {name!r} {problem}.")
    return values


def _as_durations(
    column: pa.ChunkedArray, name: str, path: str, notation: Notation
) -> pa.ChunkedArray:
    values = read_durations(column, notation)
    if values is None:
        raise ValueError(
            f"{path}: column {name!r} must hold durations, written as in 3 days 04:05:06."
        )
    return values


def _describe_text(found: dict[str, Found], path: str) -> list[str]:
    """What to do about columns that stay text but look like dates or numbers."""
    messages = []
    for name, each in found.items():
        if not is_string(each.column):
            continue
        levels = pc.unique(each.column.drop_null()).to_pylist()
        written = describe_written(levels)
        if each.is_ambiguous:
            are_dates = read_dates(each.column, "dmy", Notation()) is not None
            what = (
                "dates, day or month first" if are_dates else "numbers with thousands or decimals"
            )
            advice = f"--dates {name}=dmy or {name}=mdy" if are_dates else "--decimal . or ,"
        elif written:
            what, advice = written, f"write them as in {EXAMPLES[written]}"
        else:
            continue
        if len(levels) > MAX_LEVELS:
            raise ValueError(
                f"{path}: column {name!r} looks like {what}, but cannot be read: {advice}, or "
                f"leave it out with --ignore {name}."
            )
        messages.append(f"Note    {name} stays text, but looks like {what}: {advice}")
    return messages


@contextmanager
def _naming_the_file(path: str) -> Iterator[None]:
    """Turn errors of the readers into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, EOFError, gzip.BadGzipFile, zlib.error, csv.Error) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(f"{path} cannot be read: {lines[0]}") from None


def _count(names: list[str], noun: str) -> str:
    return f"a {noun}" if len(names) == 1 else f"{len(names)} {noun}s"
