"""Requests and responses of the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from cqrf.serve.cause_schema import (
    CAUSE_OF_ROW,
    CauseCount,
    CausePrediction,
    IncidenceCurve,
    Reason,
)
from cqrf.serve.values import MAX_NUMBER, is_within

MAX_LEVELS, MAX_TIMES, MAX_INTERVALS, MAX_HORIZONS = 99, 500, 10, 10
MAX_SUBJECTS = 2
MAX_CONFIDENCE = 0.9999

Share = Annotated[float, Field(gt=0, lt=1)]


def check_size(value: Any) -> Any:
    """Refuse a whole number that a float would round into the range."""
    if isinstance(value, int) and not is_within(value, MAX_NUMBER):
        raise ValueError(f"the number must lie between {-MAX_NUMBER:g} and {MAX_NUMBER:g}")
    return value


TimeNumber = Annotated[float, BeforeValidator(check_size), Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
Value = float | str | None
FOR_ALL, FOR_EACH = "for_all", "for_each"  # the two forms of `given`
LOWER_OF_ROW = (
    "Only with interval censoring: the event came after it, and by `time`. Equal to `time` if that "
    "is exact or right-censored; null if the row is left-censored."
)
Given = Annotated[
    Annotated[TimeNumber, Tag(FOR_ALL)] | Annotated[list[TimeNumber], Tag(FOR_EACH)],
    Discriminator(lambda value: FOR_EACH if isinstance(value, list) else FOR_ALL),
]


class Strict(BaseModel):
    """A request: no other fields, no text in place of a number, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PredictRequest(Strict):
    """Rows, and what to predict for each of them."""

    rows: list[dict[str, Any]] = Field(
        min_length=1, description="Rows by column name; null where a value is missing."
    )
    quantiles: list[Share] = Field(
        default=[0.1, 0.5, 0.9],
        max_length=MAX_LEVELS,
        description="Levels of the quantiles of the time, each between 0 and 1.",
    )
    times: list[TimeNumber] = Field(
        default=[], max_length=MAX_TIMES, description="Times t at which to give P(T > t)."
    )
    horizons: list[TimeNumber] = Field(
        default=[],
        max_length=MAX_HORIZONS,
        description="Horizons h of restricted means E[min(T, h)]; E[max(T, h)] under left "
        "censoring.",
    )
    intervals: list[Share] = Field(
        default=[],
        max_length=MAX_INTERVALS,
        description="Coverages of prediction intervals for the time.",
    )
    confidence: Annotated[float, Field(gt=0, le=MAX_CONFIDENCE)] | None = Field(
        default=None,
        description="Level of confidence intervals of the estimates, for forests fitted with "
        "bag_size of 2 or more; for others they are null and `confidence.reason` gives the reason.",
    )
    given: Given | None = Field(
        default=None,
        description="Time that every row has already survived, or a list with one time for each "
        "row; for right-censored times. The predictions are then about the time that remains: all "
        "times, horizons and quantiles count from it on.",
    )


class SubjectsRequest(Strict):
    """One or two subjects of the page."""

    subjects: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_SUBJECTS)
    given: TimeNumber | None = Field(
        default=None,
        description="Time that the subjects have already survived; times count from it on.",
    )


class Time(BaseModel):
    """A time. If it is not identifiable, value is null and it lies beyond the bound."""

    value: float | None = Field(description="The time; null if it is not identifiable.")
    bound: float | None = Field(
        description="If value is null: the time of the last neighbour; null if there is none."
    )
    reason: Reason | None = Field(
        description="If value is null: the side of the bound on which the time lies; `open` for an "
        "end of a confidence interval without a limit; `given_too_late` if no neighbour is at risk "
        "after the time already survived."
    )


class TimeInterval(BaseModel):
    """Two times."""

    lower: Time
    upper: Time


class Quantile(Time):
    """A quantile of the event time."""

    level: float
    confidence_interval: TimeInterval | None = Field(
        default=None, description="Only if the request has confidence."
    )


class Interval(TimeInterval):
    """Prediction interval."""

    coverage: float


class ProbabilityInterval(BaseModel):
    """Two probabilities."""

    lower: float
    upper: float


class SurvivalProbability(BaseModel):
    """P(T > time). Beyond the end of the row's curve it is null: nothing is known there."""

    time: float
    probability: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Null where no neighbour is at risk any more and the curve has not reached 0."
    )
    bound: float | None = Field(
        description="If probability is null: the time up to which the curve is known (from which "
        "on, under left censoring)."
    )
    reason: Reason | None = Field(
        description="If probability is null: the side of the bound on which the requested time "
        "lies; `given_too_late` if no neighbour is at risk after the time already survived."
    )
    confidence_interval: ProbabilityInterval | None = Field(
        default=None,
        description="Only if the request has confidence; null where the probability is.",
    )


class RestrictedMean(BaseModel):
    """E[min(T, horizon)]. If the row's curve ends before the horizon it is null."""

    horizon: float
    value: float | None = Field(description="Null where the curve is not known at the horizon.")
    bound: float | None = Field(
        description="If value is null: the largest horizon that is known (the smallest, under left "
        "censoring)."
    )
    reason: Reason | None = Field(
        description="If value is null: the side of the bound on which the horizon lies; "
        "`given_too_late` if no neighbour is at risk after the time already survived."
    )


class Estimable(BaseModel):
    """Identifiable levels; quantiles at other levels are not identifiable because of censoring."""

    from_level: float
    to_level: float
    bound: float | None = Field(
        description="Time of the last neighbour (of the first, under left censoring). With `given` "
        "it counts from there on, and is null if all levels are identifiable, or none."
    )


