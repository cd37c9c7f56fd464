"""``cqrf report``: a page about a model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cqrf import CensoredQuantileForest
from cqrf.cli.console import format_size, print_message
from cqrf.cli.roles import GivenRoles, read_labelled_table
from cqrf.cli.tables import name_source


class ReportTask(NamedTuple):
    """Model and table of a report, and where to write it."""

    model: str
    path: str
    out: Path
    given: GivenRoles
    title: str | None = None
    id_column: str | None = None
    n_jobs: int = -1


def report_file(task: ReportTask) -> None:
    """Write the page."""
    from cqrf.report import write_report

    forest = CensoredQuantileForest.load(task.model).set_params(n_jobs=task.n_jobs)
    table = read_labelled_table(forest, task.model, task.path, task.given, task.id_column)
    source = name_source(task.path)
    title = task.title or f"Report on {source}"
    write_report(forest, table.X, table.y, task.out, title=title, ids=table.ids, source=source)
    size = format_size(task.out.stat().st_size)
    print_message(f"Wrote   {task.out} ({size}): open it in a browser")
