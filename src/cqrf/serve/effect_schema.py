"""Requests and responses of the API of a treatment forest."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from cqrf.serve.schema import (
    MAX_CONFIDENCE,
    MAX_HORIZONS,
    MAX_LEVELS,
    MAX_TIMES,
    Column,
    Data,
    Limits,
    Share,
    Strict,
    Time,
    TimeNumber,
)

Unknown = Literal["after_bound", "not_identifiable", "no_error"]


class EffectsRequest(Strict):
    """Rows, and which effects of the treatment to give for each of them."""

    rows: list[dict[str, Any]] = Field(
        min_length=1, description="Rows by column name; null where a value is missing."
    )
    horizons: list[TimeNumber] | None = Field(
        default=None,
        max_length=MAX_HORIZONS,
        description="Horizons h of the time gained, E[min(T, h)] of the treatment less that of the "
        "control. Default: the last time at which a tenth of each arm is at risk.",
    )
    times: list[TimeNumber] = Field(
        default=[],
        max_length=MAX_TIMES,
        description="Times t at which to give the difference of P(T > t).",
    )
    quantiles: list[Share] = Field(
        default=[0.5],
        max_length=MAX_LEVELS,
        description="Levels of the quantiles whose difference is given, each between 0 and 1.",
    )
    confidence: Annotated[float, Field(gt=0, le=MAX_CONFIDENCE)] = Field(
        default=0.95, description="Level of the confidence intervals."
    )
    curves: bool = Field(
        default=True, description="Whether to give the survival curves of both arms."
    )


class Effect(BaseModel):
    """The treatment's value less the control's, with its confidence interval."""

    value: float | None = Field(description="Null if it is not known.")
    lower: float | None = Field(description="Null if value is, or if there is no error.")
    upper: float | None
    bound: float | None = Field(
        description="If value is null and the time lies after what is known: the last known time."
    )
    reason: Unknown | None = Field(
        description="Why value or interval is null: `after_bound`, the time lies after the bound; "
        "`not_identifiable`, censoring hides a quantile of an arm; `no_error`, the interval cannot "
        "be computed."
    )


class TimeGained(Effect):
    """Difference of restricted means E[min(T, horizon)]."""

    horizon: float


class SurvivalDifference(Effect):
    """Difference of P(T > time)."""

    time: float


class QuantileDifference(Effect):
    """Difference of quantiles, and the quantile of each arm."""

    level: float
    control: Time
    treatment: Time


class ArmCurves(BaseModel):
    """Survival of both arms at the response's times; null where it is not known."""

    control: list[float | None]
    treatment: list[float | None]


class RowEffects(BaseModel):
    """Effects for one row."""

    time_gained: list[TimeGained]
    survival: list[SurvivalDifference]
    quantiles: list[QuantileDifference]
    curves: ArmCurves | None = Field(description="Null unless the request has curves.")
    notes: list[str] = Field(description="Levels of the row that training did not have.")


class ArmNames(BaseModel):
    """How the arms are called."""

    control: str
    treatment: str


class EffectsResponse(BaseModel):
    """Effects for each row, in the order of the request."""

    arms: ArmNames
    confidence: float
    times: list[float] | None = Field(description="Times of the curves; null if there are none.")
    assumption: str = Field(description="What must hold for differences to be effects.")
    rows: list[RowEffects]


class Arm(BaseModel):
    """An arm of the training rows."""

    name: str
    rows: int
    events: int


class EffectModelDescription(BaseModel):
    """The treatment forest, and how it was fitted."""

    name: str
    version: str = Field(description="Version of cqrf that serves it.")
    fingerprint: str = Field(description="Hash of columns and arms, which links of the page carry.")
    columns: list[Column] = Field(description="Importance is that for the effect.")
    arms: list[Arm] = Field(description="Control, then treatment.")
    horizon: float = Field(description="Default horizon of the time gained.")
    times: list[float] = Field(description="Times at which the page compares survival.")
    by_design: bool = Field(description="Whether the probability of treatment was known.")
    assumption: str = Field(description="What must hold for differences to be effects.")
    rows: int = Field(description="Training rows.")
    events: int
    first_time: float
    last_time: float
    trees: int = Field(description="Trees of the effect forest.")
    censoring: Literal["right"]
    time_unit: str | None = Field(description="Unit of all times, if the model has one.")
    event_name: str | None = Field(description="Name of the event, if the model has one.")
    settings: dict[str, Any]
    notes: dict[str, str] = Field(description="Roles of columns and source, from the model file.")
    limits: Limits
    data: Data | None
