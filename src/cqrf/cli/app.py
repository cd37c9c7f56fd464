"""The program ``cqrf``: its commands, and those that need no table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cqrf.cli import fit_commands, model_commands
from cqrf.cli.console import exit_on_error

app = typer.Typer(
    help="Forests that predict quantiles of censored times.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Forests that predict quantiles of censored times."""
    if version:
        import cqrf

        print(cqrf.__version__)


app.command()(fit_commands.fit)
app.command()(fit_commands.tune)
app.command()(fit_commands.conformal)
app.command()(fit_commands.effects)
app.command()(model_commands.predict)
app.command()(model_commands.evaluate)
app.command()(model_commands.info)
app.command()(model_commands.report)
app.command()(model_commands.serve)


@app.command()
def warm() -> None:
    """Compile the kernels ahead of time, for container images and CI.

    They are kept in the folder NUMBA_CACHE_DIR, or next to the package if it is not set.
    """
    with exit_on_error():
        from cqrf.cli.warm import compile_kernels

        compile_kernels()


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("demo"),
) -> None:
    """Fit the bundled PBC data, print predictions, and write a report."""
    with exit_on_error():
        from cqrf.demo import main as run

        run(folder)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Names of experiments, or all. Default: list them."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for numbers, figures and their summary.")
    ] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Few trees and rows, as a test.")] = False,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="quantile-forest and scikit-survival instead of our qrf and rsf."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of threads; -1: all cores.")] = -1,
) -> None:
    """Run the paper's experiments, draw their figures and check its claims.

    Results that are in the folder are not computed again, so a stopped run can be continued.
    """
    from cqrf.cli.reproduce import list_experiments, run_experiments

    if not experiments:
        list_experiments()
    else:
        run_experiments(experiments, out, quick=quick, with_peers=peers, n_jobs=jobs)
