"""The commands and their options; each command is implemented in its own module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cqrf.cli.console import check_output, exit_on_error, fail

app = typer.Typer(
    help="Forests that predict quantiles of censored times.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must be a number of threads, or -1 for all cores")
    return jobs


MODEL_SUFFIXES, PAGE_SUFFIXES = (".cqrf",), (".html", ".htm")
TABLE = "CSV, TSV, Parquet or Feather file, or - for CSV on standard input."
Data = Annotated[str, typer.Argument(metavar="DATA", help=TABLE)]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, as cqrf fit writes it.")]
Time = Annotated[str, typer.Option("--time", help="Column with the observed time.")]
KeptTime = Annotated[
    str | None, typer.Option("--time", help="Column with the time. Default: as in fit.")
]
Event = Annotated[
    str | None,
    typer.Option("--event", help="Column of the event status. Default: every row is an event."),
]
EventValue = Annotated[
    str | None,
    typer.Option("--event-value", help="Value of that column that means an observed event."),
]
Entry = Annotated[
    str | None, typer.Option("--entry", help="Column with the time of delayed entry.")
]
Weight = Annotated[str | None, typer.Option("--weight", help="Column with sample weights.")]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Column with clusters; a tree draws whole clusters.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="Column to leave out; may be repeated.")
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="Column of numbers that are categories; may be repeated."),
]
ModelOut = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
Trees = Annotated[int, typer.Option("--trees", help="Number of trees.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the forest.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any setting of CensoredQuantileForest; repeatable."
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", callback=_check_jobs, help="Number of threads; -1: all cores.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Forests that predict quantiles of censored times."""
    if version:
        import cqrf

        print(cqrf.__version__)


@app.command()
def fit(
    data: Data,
    time: Time,
    out: ModelOut,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    weight: Weight = None,
    groups: Groups = None,
    ignore: Ignore = None,
    category: Category = None,
    trees: Trees = 500,
    seed: Seed = 0,
    settings: Set = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a forest to a table and save it.

    Every column without another role is a feature. Text columns are categories; missing values
    are allowed.
    """
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.fit import FitTask, fit_file, parse_settings
        from cqrf.cli.roles import Roles

        roles = Roles(
            time=time,
            event=event,
            event_value=event_value,
            entry=entry,
            weight=weight,
            groups=groups,
            ignore=tuple(ignore or ()),
            categories=tuple(category or ()),
        )
        chosen = _forest_settings(trees, seed, jobs) | parse_settings(settings or [])
        fit_file(FitTask(data, roles, out, chosen, as_json))


@app.command()
def tune(
    data: Data,
    time: Time,
    out: ModelOut,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    weight: Weight = None,
    groups: Groups = None,
    ignore: Ignore = None,
    category: Category = None,
    trials: Annotated[int, typer.Option(help="Number of settings to try.")] = 27,
    quantiles: Annotated[
        str, typer.Option("--quantiles", "-q", help="Levels of the loss, as in .25,.5,.75.")
    ] = ".25,.5,.75",
    trees: Trees = 500,
    seed: Seed = 0,
    settings: Set = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Like fit, with the settings of least out-of-bag loss among those tried."""
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.fit import FitTask, parse_settings, tune_file
        from cqrf.cli.roles import Roles

        roles = Roles(
            time=time,
            event=event,
            event_value=event_value,
            entry=entry,
            weight=weight,
            groups=groups,
            ignore=tuple(ignore or ()),
            categories=tuple(category or ()),
        )
        chosen = _forest_settings(trees, seed, jobs) | parse_settings(settings or [])
        levels = _numbers("--quantiles", quantiles)
        tune_file(FitTask(data, roles, out, chosen, as_json), trials, levels)


@app.command()
def predict(
    model: Model,
    data: Data,
    quantiles: Annotated[
        str, typer.Option("--quantiles", "-q", help="Levels between 0 and 1, as in .1,.5,.9.")
    ] = ".5",
    survival: Annotated[
        str, typer.Option(help="Times of survival probabilities P(T > t), as in 365,730.")
    ] = "",
    interval: Annotated[
        float | None, typer.Option(help="Coverage of a prediction interval, as in .9.")
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Add the restricted mean.")] = False,
    max_quantile: Annotated[
        bool, typer.Option("--max-quantile", help="Add the largest identifiable level.")
    ] = False,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column to copy; may be repeated."),
    ] = None,
    unidentified: Annotated[
        str, typer.Option(help="Value of a quantile that is not identifiable: inf, clip or nan.")
    ] = "inf",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write; its suffix is the format."),
    ] = None,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Predict for the rows of a file of any length.

    Columns are found by name; others are ignored. Without --out, CSV goes to standard output.
    """
    check_output(out, force, model, data)
    with exit_on_error():
        from cqrf.cli.predict import Outputs, check_format, predict_file

        check_format(out)
        levels = _numbers("--quantiles", quantiles)
        times = _numbers("--survival", survival)
        outputs = Outputs(levels, times, interval, mean, max_quantile, unidentified)
        if outputs.is_empty:
            fail("nothing to predict: give --quantiles, --survival, --interval or --mean")
        predict_file(model, data, out, outputs, ids or [], jobs)


@app.command()
def evaluate(
    model: Model,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help=f"{TABLE} Default: out of bag.")
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Print the scores of a model on a table, or out of bag."""
    with exit_on_error():
        from cqrf.cli.evaluate import evaluate_file
        from cqrf.cli.roles import GivenRoles

        given = GivenRoles(time, event, event_value, entry)
        evaluate_file(model, data, given, jobs, as_json=as_json)


@app.command()
def info(model: Model, as_json: Json = False) -> None:
    """Print what a model file holds."""
    with exit_on_error():
        from cqrf.cli.info import print_info

        print_info(model, as_json=as_json)


@app.command()
def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with labels of the rows.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Write a report on a model and a table: one HTML file that needs no network."""
    check_output(out, force, model, data, suffixes=PAGE_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.report import ReportTask, report_file
        from cqrf.cli.roles import GivenRoles

        given = GivenRoles(time, event, event_value, entry)
        report_file(ReportTask(model, data, out, given, title, id_column, jobs))


@app.command()
def serve(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Table of rows to start from."),
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of the table with labels of the rows.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; only this machine by default.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 is any that is free.")
    ] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Host name that requests may use; may be repeated."),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Most rows of one request.")] = 1000,
    max_bytes: Annotated[
        int, typer.Option(min=1000, help="Most bytes of one request.")
    ] = 1_000_000,
    jobs: Jobs = -1,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a model as a page for what-if questions and as a JSON API, until Ctrl-C."""
    with exit_on_error():
        from cqrf.cli.roles import GivenRoles
        from cqrf.cli.serve import ServeTask, serve_file
        from cqrf.serve.app import MAX_VALUES
        from cqrf.serve.schema import Limits

        task = ServeTask(
            model=model,
            path=data,
            given=GivenRoles(time, event, event_value, entry),
            id_column=id_column,
            host=host,
            port=port,
            hosts=allow_host or [],
            limits=Limits(rows=max_rows, bytes=max_bytes, values=max(max_rows, MAX_VALUES)),
            n_jobs=jobs,
            opens=opens,
        )
        serve_file(task)


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


def _forest_settings(trees: int, seed: int, jobs: int) -> dict[str, Any]:
    return {"n_estimators": trees, "random_state": seed, "n_jobs": jobs}


def _numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        fail(f"{option} {text!r}: write numbers with commas between them, as in .1,.5,.9")
