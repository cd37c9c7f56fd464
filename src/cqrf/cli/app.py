"""The commands and their options; what they do stands in modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cqrf.cli.console import check_output, fail, plainly

app = typer.Typer(
    help="Forests that predict quantiles of times we only partly see.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must be a number of threads, or -1 for one for each core")
    return jobs


MODEL_SUFFIXES, PAGE_SUFFIXES = (".cqrf",), (".html", ".htm")
TABLE = "CSV, TSV, Parquet or Feather file, or - for CSV on standard input."
Data = Annotated[str, typer.Argument(metavar="DATA", help=TABLE)]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, as cqrf fit writes it.")]
Time = Annotated[str, typer.Option("--time", help="Column with the observed time.")]
KeptTime = Annotated[
    str | None, typer.Option("--time", help="Column with the time, if not that of the fit.")
]
Event = Annotated[
    str | None,
    typer.Option("--event", help="Column that says whether the event was seen. None: always."),
]
EventValue = Annotated[
    str | None,
    typer.Option("--event-value", help="Value of that column that means the event was seen."),
]
Entry = Annotated[
    str | None, typer.Option("--entry", help="Column with the time of delayed entry.")
]
Weight = Annotated[str | None, typer.Option("--weight", help="Column with weights of the rows.")]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Column with clusters that must stay together.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="Column to leave out; may be repeated.")
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="Column of numbers that are labels; may be repeated."),
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
    int, typer.Option("--jobs", callback=_check_jobs, help="Threads; -1 is one for each core.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Forests that predict quantiles of times we only partly see."""
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

    Every column that has no other role is a feature; text and categories are split by level, and
    missing values are allowed.
    """
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with plainly():
        from cqrf.cli.fitting import fit_file, parse_settings
        from cqrf.cli.roles import Roles

        lists = tuple(ignore or ()), tuple(category or ())
        roles = Roles(time, event, event_value, entry, weight, groups, *lists)
        chosen = _forest_settings(trees, seed, jobs) | parse_settings(settings or [])
        fit_file(data, roles, out, chosen, as_json=as_json)


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
    trials: Annotated[int, typer.Option(help="Settings to try.")] = 27,
    quantiles: Annotated[
        str, typer.Option("--quantiles", "-q", help="Levels to judge by, as in .25,.5,.75.")
    ] = ".25,.5,.75",
    trees: Trees = 500,
    seed: Seed = 0,
    settings: Set = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Like fit, with the settings that do best out of bag among some that are tried."""
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with plainly():
        from cqrf.cli.fitting import parse_settings, tune_file
        from cqrf.cli.roles import Roles

        lists = tuple(ignore or ()), tuple(category or ())
        roles = Roles(time, event, event_value, entry, weight, groups, *lists)
        chosen = _forest_settings(trees, seed, jobs) | parse_settings(settings or [])
        levels = _numbers("--quantiles", quantiles)
        tune_file(data, roles, out, chosen, n_trials=trials, quantiles=levels, as_json=as_json)


@app.command()
def predict(
    model: Model,
    data: Data,
    quantiles: Annotated[
        str, typer.Option("--quantiles", "-q", help="Levels between 0 and 1, as in .1,.5,.9.")
    ] = ".5",
    survival: Annotated[
        str, typer.Option(help="Times at which to give P(T > t), as in 365,730.")
    ] = "",
    interval: Annotated[
        float | None, typer.Option(help="Coverage of an interval for the time, as in .9.")
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Add the restricted mean.")] = False,
    max_quantile: Annotated[
        bool, typer.Option("--max-quantile", help="Add the largest level that can be told.")
    ] = False,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="Column to keep beside the answers.")
    ] = None,
    unidentified: Annotated[
        str, typer.Option(help="What stands where censoring hides a quantile: inf, clip or nan.")
    ] = "inf",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, of the format its name says."),
    ] = None,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Predict for the rows of a file of any length, piece by piece.

    Columns are found by name; others are ignored. Without --out, CSV goes to standard output.
    """
    check_output(out, force, model, data)
    with plainly():
        from cqrf.cli.predicting import Questions, check_format, predict_file

        check_format(out)
        levels = _numbers("--quantiles", quantiles)
        times = _numbers("--survival", survival)
        questions = Questions(levels, times, interval, mean, max_quantile, unidentified)
        if not any(questions[:5]):
            fail("nothing is asked: give --quantiles, --survival, --interval or --mean")
        predict_file(model, data, out, questions, ids or [], jobs)


@app.command()
def evaluate(
    model: Model,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help=f"{TABLE} Without it: out of bag.")
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Say how good a model is: on a table it has not seen, or out of bag."""
    with plainly():
        from cqrf.cli.judging import evaluate_file

        given = {"time": time, "event": event, "event_value": event_value, "entry": entry}
        evaluate_file(model, data, given, jobs, as_json=as_json)


@app.command()
def info(model: Model, as_json: Json = False) -> None:
    """Say what a model file holds."""
    with plainly():
        from cqrf.cli.judging import show_info

        show_info(model, as_json=as_json)


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
        str | None, typer.Option("--id", help="Column that names the rows on the page.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Write a page about a model and a table: one HTML file that needs no network."""
    check_output(out, force, model, data, suffixes=PAGE_SUFFIXES)
    with plainly():
        from cqrf.cli.reporting import report_file

        given = {"time": time, "event": event, "event_value": event_value, "entry": entry}
        report_file(model, data, out, given, title=title, id_column=id_column, n_jobs=jobs)


@app.command()
def serve(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Table of rows to start from; training rows are shown."),
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    entry: Entry = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of the table that names its rows.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's own see it.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 is any that is free.")
    ] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Name by which it may be called; may be repeated."),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Most rows of one request.")] = 1000,
    max_bytes: Annotated[
        int, typer.Option(min=1000, help="Most bytes of one request.")
    ] = 1_000_000,
    jobs: Jobs = -1,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a model as a page for what-if questions and as a JSON API, until Ctrl-C."""
    with plainly():
        from cqrf.cli.serving import serve_file
        from cqrf.serve.app import MAX_ANSWERS
        from cqrf.serve.schema import Limits

        serve_file(
            model,
            data,
            {"time": time, "event": event, "event_value": event_value, "entry": entry},
            id_column=id_column,
            host=host,
            port=port,
            hosts=allow_host or [],
            limits=Limits(rows=max_rows, bytes=max_bytes, answers=max(max_rows, MAX_ANSWERS)),
            n_jobs=jobs,
            opens=opens,
        )


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the files.")] = Path("demo"),
) -> None:
    """Fit the bundled PBC data, show what is predicted, and write a report."""
    with plainly():
        from cqrf.demo import main as run

        run(folder)


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


def _forest_settings(trees: int, seed: int, jobs: int) -> dict[str, Any]:
    return {"n_estimators": trees, "random_state": seed, "n_jobs": jobs}


def _numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        fail(f"{option} {text!r}: write numbers with commas between them, as in .1,.5,.9")
