"""``cqrf predict``: a file of any length against a model, piece by piece."""

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

from cqrf import CensoredQuantileForest
from cqrf._runtime.arguments import exactly
from cqrf._runtime.files import replacing
from cqrf.cli.console import say
from cqrf.cli.tables import (
    DELIMITERS,
    FEATHER,
    PARQUET,
    as_known,
    describe_formats,
    name_some,
    read_pieces,
    suffix_of,
)


class Questions(NamedTuple):
    """What is asked about every row."""

    quantiles: list[float]
    survival: list[float]
    interval: float | None = None
    mean: bool = False
    max_quantile: bool = False
    unidentified: str = "inf"


def predict_file(
    model: str, path: str, out: Path | None, questions: Questions, ids: list[str], n_jobs: int
) -> None:
    """Write what the model says about each row of a file, in its order."""
    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    names = feature_names(forest, model)
    n_rows, n_hidden, said = 0, 0, set()
    with _writer(out) as write, closing(read_pieces(path)) as pieces:
        for piece in pieces:
            _check_ids(piece, ids, path)
            X = as_known(piece, names, forest.model_.columns, path)
            if X.num_rows == 0:
                continue
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                answers = answer(forest, X, questions)
            said |= {str(warning.message) for warning in heard} - {None}
            n_hidden += sum(int((~np.isfinite(a)).sum()) for a in answers.values())
            n_rows += X.num_rows
            columns = {name: piece.column(name) for name in ids}
            for name, values in answers.items():
                if name in columns:
                    raise ValueError(f"--id {name}: an answer has that name, so rename the column.")
                columns[name] = pa.array(values, from_pandas=True)
            write(pa.table(columns))
        if n_rows == 0:
            raise ValueError(f"{path} has no rows.")
    for message in sorted(said):
        if "levels that were not in the training table" in message:
            say(f"Note    {message}")
    if n_hidden:
        say(
            f"Note    {n_hidden} of the answers lie where censoring hides them "
            f"({_shown_as(questions.unidentified)}); --max-quantile gives the limit of each row"
        )
    if out is not None:
        say(f"Wrote   {out}: {n_rows} rows")


def answer(forest: CensoredQuantileForest, X: Any, questions: Questions) -> dict[str, Any]:
    """One column for each question."""
    settings = {"unidentified": questions.unidentified}
    answers: dict[str, Any] = {}
    if questions.quantiles:
        values = forest.predict(X, questions.quantiles, **settings)
        answers |= {f"q{exactly(x)}": values[:, k] for k, x in enumerate(questions.quantiles)}
    if questions.interval is not None:
        ends = forest.predict_interval(X, questions.interval, **settings)
        answers |= {f"{end}{exactly(questions.interval)}": ends[:, k] for k, end in enumerate(ENDS)}
    if questions.survival:
        curves = np.asarray(forest.predict_survival(X, questions.survival))
        answers |= {f"survival{exactly(x)}": curves[:, k] for k, x in enumerate(questions.survival)}
    if questions.mean:
        answers["mean"] = forest.predict_mean(X)
    if questions.max_quantile:
        answers["max_quantile"] = forest.max_quantile(X)
    return answers


ENDS = ("lower", "upper")


def feature_names(forest: CensoredQuantileForest, model: str) -> list[str]:
    """Names of the model's columns."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{model} was fitted to an array without column names; fit it to a frame, or with "
            "cqrf fit."
        )
    return [str(name) for name in names]


def check_format(out: Path | None) -> None:
    """Refuse a name that does not say a format, before any work is done."""
    if out is not None and suffix_of(str(out)) not in (*DELIMITERS, *PARQUET, *FEATHER):
        raise ValueError(f"{out}: the name must end in one of {describe_formats()}.")
    if out is not None and out.name.endswith(".gz"):
        raise ValueError(f"{out}: compressed files are read, not written.")


@contextmanager
def _writer(out: Path | None) -> Iterator[Any]:
    """A function that appends a table to the file; the file is there once all were."""
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
                f"{path} has no column {name!r} to keep; it has {name_some(piece.column_names)}."
            )


def _shown_as(unidentified: str) -> str:
    return {"inf": "inf", "nan": "left empty", "clip": "cut at the last neighbour"}[unidentified]
