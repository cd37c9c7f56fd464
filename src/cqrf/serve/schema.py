"""The JSON of the API in words: what is asked and what is answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cqrf.serve.values import LARGEST, is_within

MOST_LEVELS, MOST_TIMES, MOST_INTERVALS = 99, 500, 10
MOST_COMPARED = 2
MOST_CONFIDENT = 0.9999

Share = Annotated[float, Field(gt=0, lt=1)]


def check_size(value: Any) -> Any:
    """Refuse a whole number that a float would round into the range."""
    if isinstance(value, int) and not is_within(value, LARGEST):
        raise ValueError(f"the number must lie between {-LARGEST:g} and {LARGEST:g}")
    return value


Moment = Annotated[float, BeforeValidator(check_size), Field(ge=-LARGEST, le=LARGEST)]
Value = float | str | None


class Strict(BaseModel):
    """A question: no other fields, no text in place of a number, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Asked(Strict):
    """Rows, and what to say about each of them."""

    rows: list[dict[str, Any]] = Field(
        min_length=1, description="Rows by column name; null where a value is missing."
    )
    quantiles: list[Share] = Field(
        default=[0.1, 0.5, 0.9],
        max_length=MOST_LEVELS,
        description="Levels of the quantiles of the time, each between 0 and 1.",
    )
    times: list[Moment] = Field(
        default=[], max_length=MOST_TIMES, description="Times t at which to give P(T > t)."
    )
    intervals: list[Share] = Field(
        default=[],
        max_length=MOST_INTERVALS,
        description="Coverages of intervals in which the time itself will lie.",
    )
    confidence: Annotated[float, Field(gt=0, le=MOST_CONFIDENT)] | None = Field(
        default=None,
        description="Level of confidence intervals of the estimates, for forests fitted with "
        "bag_size of 2 or more; for others these are null and `confidence.reason` says why.",
    )


class Compared(Strict):
    """One or two subjects, as the page asks about them."""

    subjects: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_COMPARED)


class Time(BaseModel):
    """A time. Where censoring hides it, value is null and it lies beyond the bound."""

    value: float | None = Field(description="The time; null where it cannot be estimated.")
    bound: float | None = Field(description="Where value is null: the last time seen nearby.")
    reason: Literal["after_bound", "before_bound", "open"] | None = Field(
        description="Where value is null: on which side of the bound it lies; `open` for an end of "
        "a confidence interval that has no limit at all."
    )


class TimeInterval(BaseModel):
    """Two times."""

    lower: Time
    upper: Time


class Quantile(Time):
    """A quantile of the time of the event."""

    level: float
    confidence_interval: TimeInterval | None = Field(
        default=None, description="There only if confidence was asked for."
    )


class Interval(TimeInterval):
    """Interval in which the time lies with a probability."""

    coverage: float


class ChanceInterval(BaseModel):
    """Two probabilities."""

    lower: float
    upper: float


class Chance(BaseModel):
    """P(T > time)."""

    time: float
    probability: float = Field(ge=0, le=1)
    confidence_interval: ChanceInterval | None = Field(
        default=None, description="There only if confidence was asked for."
    )


class Estimable(BaseModel):
    """Levels of quantiles that the data can tell; beyond them times are hidden by censoring."""

    from_level: float
    to_level: float
    bound: float = Field(description="The last time seen of rows like it (the first, from left).")


class RowAnswer(BaseModel):
    """What the forest says about one row."""

    quantiles: list[Quantile]
    intervals: list[Interval]
    survival: list[Chance]
    estimable: Estimable


class Confidence(BaseModel):
    """Level of confidence intervals, and why there are none if there are none."""

    level: float | None
    reason: str | None


class Answered(BaseModel):
    """One answer for each row, in their order."""

    rows: list[RowAnswer]
    confidence: Confidence


class Neighbour(BaseModel):
    """A training row that speaks for a subject."""

    row: int
    label: str
    weight: float
    time: float
    event: bool
    values: dict[str, Value]


class Subject(BaseModel):
    """All that the page shows of a subject; survival is at `times`."""

    quantiles: list[Quantile]
    estimable: Estimable
    survival: list[float]
    lower: list[float] | None
    upper: list[float] | None
    speaking: int = Field(description="Training rows with any weight.")
    effective: float = Field(description="As many rows of equal weight would say as much.")
    neighbours: list[Neighbour] | None = Field(
        description="The loudest training rows; null unless the training table was given."
    )


class Subjects(BaseModel):
    """Subjects beside each other."""

    times: list[float]
    confidence: Confidence
    subjects: list[Subject]


class Mark(BaseModel):
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
    importance: float = Field(description="Share in the gain of all splits.")
    missing: float = Field(description="Share of training rows without a value.")
    low: Value = Field(description="Start of its range in the training rows.")
    high: Value = Field(description="End of its range.")
    step: float | None = Field(description="A round step; days for dates and durations.")
    quantiles: list[Mark]
    choices: list[Choice] | None = Field(description="All of its values, if they are few.")
    typical: Value = Field(description="Median, or most frequent value.")
    exact: bool = Field(description="Whether range and values are known, not guessed from bins.")


class Limits(BaseModel):
    """What one request may ask."""

    rows: int
    bytes: int
    answers: int = Field(description="Rows times quantiles, times and ends of intervals.")
    quantiles: int = MOST_LEVELS
    times: int = MOST_TIMES
    intervals: int = MOST_INTERVALS


class Data(BaseModel):
    """The table beside the model."""

    source: str
    rows: int
    training: bool = Field(description="Whether it is the table the model was fitted to.")


class ModelFacts(BaseModel):
    """What the model is, and how it was fitted."""

    name: str
    version: str = Field(description="Version of cqrf that answers.")
    fingerprint: str = Field(description="Of its columns: links of the page carry it.")
    columns: list[Column]
    rows: int = Field(description="Training rows.")
    events: int
    first_time: float
    last_time: float
    trees: int
    censoring: Literal["right", "left"]
    settings: dict[str, Any]
    notes: dict[str, str] = Field(description="Roles of columns and source, as fit kept them.")
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


class RowLabel(BaseModel):
    """Number and label of a row."""

    row: int
    label: str


class RowLabels(BaseModel):
    """Rows whose label begins with, or else contains, what was searched."""

    rows: list[RowLabel]
    total: int = Field(description="Rows of the table.")


class Health(BaseModel):
    """The server is there."""

    status: Literal["ok"]
    version: str


class ProblemFacts(BaseModel):
    """One thing that is wrong."""

    message: str
    field: str | None = Field(description="Where in the body, as in quantiles[1].")
    row: int | None = Field(description="Place in the list, from 0.")
    column: str | None


class Problems(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="The first problem, in a sentence.")
    problems: list[ProblemFacts]
