"""Censoring-unbiased responses: what a row would show of 1(T > t) if it were not censored.

With S and G the survival curves of T and of the censoring time in the row's own arm,

    Y*(t) = S(t) {1 - [1(Y <= t, event) / (S(Y) G(Y-))
                       - sum over u <= min(Y, t) of dLambda(u) / (S(u) G(u-))]}.

Its mean given x is P(T > t | x) of that arm if S or G is right. Without censoring it is 1(Y > t),
whatever S is. At ties events leave the risk set before censorings. S is kept on a grid of times,
and jumps there. S and G are kept above LEAST_SURVIVAL and LEAST_CENSORING, since they are divided
by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Numbers of a curve of all rows on the grid, and the fewest and most times of the grid.
GRID_NUMBERS, FEWEST_TIMES, MOST_TIMES = 2_000_000, 50, 400
LEAST_SURVIVAL, LEAST_CENSORING = 0.02, 0.05


class Grid(NamedTuple):
    """Times at which the curves of training rows are kept, ascending, and where time starts.

    A curve has one column more than there are times: its value from ``start`` on, then its value
    from each time on.
    """

    start: float
    times: Floats

    @property
    def begins(self) -> Floats:
        """Time from which each column holds."""
        return np.append(self.start, self.times)

    def columns(self, times: Floats) -> NDArray[np.intp]:
        """Column that holds the value at each of these times."""
        return np.searchsorted(self.times, times, side="right")

    def widths(self, end: float) -> Floats:
        """Length of the stretch, up to ``end``, on which each column holds."""
        ends = np.minimum(np.append(self.times, np.inf), end)
        return np.maximum(ends - self.begins, 0.0)

    def means(self, curves: Floats, horizon: float) -> Floats:
        """Restricted mean up to the horizon of survival curves, the rows of an array."""
        return self.start + curves @ self.widths(horizon)


def make_grid(time: Floats, event: NDArray[np.bool_]) -> Grid:
    """Distinct event times; if there are many, some of them, evenly spaced among all events."""
    events = np.sort(time[event])
    n_times = int(np.clip(GRID_NUMBERS // len(time), FEWEST_TIMES, MOST_TIMES))
    times = np.unique(events)
    if len(times) > n_times:
        times = np.unique(events[np.linspace(0, len(events) - 1, n_times).astype(np.intp)])
    return Grid(min(0.0, float(time.min())), times)


class Response(NamedTuple):
    """Responses of some rows.

    Attributes
    ----------
    grid : Grid
    time : (n,) float64
    survival : (n, n_times + 1) float64
        S of the row's own arm.
    compensator : (n, n_times + 1) float64
        The sum in the equation above, at each time of the grid.
    event_term : (n,) float64
        1 / (S(Y) G(Y-)) of events, 0 of censored rows.
    """

    grid: Grid
    time: Floats
    survival: Floats
    compensator: Floats
    event_term: Floats

    def at(self, times: Floats) -> Floats:
        """Y*(t), shape (n, n_times)."""
        columns = self.grid.columns(times)
        ended = (self.time[:, np.newaxis] <= times) * self.event_term[:, np.newaxis]
        return self.survival[:, columns] * (1.0 - ended + self.compensator[:, columns])

    def means(self, horizon: float) -> Floats:
        """Restricted means, the integral of Y* up to the horizon; shape (n,)."""
        grid = self.grid
        mean = grid.means(self.survival * (1.0 + self.compensator), horizon)
        # The event term is subtracted from the row's own time on.
        until = np.minimum(self.time, horizon)
        rows, column = np.arange(len(until)), grid.columns(until)
        steps = np.diff(grid.begins)
        before = np.zeros_like(self.survival)
        np.cumsum(self.survival[:, :-1] * steps, axis=1, out=before[:, 1:])
        own = before[rows, column] + self.survival[rows, column] * (until - grid.begins[column])
        return mean - self.event_term * (self.survival @ grid.widths(horizon) - own)


def make_response(
    grid: Grid,
    time: Floats,
    event: NDArray[np.bool_],
    survival: Floats,
    censoring: Floats,
    censoring_at_own: Floats,
) -> Response:
    """Responses from the curves of each row.

    survival, censoring : (n, n_times), S(u) and G(u-) on the grid; censoring_at_own : (n,), G(Y-)
    """
    n = len(time)
    curve = np.hstack([np.ones((n, 1)), np.maximum(survival, LEAST_SURVIVAL)])
    # dLambda(u) / S(u) is the step of 1 / S at u.
    steps = np.diff(1.0 / curve, axis=1) / np.maximum(censoring, LEAST_CENSORING)
    steps[grid.times > time[:, np.newaxis]] = 0.0
    compensator = np.zeros_like(curve)
    np.cumsum(steps, axis=1, out=compensator[:, 1:])
    own = curve[np.arange(n), grid.columns(time)]
    event_term = event / (own * np.maximum(censoring_at_own, LEAST_CENSORING))
    return Response(grid, time, curve, compensator, event_term)
