"""The commands and their options; what they do stands in modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Forests that predict quantiles of times we only partly see.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def main() -> None:
    """Forests that predict quantiles of times we only partly see."""


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Names of experiments, or all. Without one: list them."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for numbers, figures and the page over them.")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few trees and rows, to see that it runs.")
    ] = False,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="quantile-forest and scikit-survival instead of our qrf and rsf."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
) -> None:
    """Run the paper's experiments, draw their figures and judge its claims.

    What the folder already holds is not run again: a stopped run goes on where it was.
    """
    from cqrf.cli.reproduce import list_experiments, run_experiments

    if not experiments:
        list_experiments()
    else:
        run_experiments(experiments, out, quick=quick, with_peers=peers, n_jobs=jobs)