class RowPrediction(BaseModel):
    """Predictions for one row."""

    quantiles: list[Quantile]
    intervals: list[Interval]
    survival: list[SurvivalProbability]
    means: list[RestrictedMean]
    given: float | None = Field(description="Time that the row has already survived.")
    estimable: Estimable
    causes: list[CausePrediction] | None = Field(
        default=None,
        description="Only if the model tells causes apart. The incidences of all causes and the "
        "survival probability add up to 1.",
    )
    notes: list[str] = Field(
        description="What is to be known about the row: a level that training did not have, a time "
        "already survived after which nothing is known."
    )


class Confidence(BaseModel):
    """Level of the confidence intervals, and the reason if there are none."""

    level: float | None
    reason: str | None


class PredictResponse(BaseModel):
    """Predictions for each row, in the order of the request."""

    rows: list[RowPrediction]
    confidence: Confidence


class Neighbour(BaseModel):
    """A training row with positive weight for a subject."""

    row: int
    label: str
    weight: float
    time: float
    event: bool
    lower: float | None = Field(default=None, description=LOWER_OF_ROW)
    cause: int | str | None = Field(default=None, description=CAUSE_OF_ROW)
    values: dict[str, Value]


class Subject(BaseModel):
    """Everything that the page shows of a subject; survival is at `times`, null where unknown."""

    quantiles: list[Quantile]
    estimable: Estimable
    survival: list[float | None]
    lower: list[float | None] | None
    upper: list[float | None] | None
    incidence: list[IncidenceCurve] | None = Field(
        default=None, description="Of each cause, if the model tells causes apart."
    )
    n_neighbours: int = Field(description="Training rows with positive weight.")
    effective_sample_size: float = Field(description="One over the sum of squared weights.")
    neighbours: list[Neighbour] | None = Field(
        description="The training rows of largest weight; null unless --data is the training table."
    )


class SubjectsResponse(BaseModel):
    """Predictions for the subjects of the page."""

    times: list[float]
    given: float | None = Field(description="Time already survived, from which times count.")
    confidence: Confidence
    subjects: list[Subject]


class ColumnQuantile(BaseModel):
    """A quantile of a column."""

    level: float
    value: Value


class Choice(BaseModel):
    """A value to choose, and the share of the training rows that have it."""

    value: Value
    share: float


class Column(BaseModel):
    """A column of the model."""

    name: str
    kind: Literal["number", "date", "duration", "category"]
    importance: float = Field(description="Share in the total gain of the splits.")
    missing: float = Field(description="Share of the training rows without a value.")
    low: Value = Field(description="Smallest value in the training rows.")
    high: Value = Field(description="Largest value in the training rows.")
    step: float | None = Field(description="Step of its slider; days for dates and durations.")
    quantiles: list[ColumnQuantile]
    choices: list[Choice] | None = Field(description="Its values, if there are few.")
    typical: Value = Field(description="Median, or most frequent value.")
    exact: bool = Field(description="Whether range and values are exact, not estimated from bins.")


class Limits(BaseModel):
    """Limits of one request."""

    rows: int
    bytes: int
    values: int = Field(description="Rows times quantiles, times, horizons and interval ends.")
    quantiles: int = MAX_LEVELS
    times: int = MAX_TIMES
    intervals: int = MAX_INTERVALS
    horizons: int = MAX_HORIZONS


class Data(BaseModel):
    """The table given with --data."""

    source: str
    rows: int
    training: bool = Field(description="Whether it is the training table.")
    id: str | None = Field(description="Column whose values are the labels; null: row numbers.")


class ModelDescription(BaseModel):
    """The model, and how it was fitted."""

    name: str
    version: str = Field(description="Version of cqrf that serves it.")
    fingerprint: str = Field(description="Hash of its columns, which links of the page carry.")
    columns: list[Column]
    rows: int = Field(description="Training rows.")
    events: int
    causes: list[CauseCount] = Field(description="Empty if there is one kind of event.")
    first_time: float
    last_time: float
    trees: int
    censoring: Literal["right", "left"]
    time_unit: str | None = Field(description="Unit of all times, if the model has one.")
    event_name: str | None = Field(description="Name of the event, if the model has one.")
    settings: dict[str, Any]
    notes: dict[str, str] = Field(description="Roles of columns and source, from the model file.")
    confidence: Confidence
    limits: Limits
    data: Data | None


class DataRow(BaseModel):
    """A row of the table; time and event only if it is the training table."""

    row: int
    label: str
    values: dict[str, Value]
    time: float | None
    event: bool | None
    lower: float | None = Field(default=None, description=LOWER_OF_ROW)
    cause: int | str | None = Field(default=None, description=CAUSE_OF_ROW)
    notes: list[str] = Field(
        description="Levels of the row that training did not have: they are treated as missing."
    )


class RowLabel(BaseModel):
    """Number and label of a row."""

    row: int
    label: str


class RowLabels(BaseModel):
    """Rows whose label contains the search text; those that start with it come first."""

    rows: list[RowLabel]
    total: int = Field(description="Rows of the table.")


class Health(BaseModel):
    """The server is running."""

    status: Literal["ok"]
    version: str


class ProblemDetail(BaseModel):
    """One problem of a request."""

    message: str
    field: str | None = Field(description="Place in the body, as in quantiles[1].")
    row: int | None = Field(description="Index in the list of rows, from 0.")
    column: str | None


class ErrorResponse(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="Message of the first problem.")
    problems: list[ProblemDetail]
