"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cqrf.cli.console import fail


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must be a number of threads, or -1 for all cores")
    return jobs


def _refuse_intervals(column: str | None) -> None:
    if column is not None:
        fail(
            "--lower and --upper are options of cqrf fit only: this command needs times that are "
            "exact or censored on one side, given by --time and --event."
        )


MODEL_SUFFIXES, PAGE_SUFFIXES = (".cqrf",), (".html", ".htm")
TABLE = "CSV, TSV, JSON lines, Excel, Parquet or Feather file, or - for CSV on standard input."
Data = Annotated[str, typer.Argument(metavar="DATA", help=TABLE)]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, as cqrf fit writes it.")]
Time = Annotated[str, typer.Option("--time", help="Column with the observed time.")]
KeptTime = Annotated[
    str | None, typer.Option("--time", help="Column with the time. Default: as in fit.")
]
TimeUnlessInterval = Annotated[
    str | None,
    typer.Option("--time", help="Column with the observed time; or give --lower and --upper."),
]
Lower = Annotated[
    str | None,
    typer.Option(
        "--lower",
        help="Column with the last time before the event: it lies between --lower and --upper. "
        "Empty, or 0: left-censored.",
    ),
]
Upper = Annotated[
    str | None,
    typer.Option(
        "--upper",
        help="Column with the first time after the event; empty or inf: right-censored; equal to "
        "--lower: exact.",
    ),
]
NoIntervals = Annotated[
    str | None, typer.Option("--lower", "--upper", hidden=True, callback=_refuse_intervals)
]
Event = Annotated[
    str | None,
    typer.Option(
        "--event",
        help="Column of the event status, or of the cause. Default: every row is an event.",
    ),
]
EventValue = Annotated[
    str | None,
    typer.Option("--event-value", help="Value of that column that means an observed event."),
]
CensoredValue = Annotated[
    str | None,
    typer.Option(
        "--censored",
        help="Value of that column that means censored, '' for an empty cell; every other value is "
        "then a cause. Default: 0.",
        show_default=False,
    ),
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
Trees = Annotated[int, typer.Option("--trees", min=1, help="Number of trees.")]
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
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of a text file, as in cp1252. Default: UTF-8."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--na", metavar="TEXT", help="Text that is missing, instead of NA, NaN ...; repeatable."
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="SIGN", help="Sign of decimals: . or a comma.")
]
Dates = Annotated[
    list[str] | None,
    typer.Option(
        "--dates",
        metavar="COLUMN[=dmy|mdy|iso]",
        help="Column of dates, and their order; may be repeated.",
    ),
]
DropInvalid = Annotated[
    bool,
    typer.Option("--drop-invalid", help="Leave out rows without a valid time and event."),
]
BagSize = Annotated[
    int,
    typer.Option(
        "--bag-size", min=1, help="2 or more: predict can then give --confidence intervals."
    ),
]
WorkingModel = Annotated[
    str | None,
    typer.Option(
        "--working-model",
        metavar="auto|cox|none",
        help="Model that half of the trees start from. Default: that of CensoredQuantileForest.",
        show_default=False,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", help="Unit of the times, as in days: for reports and pictures."),
]
EventName = Annotated[
    str | None,
    typer.Option("--event-name", help="What the event is, as in death: for reports and pictures."),
]
# Of predict
Quantiles = Annotated[
    str | None,
    typer.Option(
        "--quantiles",
        "-q",
        help="Levels between 0 and 1, as in .1,.5,.9. Default: .5; none for a conformal model.",
        show_default=False,
    ),
]
Bounds = Annotated[
    bool,
    typer.Option(
        "--bounds",
        help="For a model of intervals: both ends of the interval that each quantile lies in.",
    ),
]
Survival = Annotated[
    str, typer.Option(help="Times of survival probabilities P(T > t), as in 365,730.")
]
Incidence = Annotated[
    str,
    typer.Option(
        help="Times of cumulative incidences P(T <= t, cause), as in 365,730; of all causes, or of "
        "that of --cause."
    ),
]
CauseOption = Annotated[
    str | None,
    typer.Option(
        "--cause",
        help="With several causes: the one that quantiles, --max-quantile and --incidence are of; "
        "--mean is then the mean time lost to it. Default: any event.",
        show_default=False,
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(help="Coverage of a prediction interval, as in .9."),
]
Mean = Annotated[bool, typer.Option("--mean", help="Add the restricted mean.")]
Horizon = Annotated[
    float | None,
    typer.Option(help="Time that --mean counts up to. Default: the end of the follow-up."),
]
MaxQuantile = Annotated[
    bool, typer.Option("--max-quantile", help="Add the largest identifiable level.")
]
LowerBound = Annotated[
    float | None,
    typer.Option(
        "--lower-bound",
        help="Coverage of lower bounds, as in .9: that of the conformal model.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        help="Add confidence intervals of quantiles and survival, as in .95; for a model "
        "fitted with --bag-size 2 or more."
    ),
]
Given = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|NUMBER",
        help="Time already survived: predict what remains from then on.",
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", help="Column to copy; may be repeated."),
]
Unidentified = Annotated[
    str, typer.Option(help="Value of a quantile that is not identifiable: inf, clip or nan.")
]
Beyond = Annotated[
    str,
    typer.Option(
        help="Survival and mean beyond the follow-up: nan; restrict for means up to the end of "
        "each row's curve; or extend for a flat line, which is not an estimate."
    ),
]
TableOut = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="File to write; its suffix is the format."),
]
# Of conformal
CensoringTime = Annotated[
    str | None,
    typer.Option("--censoring-time", help="Column with the censoring time of every row."),
]
Coverage = Annotated[float, typer.Option(help="Probability that the time is at least the bound.")]
Method = Annotated[
    str, typer.Option(help="Where misses are counted: adaptive, or fixed for one cutoff.")
]
Cutoff = Annotated[
    float | None,
    typer.Option(help="Cutoff of --method fixed. Default: the median censoring time."),
]
CalibrationShare = Annotated[
    float, typer.Option("--calibration-share", help="Share of the rows held out to calibrate.")
]
# Of effects
Treatment = Annotated[
    str, typer.Option("--treatment", help="Column with the treatment, of two values.")
]
Control = Annotated[
    str | None,
    typer.Option(
        "--control",
        help="Value of that column that is the control. Default: the smaller one, or the first in "
        "the order of the alphabet.",
        show_default=False,
    ),
]
Propensity = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|COLUMN",
        help="Known probability of treatment, as in a trial. Default: it is estimated.",
        show_default=False,
    ),
]
GainHorizon = Annotated[
    float | None,
    typer.Option(
        "--horizon",
        help="Time up to which the time gained counts. Default: the last one at which a tenth of "
        "either arm is at risk.",
        show_default=False,
    ),
]
EffectTimes = Annotated[
    str, typer.Option("--times", help="Times of differences of survival, as in 365,730.")
]
EffectQuantiles = Annotated[
    str, typer.Option("--quantiles", "-q", help="Levels of differences of quantiles, as in .25,.5.")
]
Subgroups = Annotated[
    str,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of subgroups, with commas between them. Default: the three that have "
        "most importance in the effect forest.",
    ),
]
DropUntreated = Annotated[
    bool,
    typer.Option(
        "--drop-invalid", help="Leave out rows without a valid time, event and treatment."
    ),
]
EffectsOut = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Table to write, a row for each of DATA; its suffix is the format."
    ),
]
EffectsModelOut = Annotated[Path | None, typer.Option("--model", help="Model file to write.")]
EffectTrees = Annotated[int, typer.Option("--trees", min=1, help="Trees of the effect forest.")]
EffectSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any setting of CensoredTreatmentForest; repeatable."
    ),
]
RoundTo = Annotated[
    float | None,
    typer.Option(
        "--round", help="Round all times to multiples of this, so as not to give them away."
    ),
]


def parse_numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        fail(f"{option} {text!r}: write numbers with commas between them, as in .1,.5,.9")
