"""Commands that fit a model: fit, tune, conformal and effects."""

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
    CensoredValue,
    CensoringTime,
    Control,
    Coverage,
    Cutoff,
    Data,
    Dates,
    Decimal,
    DropInvalid,
    DropUntreated,
    EffectQuantiles,
    EffectSet,
    EffectsModelOut,
    EffectsOut,
    EffectTimes,
    EffectTrees,
    Encoding,
    Entry,
    Event,
    EventName,
    EventValue,
    Force,
    GainHorizon,
    Groups,
    Ignore,
    Jobs,
    Json,
    Lower,
    Method,
    Missing,
    ModelOut,
    NoIntervals,
    Propensity,
    Seed,
    Set,
    Subgroups,
    Time,
    TimeUnlessInterval,
    Treatment,
    Trees,
    Unit,
    Upper,
    Weight,
    WorkingModel,
    parse_numbers,
)

if TYPE_CHECKING:
    from cqrf.cli.fit import FitTask
    from cqrf.cli.roles import Roles


def fit(
    data: Data,
    out: ModelOut,
    time: TimeUnlessInterval = None,
    lower: Lower = None,
    upper: Upper = None,
    event: Event = None,
    event_value: EventValue = None,
    censored: CensoredValue = None,
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
    censored: CensoredValue = None,
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
    ends: NoIntervals = None,
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
    censored: CensoredValue = None,
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
    ends: NoIntervals = None,
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


def effects(
    data: Data,
    time: Time,
    treatment: Treatment,
    control: Control = None,
    event: Event = None,
    event_value: EventValue = None,
    propensity: Propensity = None,
    horizon: GainHorizon = None,
    times: EffectTimes = "",
    quantiles: EffectQuantiles = "",
    subgroups: Subgroups = "",
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
    drop_invalid: DropUntreated = False,
    output: EffectsOut = None,
    model: EffectsModelOut = None,
    trees: EffectTrees = 2000,
    seed: Seed = 0,
    settings: EffectSet = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: Json = False,
    ends: NoIntervals = None,
) -> None:
    """Compare two treatments: average effects, also in subgroups, and whether effects differ.

    Every column without another role is a covariate, measured before treatment.
    """
    options = locals()
    check_output(output, force, data)
    check_output(model, force, data, suffixes=MODEL_SUFFIXES)
    with exit_on_error():
        from cqrf.cli.effects import EffectsTask, effects_file, read_propensity
        from cqrf.cli.writers import check_format

        check_format(output)
        column, known = read_propensity(propensity)
        fitting = read_task({**options, "out": model, "propensity": column})
        task = EffectsTask(
            fitting=fitting,
            control=control,
            propensity=known,
            horizon=horizon,
            times=parse_numbers("--times", times),
            quantiles=parse_numbers("--quantiles", quantiles),
            subgroups=subgroups,
            output=output,
        )
        effects_file(task)


def read_task(options: Mapping[str, Any]) -> FitTask:
    """What to fit, from the options that these commands share."""
    from cqrf.cli.fit import FitTask, parse_settings
    from cqrf.cli.notation import parse_notation

    names = {
        "n_estimators": "trees",
        "bag_size": "bag_size",
        "random_state": "seed",
        "n_jobs": "jobs",
        "time_unit": "unit",
        "event_name": "event_name",
    }
    settings = {setting: options[name] for setting, name in names.items() if name in options}
    settings |= read_working_model(options.get("working_model"))
    notation = {name: options[name] for name in ("encoding", "na", "decimal", "dates")}
    return FitTask(
        path=options["data"],
        roles=read_roles(options),
        out=options["out"],
        settings=settings | parse_settings(options["settings"] or []),
        as_json=options["as_json"],
        notation=parse_notation(**notation),
        drop_invalid=options["drop_invalid"],
    )


def read_roles(options: Mapping[str, Any]) -> Roles:
    """Roles of columns; a command need not have all of them."""
    from cqrf.cli.roles import Roles

    columns = ("event", "event_value", "censored", "entry", "weight", "groups")
    others = ("censoring_time", "treatment", "propensity", "lower")
    check_ends(options)
    return Roles(
        time=options.get("upper") or options["time"],
        **{name: options[name] for name in (*columns, *others) if name in options},
        ignore=tuple(options["ignore"] or ()),
        categories=tuple(options["category"] or ()),
    )


def check_ends(options: Mapping[str, Any]) -> None:
    """Raise unless there is a time, or both ends of an interval and nothing that goes with one."""
    time, lower, upper = (options.get(name) for name in ("time", "lower", "upper"))
    if (lower is None) != (upper is None):
        raise ValueError("give both --lower and --upper, or --time.")
    if time is None and lower is None:
        raise ValueError("give --time, or --lower and --upper for times known to an interval.")
    for name in ("time", "event", "event_value", "censored", "entry"):
        if lower is not None and options.get(name) is not None:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} does not go with --lower and --upper: leave it out.")


def read_working_model(choice: str | None) -> dict[str, str | None]:
    """The setting that --working-model gives, if any."""
    if choice is None:
        return {}
    choices = {"auto": "auto", "cox": "cox", "none": None}
    if choice not in choices:
        raise ValueError(f"--working-model {choice}: write one of {', '.join(choices)}.")
    return {"working_model": choices[choice]}
