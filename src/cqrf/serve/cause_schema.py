"""Parts of responses that are about causes, for models that tell several apart."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Reason = Literal["after_bound", "before_bound", "given_too_late", "open"]
CauseReason = Literal["after_bound", "never", "given_too_late"]
CAUSE_OF_ROW = "Cause of its event; null if there is none, or one kind of event."


class IncidenceProbability(BaseModel):
    """P(T <= time, cause); null beyond the end of the row's curves: nothing is known there."""

    time: float
    probability: Annotated[float, Field(ge=0, le=1)] | None
    bound: float | None = Field(
        description="If probability is null: the time up to which the curves are known."
    )
    reason: Reason | None = Field(description="If probability is null: as for survival.")


class CauseQuantile(BaseModel):
    """First time at which the incidence of a cause reaches a level."""

    level: float
    value: float | None = Field(description="Null if the level is not reached up to the bound.")
    bound: float | None = Field(
        description="If value is null: the time up to which the curves are known."
    )
    reason: CauseReason | None = Field(
        description="If value is null: `after_bound` if the level may be reached after the bound; "
        "`never` if it cannot, as too many have other events; `given_too_late` if no neighbour is "
        "at risk after the time already survived."
    )


class TimeLost(BaseModel):
    """Mean time lost to a cause before the horizon; null if the curves end before it."""

    horizon: float
    value: float | None
    bound: float | None
    reason: Reason | None


class CausePrediction(BaseModel):
    """Predictions of one cause for one row."""

    cause: int | str
    incidence: list[IncidenceProbability] = Field(description="At the times of the request.")
    quantiles: list[CauseQuantile]
    time_lost: list[TimeLost] = Field(description="At the horizons of the request.")
    max_level: float | None = Field(
        description="Incidence at the last known time: larger levels have no quantile."
    )


class IncidenceCurve(BaseModel):
    """Incidence of a cause at `times`, null where unknown."""

    cause: int | str
    values: list[float | None]


class CauseCount(BaseModel):
    """A cause, and its events among the training rows."""

    cause: int | str
    events: int
