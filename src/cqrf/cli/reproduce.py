"""``cqrf reproduce``: the study, with a progress bar."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cqrf.cli.console import INTERRUPT_CODE, fail


def list_experiments() -> None:
    """Print a table of all experiments."""
    from cqrf.study.catalog import CATALOG

    table = Table(box=None, pad_edge=False)
    for heading in ("experiment", "what it shows", "in the paper"):
        table.add_column(heading, no_wrap=heading == "experiment")
    for entry in CATALOG:
        table.add_row(entry.name, entry.title, entry.section or "not in it")
    console = Console()
    console.print(table, highlight=False)
    console.print("\nRun some or all of them:  cqrf reproduce all --out results", highlight=False)


def run_experiments(
    names: list[str], out: Path, *, quick: bool, with_peers: bool, n_jobs: int
) -> None:
    """Run the experiments whose results are missing, draw figures, and write the summary."""
    console = Console(stderr=True)
    if n_jobs == 0:
        fail("--jobs must be a number of threads, or -1 for all cores; found 0")
    if find_spec("matplotlib") is None:
        fail("figures need matplotlib: pip install 'cqrf[plots]'")
    import matplotlib as mpl

    mpl.use("Agg")
    from cqrf.study.catalog import PEERS, find_entries
    from cqrf.study.experiment import Folder
    from cqrf.study.methods import Study
    from cqrf.study.page import write_page

    if with_peers and not PEERS.is_met():
        fail(f"--peers needs {PEERS.remedy}")
    try:
        entries = find_entries(names)
        folder = Folder(out, Study(quick=quick, with_peers=with_peers, n_jobs=n_jobs))
        left_out = [entry for entry in entries if not entry.can_run()]
        experiments = [entry.load() for entry in entries if entry not in left_out]
        n_missing = sum(len(folder.missing_cases(experiment)) for experiment in experiments)
    except ValueError as error:
        fail(str(error))
    if not experiments:
        fail(left_out[0].say_need())
    for entry in left_out:
        console.print(f"left out: {entry.say_need()}", markup=False, highlight=False)
    columns = (TextColumn("{task.description:<26}"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task("starting", total=n_missing)
            for experiment in experiments:
                progress.update(task, description=experiment.name)
                for _ in folder.run(experiment):
                    progress.advance(task)
                folder.draw(experiment)
            progress.update(task, description="done")
        n_held, n_claims = write_page(folder)
    except KeyboardInterrupt:
        console.print("stopped; the same command continues from here")
        raise typer.Exit(INTERRUPT_CODE) from None
    except OSError as error:
        fail(f"{error.filename or out}: {error.strerror or error}")
    print(f"{n_held} of {n_claims} claims hold: {out / 'README.md'}")
