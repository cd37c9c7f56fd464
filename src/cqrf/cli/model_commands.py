"""Commands that use a model file: predict, evaluate, info, report and serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cqrf.cli.console import check_output, exit_on_error
from cqrf.cli.options import (
    PAGE_SUFFIXES,
    TABLE,
    Beyond,
    Bounds,
    CauseOption,
    CensoredValue,
    Confidence,
    Data,
    DropInvalid,
    Encoding,
    Entry,
    Event,
    EventValue,
    Force,
    Given,
    Horizon,
    Ids,
    Incidence,
    Interval,
    Jobs,
    Json,
    KeptTime,
    LowerBound,
    MaxQuantile,
    Mean,
    Model,
    Quantiles,
    RoundTo,
    Survival,
    TableOut,
    Unidentified,
    parse_numbers,
)


def predict(
    model: Model,
    data: Data,
    quantiles: Quantiles = None,
    survival: Survival = "",
    incidence: Incidence = "",
    cause: CauseOption = None,
    interval: Interval = None,
    mean: Mean = False,
    horizon: Horizon = None,
    max_quantile: MaxQuantile = False,
    bounds: Bounds = False,
    lower_bound: LowerBound = None,
    confidence: Confidence = None,
    given: Given = None,
    ids: Ids = None,
    unidentified: Unidentified = "inf",
    beyond: Beyond = "nan",
    out: TableOut = None,
    encoding: Encoding = None,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Predict for the rows of a file of any length.

    Columns are found by name; others are ignored. Without --out, CSV goes to standard output.
    """
    check_output(out, force, model, data)
    with exit_on_error():
        from cqrf.cli.outputs import Outputs
        from cqrf.cli.predict import PredictTask, predict_file
        from cqrf.cli.writers import check_format

        check_format(out)
        outputs = Outputs(
            quantiles=None if quantiles is None else parse_numbers("--quantiles", quantiles),
            survival=parse_numbers("--survival", survival),
            incidence=parse_numbers("--incidence", incidence),
            cause=cause,
            interval=interval,
            mean=mean,
            horizon=horizon,
            max_quantile=max_quantile,
            bounds=bounds,
            lower_bound=lower_bound,
            confidence=confidence,
            unidentified=unidentified,
            beyond=beyond,
        )
        predict_file(PredictTask(model, data, out, outputs, given, ids or [], encoding, jobs))


def evaluate(
    model: Model,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help=f"{TABLE} Default: out of bag.")
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    censored: CensoredValue = None,
    entry: Entry = None,
    encoding: Encoding = None,
    drop_invalid: DropInvalid = False,
    jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Print the scores of a model on a table, or out of bag."""
    with exit_on_error():
        from cqrf.cli.evaluate import evaluate_file
        from cqrf.cli.roles import GivenRoles

        given = GivenRoles(time, event, event_value, entry, encoding, drop_invalid, censored)
        evaluate_file(model, data, given, jobs, as_json=as_json)


def info(model: Model, as_json: Json = False) -> None:
    """Print what a model file holds."""
    with exit_on_error():
        from cqrf.cli.info import print_info

        print_info(model, as_json=as_json)


def report(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help=f"{TABLE} A treatment forest needs none."),
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    censored: CensoredValue = None,
    entry: Entry = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with labels of the rows.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    encoding: Encoding = None,
    drop_invalid: DropInvalid = False,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    """Write a report on a model and a table: one HTML file that needs no network."""
    check_output(out, force, model, data, suffixes=PAGE_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.report import ReportTask, report_file
        from cqrf.cli.roles import GivenRoles

        given = GivenRoles(time, event, event_value, entry, encoding, drop_invalid, censored)
        report_file(ReportTask(model, data, out, given, title, id_column, jobs))


def serve(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Table of rows to start from."),
    ] = None,
    time: KeptTime = None,
    event: Event = None,
    event_value: EventValue = None,
    censored: CensoredValue = None,
    entry: Entry = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of the table with labels of the rows.")
    ] = None,
    encoding: Encoding = None,
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
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Refuse a level that training did not have; else it is missing."
        ),
    ] = False,
    jobs: Jobs = -1,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    unit: RoundTo = None,
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
            given=GivenRoles(time, event, event_value, entry, encoding, censored=censored),
            id_column=id_column,
            host=host,
            port=port,
            hosts=allow_host or [],
            limits=Limits(rows=max_rows, bytes=max_bytes, values=max(max_rows, MAX_VALUES)),
            strict=strict,
            n_jobs=jobs,
            opens=opens,
            unit=unit,
        )
        serve_file(task)
