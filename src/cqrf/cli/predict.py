"""``cqrf predict``: predictions for the rows of a file of any length, piece by piece."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf._input.features import read_features
from cqrf._model.predict import (
    MaxLevel,
    Quantiles,
    Reader,
    RestrictedMean,
    SurvivalAt,
    encode_queries,
    read_weights,
)
from cqrf._model.settings import read_solver
from cqrf._runtime.arguments import exactly, read_choice
from cqrf._runtime.files import replacing
from cqrf._survival.quantiles import (
    UNIDENTIFIED,
    QuantileSolver,
    interval_levels,
    read_levels,
)
from cqrf.cli.console import print_message
from cqrf.cli.roles import require_names
from cqrf.cli.tables import (
    DELIMITERS,
    FEATHER,
    PARQUET,
    as_known,
    describe_formats,
    list_names,
    read_pieces,
    suffix_of,
)

ENDS = ("lower", "upper")
SHOWN_AS = {"inf": "shown as inf", "nan": "left empty", "clip": "clipped to the last neighbour"}


class Outputs(NamedTuple):
    """What to predict for every row."""

    quantiles: list[float]
    survival: list[float]
    interval: float | None = None
    mean: bool = False
    max_quantile: bool = False
    unidentified: str = "inf"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be predicted."""
        values = (self.quantiles, self.survival, self.interval, self.mean, self.max_quantile)
        return not any(values)


def predict_file(
    model: str, path: str, out: Path | None, outputs: Outputs, ids: list[str], n_jobs: int
) -> None:
    """Write the predictions for each row of a file, in its order."""
    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    names = require_names(forest, model)
    n_rows, n_unidentified, messages = 0, 0, set()
    with _writer(out) as write, closing(read_pieces(path)) as pieces:
        for piece in pieces:
            _check_ids(piece, ids, path)
            X = as_known(piece, names, forest.model_.columns, path)
            if X.num_rows == 0:
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                predicted = predict_columns(forest, X, outputs)
            messages |= {str(warning.message) for warning in caught}
            n_unidentified += sum(int((~np.isfinite(each)).sum()) for each in predicted.values())
            n_rows += X.num_rows
            write(_join_columns(piece, ids, predicted))
        if n_rows == 0:
            raise ValueError(f"{path} has no rows.")
    for message in sorted(messages):
        if "levels that were not in the training table" in message:
            print_message(f"Note    {message}")
    if n_unidentified:
        print_message(
            f"Note    {n_unidentified} predictions are not identifiable because of censoring "
            f"({SHOWN_AS[outputs.unidentified]}); --max-quantile gives the largest identifiable "
            "level of each row"
        )
    if out is not None:
        print_message(f"Wrote   {out}: {n_rows} rows")


def predict_columns(
    forest: CensoredQuantileForest, X: Any, outputs: Outputs
) -> dict[str, NDArray[np.float64]]:
    """One column for each predicted value, from one pass over the weights."""
    model = forest.model_
    matrix, _ = read_features(forest, X, model.columns)
    queries = encode_queries(model, matrix, forest.n_jobs)
    readers = make_readers(outputs, read_solver(forest, model.censoring))
    found = read_weights(model, queries, list(readers.values()), forest.n_jobs)
    columns: dict[str, Any] = {}
    for name, result in zip(readers, found, strict=True):
        if name == "quantiles":
            names = [f"q{exactly(level)}" for level in outputs.quantiles]
            if outputs.interval is not None:
                names += [f"{end}{exactly(outputs.interval)}" for end in ENDS]
            columns |= dict(zip(names, result.fill(outputs.unidentified).T, strict=True))
        elif name == "survival":
            names = [f"survival{exactly(time)}" for time in outputs.survival]
            columns |= dict(zip(names, result.T, strict=True))
        else:
            columns[name] = result
    return columns


def make_readers(outputs: Outputs, solver: QuantileSolver) -> dict[str, Reader[Any, Any]]:
    """Readers of the weights by name; quantiles and the ends of the interval are one."""
    read_choice("unidentified", outputs.unidentified, UNIDENTIFIED)
    levels = [] if outputs.interval is None else interval_levels(outputs.interval)
    levels = [*outputs.quantiles, *levels]
    readers: dict[str, Reader[Any, Any]] = {}
    if levels:
        readers["quantiles"] = Quantiles(solver, read_levels(levels)[0])
    if outputs.survival:
        readers["survival"] = SurvivalAt(outputs.survival)
    if outputs.mean:
        readers["mean"] = RestrictedMean()
    if outputs.max_quantile:
        readers["max_quantile"] = MaxLevel(solver)
    return readers


def check_format(out: Path | None) -> None:
    """Refuse a name without a known format, before any work is done."""
    if out is not None and suffix_of(str(out)) not in (*DELIMITERS, *PARQUET, *FEATHER):
        raise ValueError(f"{out}: the name must end in one of {describe_formats()}.")
    if out is not None and out.name.endswith(".gz"):
        raise ValueError(f"{out}: compressed files are read, not written.")


def _join_columns(piece: pa.Table, ids: list[str], predicted: dict[str, Any]) -> pa.Table:
    columns = {name: piece.column(name) for name in ids}
    for name, values in predicted.items():
        if name in columns:
            raise ValueError(f"--id {name}: a prediction has that name, so rename the column.")
        columns[name] = pa.array(values, from_pandas=True)
    return pa.table(columns)


@contextmanager
def _writer(out: Path | None) -> Iterator[Any]:
    """A function that appends a table to the output; a file appears once it is complete."""
    opened: Any = nullcontext(sys.stdout.buffer) if out is None else replacing(out)
    with opened as file:
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:
                writers.append(_open_writer(out, file, table.schema))
            writers[0].write_table(table)

        yield write
        for writer in writers:
            writer.close()


def _open_writer(out: Path | None, file: BinaryIO, schema: pa.Schema) -> Any:
    suffix = ".csv" if out is None else suffix_of(str(out))
    if suffix in PARQUET:
        return pyarrow.parquet.ParquetWriter(file, schema)
    if suffix in FEATHER:
        return pa.ipc.new_file(file, schema)
    delimiter = DELIMITERS[suffix] or ","
    plain = all(name.isprintable() and not {'"', delimiter} & set(name) for name in schema.names)
    options = pyarrow.csv.WriteOptions(
        delimiter=delimiter, quoting_header="none" if plain else "all_valid"
    )
    return pyarrow.csv.CSVWriter(file, schema, write_options=options)


def _check_ids(piece: pa.Table, ids: list[str], path: str) -> None:
    for name in ids:
        if name not in piece.column_names:
            raise ValueError(
                f"{path} has no column {name!r} to keep; it has {list_names(piece.column_names)}."
            )
