"""Tables to files, piece by piece: CSV, TSV, Parquet, Feather."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from cqrf._runtime.files import replacing
from cqrf._runtime.progress import printable
from cqrf.cli.tables import DELIMITERS, FEATHER, PARQUET, is_string, suffix_of


def check_format(out: Path | None) -> None:
    """Refuse a name without a known format, before any work is done."""
    if out is not None and suffix_of(str(out)) not in (*DELIMITERS, *PARQUET, *FEATHER):
        formats = ", ".join((*DELIMITERS, *PARQUET, *FEATHER))
        raise ValueError(f"{out}: the name must end in one of {formats}.")
    if out is not None and out.name.endswith(".gz"):
        raise ValueError(f"{out}: compressed files are read, not written.")


@contextmanager
def open_writer(out: Path | None) -> Iterator[Any]:
    """A function that appends a table to the output; a file appears once it is complete."""
    opened: Any = nullcontext(sys.stdout.buffer) if out is None else replacing(out)
    with opened as file:
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:
                writers.append(_make_writer(out, file, table.schema))
            writers[0].write_table(table)

        yield write
        for writer in writers:
            writer.close()


def _make_writer(out: Path | None, file: BinaryIO, schema: pa.Schema) -> Any:
    suffix = ".csv" if out is None else suffix_of(str(out))
    if suffix in PARQUET:
        return pyarrow.parquet.ParquetWriter(file, schema)
    if suffix in FEATHER:
        return pa.ipc.new_file(file, schema)
    is_shown = out is None and sys.stdout.isatty()
    return _TextWriter(file, schema, DELIMITERS[suffix] or ",", is_shown=is_shown)


class _TextWriter:
    """Lines of text. A field is quoted only if it would be read as another one without.

    Where a terminal shows them, control characters are escaped.
    """

    def __init__(
        self, file: BinaryIO, schema: pa.Schema, delimiter: str, *, is_shown: bool = False
    ) -> None:
        self.file, self.delimiter, self.is_shown = file, delimiter, is_shown
        heading = self._quote(pa.array(schema.names, pa.string())).to_pylist()
        file.write((delimiter.join(heading) + "\n").encode())

    def write_table(self, table: pa.Table) -> None:
        """Append rows; a missing value is an empty field, in quotes where a line has no other."""
        missing = '""' if table.num_columns == 1 else ""
        fields = [
            self._quote(column) if is_string(column) else column.cast(pa.string())
            for column in (each.combine_chunks() for each in table.columns)
        ]
        lines = pc.binary_join_element_wise(
            *(pc.fill_null(field, missing) for field in fields), self.delimiter
        )
        self.file.write(("\n".join(lines.to_pylist()) + "\n").encode())

    def close(self) -> None:
        """Nothing is left to write."""

    def _quote(self, texts: pa.Array) -> pa.Array:
        if self.is_shown:
            shown = [None if text is None else printable(text) for text in texts.to_pylist()]
            texts = pa.array(shown, pa.string())
        # An empty text is quoted, too: an empty field is missing.
        needs = pc.match_substring_regex(texts, rf'["\r\n{self.delimiter}]|^$')
        doubled = pc.replace_substring(texts, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(needs, quoted, texts)
