"""``cqrf report``: a page about a model and a table."""

from __future__ import annotations

from pathlib import Path

from cqrf import CensoredQuantileForest
from cqrf.cli.console import say, size_in_words
from cqrf.cli.predicting import feature_names
from cqrf.cli.roles import Roles, read_target_columns
from cqrf.cli.tables import STDIN, as_known, as_text, name_labels, name_some, read_whole


def report_file(
    model: str,
    path: str,
    out: Path,
    given: dict[str, str | None],
    *,
    title: str | None,
    id_column: str | None,
    n_jobs: int,
) -> None:
    """Write the page."""
    from cqrf.report import write_report

    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    roles = Roles.from_notes(forest.notes_, **given)
    names, columns = feature_names(forest, model), forest.model_.columns
    table = read_whole(path, (*name_labels(names, columns), id_column))
    X = as_known(table, names, columns, path)
    ids = None
    if id_column is not None:
        if id_column not in table.column_names:
            raise ValueError(
                f"{path} has no column {id_column!r}; it has {name_some(table.column_names)}."
            )
        ids = as_text(table.column(id_column)).to_pylist()
    y = read_target_columns(table, roles, path)
    source = "standard input" if path == STDIN else Path(path).name
    write_report(forest, X, y, out, title=title or f"Report on {source}", ids=ids, source=source)
    say(f"Wrote   {out} ({size_in_words(out.stat().st_size)}): open it in a browser")
