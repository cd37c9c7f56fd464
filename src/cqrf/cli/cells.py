"""Rows of cells that have types of their own: JSON lines and Excel workbooks."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any
from zipfile import BadZipFile

import pyarrow as pa

from cqrf._runtime.arguments import exactly
from cqrf.cli.console import print_message
from cqrf.cli.notation import NULLS, Notation
from cqrf.cli.text_files import check_names, open_text

PIECE_ROWS = 20_000


def read_json_lines(path: str, notation: Notation) -> Generator[pa.Table, None, None]:
    """Pieces of a file with a JSON object on every line."""
    with open_text(path, notation.encoding) as file:
        numbered = enumerate(file, start=1)
        rows = (_read_object(line, path, number) for number, line in numbered if line.strip())
        while piece := list(islice(rows, PIECE_ROWS)):
            names = list(dict.fromkeys(name for row in piece for name in row))
            yield make_table(names, [[row.get(name) for name in names] for row in piece])


def read_workbook(path: str) -> pa.Table:
    """The first sheet of an Excel workbook; its first row names the columns."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as an Excel workbook: {error}") from None
    try:
        sheet, *others = book.worksheets
        if others:
            print_message(f"Note    {path} has {len(others) + 1} sheets; {sheet.title!r} is read")
        rows = sheet.iter_rows(values_only=True)
        heading = ["" if cell is None else str(cell).strip() for cell in next(rows, ())]
        cells = [row for row in rows if any(cell is not None for cell in row)]
    finally:
        book.close()
    if not any(heading):
        raise ValueError(f"{path} is empty: the first row of its sheet must name the columns.")
    used = [
        at for at, name in enumerate(heading) if name or any(row[at] is not None for row in cells)
    ]
    check_names([heading[at] for at in used], path)
    missing = (None, *NULLS)
    return make_table(
        [heading[at] for at in used],
        [[None if row[at] in missing else row[at] for at in used] for row in cells],
    )


def find_json_line(path: str, row: int, notation: Notation) -> int:
    """The line of a row; the first row is 0."""
    with open_text(path, notation.encoding) as file:
        numbers = (number for number, line in enumerate(file, start=1) if line.strip())
        return next(islice(numbers, row, None))


def make_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """A table of cells: numbers, flags, dates or text, if all cells of a column are; else text."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table({name: _make_column(cells) for name, cells in zip(names, columns, strict=True)})


def _make_column(cells: Iterable[Any]) -> pa.ChunkedArray:
    values = list(cells)
    kinds = {_kind(value) for value in values if value is not None}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        values = [None if value is None else _as_label(value) for value in values]
    elif kind == pa.float64():
        values = [None if value is None else float(value) for value in values]
    return pa.chunked_array([pa.array(values, kind or pa.string())])


def _kind(value: Any) -> pa.DataType | None:
    """Type of a column of such values; None if they are written as text."""
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int | float):
        return pa.float64()
    return pa.timestamp("us") if isinstance(value, date) else None


def _as_label(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return exactly(value)
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _read_object(line: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}: line {number} is not JSON: {error}.") from None
    if not isinstance(row, dict):
        raise ValueError(f'{path}: line {number} must be an object, as in {{"age": 61}}.')
    for name, value in row.items():
        if isinstance(value, dict | list):
            raise ValueError(
                f"{path}: {name!r} in line {number} holds several values: give each its own name."
            )
    return row
