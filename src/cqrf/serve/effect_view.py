"""A treatment forest with what the page and the API need of it, and its description."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cqrf
from cqrf._effects.fitted import EffectModel
from cqrf._input.features import feature_names
from cqrf._model.settings import plain_setting
from cqrf._views.curves import time_range
from cqrf._views.effects import (
    Arm,
    choose_times,
    describe_assumptions,
    is_assigned_by_design,
    list_arms,
)
from cqrf.effects import CensoredTreatmentForest
from cqrf.serve.columns import ColumnSummary, summarise_columns
from cqrf.serve.data_rows import DataRows
from cqrf.serve.description import describe_column, describe_data
from cqrf.serve.model_view import N_TIMES, PADDING
from cqrf.serve.schema import Limits
from cqrf.serve.values import Column


@dataclass(frozen=True, eq=False)
class EffectView:
    """A treatment forest, its columns, and the rows of a table if there is one.

    Attributes
    ----------
    arms : list of Arm
        Control and treatment.
    times : ndarray
        Grid on which survival curves are given.
    shown_times : list of float
        Times at which the page compares survival.
    last_times : ndarray of shape (2,)
        Last time of a training row of control and treatment.
    """

    forest: CensoredTreatmentForest
    name: str
    summaries: list[ColumnSummary]
    data: DataRows | None
    arms: list[Arm]
    times: NDArray[np.float64]
    shown_times: list[float]
    last_times: NDArray[np.float64]

    @property
    def model(self) -> EffectModel:
        """The fitted forests."""
        return self.forest.model_

    @property
    def columns(self) -> list[Column]:
        """Name, kind and levels of each column."""
        return [summary.column for summary in self.summaries]

    @property
    def arm_order(self) -> list[int]:
        """Numbers of control and treatment in the model."""
        return [1 - self.model.treated, self.model.treated]

    @property
    def fingerprint(self) -> str:
        """Hash of columns and arms, which tells links of this model from those of others."""
        identity = [[list(column) for column in self.columns], [arm.name for arm in self.arms]]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]


def make_effect_view(
    forest: CensoredTreatmentForest, name: str, data: DataRows | None = None
) -> EffectView:
    """Join the treatment forest with its columns and rows."""
    model = forest.model_
    training = data.matrix if data is not None and data.training is not None else None
    gain = model.effect.forest.importance
    importance = gain / max(gain.sum(), np.finfo(np.float64).tiny)
    low, high = time_range(model.effect.training_target.time)
    arms = [model.forests.arms[number] for number in (1 - model.treated, model.treated)]
    return EffectView(
        forest=forest,
        name=name,
        summaries=summarise_columns(model.effect, feature_names(forest), importance, training),
        data=data,
        arms=list_arms(forest),
        times=np.linspace(low, high + PADDING * (high - low), N_TIMES),
        shown_times=choose_times(model),
        last_times=np.array([arm.rows.time.max() for arm in arms]),
    )


def describe_effect_model(view: EffectView, limits: Limits) -> dict[str, Any]:
    """Columns, arms, training rows, settings and limits."""
    forest, model = view.forest, view.model
    train = model.effect.training_target
    return {
        "name": view.name,
        "version": cqrf.__version__,
        "fingerprint": view.fingerprint,
        "columns": [describe_column(summary) for summary in view.summaries],
        "arms": [arm._asdict() for arm in view.arms],
        "horizon": float(model.follow_up),
        "times": view.shown_times,
        "by_design": is_assigned_by_design(forest),
        "assumption": describe_assumptions(forest),
        "rows": len(train.time),
        "events": int(train.event.sum()),
        "first_time": float(train.time.min()),
        "last_time": float(train.time.max()),
        "trees": len(model.effect.forest.roots),
        "censoring": "right",
        "time_unit": forest.time_unit,
        "event_name": forest.event_name,
        "settings": plain_parameters(forest),
        "notes": dict(getattr(forest, "notes_", {})),
        "limits": limits.model_dump(),
        "data": describe_data(view.data),
    }


def plain_parameters(forest: CensoredTreatmentForest) -> dict[str, Any]:
    """Parameters as JSON can hold them; those of the nuisance forest under their own names."""
    return {
        name: plain_setting(name, value)
        for name, value in forest.get_params().items()
        if name != "nuisance_forest" or value is None
    }
