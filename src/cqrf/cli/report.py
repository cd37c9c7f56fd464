"""``cqrf report``: a page about a model and a table, or about a treatment forest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cqrf import CensoredQuantileForest
from cqrf._input.features import feature_names
from cqrf.cli.console import format_size, print_message
from cqrf.cli.models import is_treatment_file
from cqrf.cli.notation import Notation
from cqrf.cli.roles import GivenRoles, read_labelled_table
from cqrf.cli.tables import as_known, name_labels, name_source, read_whole

if TYPE_CHECKING:
    from cqrf.effects import CensoredTreatmentForest


class ReportTask(NamedTuple):
    """Model and table of a report, and where to write it.

    ``path`` may be None for a treatment forest, which has its training rows.
    """

    model: str
    path: str | None
    out: Path
    given: GivenRoles
    title: str | None = None
    id_column: str | None = None
    n_jobs: int = -1


def report_file(task: ReportTask) -> None:
    """Write the page."""
    if is_treatment_file(task.model):
        report_treatment(task)
    else:
        report_table(task)
    size = format_size(task.out.stat().st_size)
    print_message(f"Wrote   {task.out} ({size}): open it in a browser")


def report_table(task: ReportTask) -> None:
    """Write the page about a forest and a table."""
    from cqrf.report import write_report

    if task.path is None:
        raise ValueError(
            f"DATA is missing: {task.model} holds a forest, whose report needs a table."
        )
    forest = CensoredQuantileForest.load(task.model).set_params(n_jobs=task.n_jobs)
    table = read_labelled_table(forest, task.model, task.path, task.given, task.id_column)
    source = name_source(task.path)
    title = task.title or f"Report on {source}"
    write_report(forest, table.X, table.y, task.out, title=title, ids=table.ids, source=source)


def report_treatment(task: ReportTask) -> None:
    """Write the page about a treatment forest; its effects are shown for the rows of the table."""
    from cqrf.effects import CensoredTreatmentForest
    from cqrf.report import report_effects

    forest = CensoredTreatmentForest.load(task.model).set_params(n_jobs=task.n_jobs)
    source = forest.notes_.get("source") if task.path is None else name_source(task.path)
    title = task.title or name_comparison(forest)
    X = None if task.path is None else read_covariates(forest, task)
    report_effects(forest, task.out, X, title=title, source=source)


def name_comparison(forest: CensoredTreatmentForest) -> str:
    """The title of a page: the column of the treatment, if it is known, and the arms."""
    column, arms = forest.notes_.get("treatment"), f"{forest.arms_[1]} against {forest.arms_[0]}"
    return f"Effects of {arms}" if column is None else f"Effects of {column}: {arms}"


def read_covariates(forest: CensoredTreatmentForest, task: ReportTask) -> Any:
    """The columns of the table that the forest reads."""
    path = str(task.path)
    names, columns = feature_names(forest), forest.model_.effect.columns
    notation = Notation.from_notes(forest.notes_, task.given.encoding)
    table = read_whole(path, name_labels(names, columns), notation).table
    return as_known(table, names, columns, path, notation)
