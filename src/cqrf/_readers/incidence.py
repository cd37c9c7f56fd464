"""Readers of weights for forests with competing risks: incidences, their quantiles and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.causes import Cause, find_cause
from cqrf._model.fitted import Model
from cqrf._readers.curves import RestrictedMean
from cqrf._readers.errors import BagReader, check_errors
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import ArrayReader, Chunk, Reader
from cqrf._runtime.arguments import read_times
from cqrf._survival.incidence import IncidenceCurves, incidence_curves
from cqrf._survival.little_bags import OfCause, bag_variances, standard_errors
from cqrf._survival.quantiles import QuantileSolver, Solution


def read_incidence(chunk: Chunk) -> IncidenceCurves:
    """Incidence of every cause for the queries of a chunk."""
    model, cause = chunk.model, chunk.model.rows.cause
    assert cause is not None
    curves = incidence_curves(chunk.weights, model.ranked_target, cause, model.causes)
    return curves if chunk.given is None else curves.given(chunk.given)


def check_causes(model: Model) -> None:
    """Raise if the forest knows one kind of event."""
    if not model.causes:
        raise ValueError(
            "this forest knows one kind of event, whose incidence is 1 - predict_survival(X). To "
            "tell causes apart, fit with y = censored(time, cause)."
        )


class Incidence(Reader[IncidenceCurves, IncidenceCurves]):
    """Incidence curves P(T <= t, cause k | x) of all causes."""

    def check(self, model: Model) -> None:
        """Raise unless there are several causes."""
        check_causes(model)

    def read(self, chunk: Chunk) -> IncidenceCurves:
        """Curves of each query."""
        return read_incidence(chunk)

    def join(self, parts: list[IncidenceCurves]) -> IncidenceCurves:
        """The curves of all chunks."""
        return IncidenceCurves.join(parts)


@dataclass(frozen=True, eq=False)
class FromIncidence(ArrayReader):
    """An array with an entry or a row for each query, computed from its incidence curves."""

    compute: Callable[[IncidenceCurves], NDArray[np.float64]]

    def check(self, model: Model) -> None:
        """Raise unless there are several causes."""
        check_causes(model)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """The array for the queries of a chunk."""
        return self.compute(read_incidence(chunk))


@dataclass(frozen=True, eq=False)
class TimeLost(RestrictedMean):
    """Mean time lost to a cause before the horizon: the integral of its incidence."""

    cause: Cause = 0

    def check(self, model: Model) -> None:
        """Raise unless the cause is known and the horizon a finite time."""
        find_cause(self.cause, model.causes)
        super().check(model)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Times of shape (n_queries,)."""
        horizon = self.horizon_of(chunk)
        lost = read_incidence(chunk).time_lost(self.cause, horizon, self.beyond)
        return lost if chunk.given is None else np.where(np.greater(horizon, 0), lost, np.nan)


@dataclass(frozen=True, eq=False)
class CauseQuantiles(Quantiles):
    """First times at which the incidence of a cause reaches some levels."""

    cause: Cause = 0

    def check(self, model: Model) -> None:
        """Raise unless the cause is known."""
        find_cause(self.cause, model.causes)

    def read(self, chunk: Chunk) -> Solution:
        """Quantiles of shape (n_queries, n_levels), and the last neighbours."""
        return read_incidence(chunk).quantiles(self.cause, self.levels)


class IncidenceErrors(BagReader, ArrayReader):
    """Standard errors of P(T <= t, cause k | x) at times, by the bootstrap of little bags."""

    def __init__(self, times: ArrayLike, cause: Cause) -> None:
        self.times = read_times(times)
        self.cause = cause

    def check(self, model: Model) -> None:
        """Raise unless the cause is known and the forest was grown in bags."""
        find_cause(self.cause, model.causes)
        check_errors(model)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Errors of shape (n_queries, n_times)."""
        model, cause = chunk.model, chunk.model.rows.cause
        assert cause is not None
        bag_size = model.sampling.bag_size
        variances = bag_variances(
            chunk.leaves,
            model.forest.leaf_rows,
            chunk.weights,
            model.ranked_target,
            np.tile(self.times, (chunk.n_queries, 1)),
            bag_size,
            OfCause(cause, find_cause(self.cause, model.causes) + 1),
        )
        return standard_errors(variances, len(model.forest.roots) // bag_size)


def choose_quantiles(
    solver: QuantileSolver, levels: NDArray[np.float64], cause: Cause | None
) -> Quantiles:
    """Quantiles of the time to any event, or of the incidence of a cause."""
    if cause is None:
        return Quantiles(solver, levels)
    return CauseQuantiles(solver, levels, cause)


def choose_mean(cause: Cause | None, horizon: float | None, beyond: str) -> RestrictedMean:
    """Restricted mean of the time to any event, or mean time lost to a cause."""
    if cause is None:
        return RestrictedMean(horizon, beyond)
    return TimeLost(horizon, beyond, cause)
