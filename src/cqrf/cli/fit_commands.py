"""Commands that fit a model: fit, tune and conformal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cqrf.cli.console import check_output, exit_on_error
from cqrf.cli.options import (
    MODEL_SUFFIXES,
    BagSize,
    CalibrationShare,
    Category,
    CensoringTime,
    Coverage,
    Cutoff,
    Data,
    Dates,
    Decimal,
    DropInvalid,
    Encoding,
    Entry,
    Event,
    EventName,
    EventValue,
    Force,
    Groups,
    Ignore,
    Jobs,
    Json,
    Method,
    Missing,
    ModelOut,
    Seed,
    Set,
    Time,
    Trees,
    Unit,
    Weight,
    WorkingModel,
    parse_numbers,
)

if TYPE_CHECKING:
    from cqrf.cli.fit import FitTask


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
    unit: Unit = None,
    event_name: EventName = None,
    encoding: Encoding = None,
    na: Missing = None,
    decimal: Decimal = None,
    dates: Dates = None,
    drop_invalid: DropInvalid = False,
    trees: Trees = 500,
    bag_size: BagSize = 1,
    working_model: WorkingModel = None,
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
    options = locals()
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.fit import fit_file

        fit_file(read_task(options))


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
    unit: Unit = None,
    event_name: EventName = None,
    encoding: Encoding = None,
    na: Missing = None,
    decimal: Decimal = None,
    dates: Dates = None,
    drop_invalid: DropInvalid = False,
    trials: Annotated[int, typer.Option(min=1, help="Number of settings to try.")] = 27,
    quantiles: Annotated[
        str | None,
        typer.Option(
            "--quantiles",
            "-q",
            help="Levels of the loss, as in .25,.5,.75. Default: these, or lower ones where "
            "censoring hides them.",
            show_default=False,
        ),
    ] = None,
    trees: Trees = 500,
    bag_size: BagSize = 1,
    working_model: WorkingModel = None,
    seed: Seed = 0,
    settings: Set = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Like fit, with the settings of least out-of-bag loss among those tried."""
    options = locals()
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.fit import tune_file

        levels = None if quantiles is None else parse_numbers("--quantiles", quantiles)
        tune_file(read_task(options), trials, levels)


def conformal(
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
    unit: Unit = None,
    event_name: EventName = None,
    encoding: Encoding = None,
    na: Missing = None,
    decimal: Decimal = None,
    dates: Dates = None,
    drop_invalid: DropInvalid = False,
    censoring_time: CensoringTime = None,
    coverage: Coverage = 0.9,
    method: Method = "adaptive",
    cutoff: Cutoff = None,
    calibration_share: CalibrationShare = 0.5,
    trees: Trees = 500,
    bag_size: BagSize = 1,
    working_model: WorkingModel = None,
    seed: Seed = 0,
    settings: Set = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a forest whose lower bounds have guaranteed coverage, and save it.

    cqrf predict then writes the bounds.
    """
    options = locals()
    check_output(out, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.conformal import ConformalSettings, conformal_file

        chosen = ConformalSettings(coverage, method, cutoff, calibration_share)
        conformal_file(read_task(options), chosen)


def read_task(options: Mapping[str, Any]) -> FitTask:
    """What to fit, from the options that these commands share."""
    from cqrf.cli.fit import FitTask, parse_settings
    from cqrf.cli.notation import parse_notation
    from cqrf.cli.roles import Roles

    columns = ("time", "event", "event_value", "entry", "weight", "groups")
    roles = Roles(
        **{name: options[name] for name in columns},
        ignore=tuple(options["ignore"] or ()),
        categories=tuple(options["category"] or ()),
        censoring_time=options.get("censoring_time"),
    )
    names = {
        "n_estimators": "trees",
        "bag_size": "bag_size",
        "random_state": "seed",
        "n_jobs": "jobs",
        "time_unit": "unit",
        "event_name": "event_name",
    }
    settings = {setting: options[name] for setting, name in names.items()}
    settings |= read_working_model(options["working_model"])
    notation = {name: options[name] for name in ("encoding", "na", "decimal", "dates")}
    return FitTask(
        path=options["data"],
        roles=roles,
        out=options["out"],
        settings=settings | parse_settings(options["settings"] or []),
        as_json=options["as_json"],
        notation=parse_notation(**notation),
        drop_invalid=options["drop_invalid"],
    )


def read_working_model(choice: str | None) -> dict[str, str | None]:
    """The setting that --working-model gives, if any."""
    if choice is None:
        return {}
    choices = {"auto": "auto", "cox": "cox", "none": None}
    if choice not in choices:
        raise ValueError(f"--working-model {choice}: write one of {', '.join(choices)}.")
    return {"working_model": choices[choice]}
