"""Survival curves of T and of C; their values, restricted means, and where they are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._model.fitted import Model
from cqrf._readers.reader import ArrayReader, Chunk, Reader
from cqrf._runtime.arguments import is_number, read_choice, read_floats
from cqrf._survival.step_curve import BEYOND
from cqrf._survival.step_curves import BEYOND_MEAN, StepCurves


class SurvivalCurves(Reader[StepCurves, StepCurves]):
    """Survival curves P(T > t | x)."""

    def read(self, chunk: Chunk) -> StepCurves:
        """One curve per query."""
        return chunk.survival

    def join(self, parts: list[StepCurves]) -> StepCurves:
        """The curves of all chunks."""
        return StepCurves.join(parts)


class CensoringCurves(SurvivalCurves):
    """Survival curves P(C > t | x) of the censoring time."""

    def check(self, model: Model) -> None:
        """Raise if there is no censoring time."""
        check_censoring_time(model)

    def read(self, chunk: Chunk) -> StepCurves:
        """One curve per query."""
        return chunk.censoring_survival


class SurvivalAt(ArrayReader):
    """P(T > t | x) at times, the same for all queries.

    ``beyond``: the flat line (``"extend"``) or ``"nan"`` where a curve is not known.
    """

    def __init__(self, times: ArrayLike, beyond: str = "extend") -> None:
        self.times = np.atleast_1d(read_floats("times", times))
        self.beyond = read_choice("beyond", beyond, BEYOND)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Probabilities of shape (n_queries, n_times)."""
        return chunk.survival(self.times, self.beyond)


class CensoringAt(SurvivalAt):
    """P(C > t | x) at times, the same for all queries."""

    def check(self, model: Model) -> None:
        """Raise if there is no censoring time."""
        check_censoring_time(model)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Probabilities of shape (n_queries, n_times)."""
        return chunk.censoring_survival(self.times, self.beyond)


@dataclass(frozen=True, eq=False)
class KnownTimes(ArrayReader):
    """First and last time at which the survival curve of each query is known."""

    of_censoring: bool = False

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Times of shape (n_queries, 2)."""
        curves = chunk.censoring_survival if self.of_censoring else chunk.survival
        return np.column_stack([curves.start, curves.end])


@dataclass(frozen=True, eq=False)
class RestrictedMean(ArrayReader):
    """E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

    The default horizon is the end of the follow-up, ``model.follow_up``; less the time already
    survived, if there is one. ``beyond`` is what :meth:`StepCurves.restricted_mean` takes.
    """

    horizon: float | None = None
    beyond: str = "extend"

    def check(self, model: Model) -> None:
        """Raise unless the horizon is a finite time."""
        horizon = self.horizon
        if horizon is not None and not (is_number(horizon) and np.isfinite(horizon)):
            raise ValueError(f"horizon={horizon!r} must be a finite time.")
        read_choice("beyond", self.beyond, BEYOND_MEAN)

    def horizon_of(self, chunk: Chunk) -> NDArray[np.float64]:
        """The horizon of all queries, or of each."""
        if self.horizon is not None:
            return np.asarray(self.horizon, dtype=np.float64)
        return chunk.model.follow_up - (np.zeros(()) if chunk.given is None else chunk.given)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Means of shape (n_queries,)."""
        horizon, censoring = self.horizon_of(chunk), chunk.model.censoring
        means = chunk.survival.restricted_mean(horizon, censoring, self.beyond)
        # Of a row that has survived the follow-up nothing more is known.
        return means if chunk.given is None else np.where(np.greater(horizon, 0), means, np.nan)


def check_censoring_time(model: Model) -> None:
    """Raise for interval-censored rows: they are censored by visits, not at one time."""
    if model.lower is not None:
        raise ValueError("a forest of intervals has no censoring time to predict.")
