"""One step curve: a right-continuous step function that is known on a range of times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import read_choice
from cqrf._survival.curve_views import describe_curves

BEYOND = ("nan", "extend")


@dataclass(frozen=True, eq=False)
class StepCurve:
    """A right-continuous step function: ``initial`` before the first of ``times``.

    It is known from ``start`` to ``end``.

    Examples
    --------
    >>> from cqrf import StepCurve
    >>> curve = StepCurve(times=[1.0, 3.0], values=[0.6, 0.2], end=4.0)
    >>> curve([0.5, 1.0, 2.9, 3.0, 5.0]).tolist()
    [1.0, 0.6, 0.6, 0.2, nan]
    >>> curve([5.0], beyond="extend").tolist()
    [0.2]
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    initial: float = 1.0
    start: float = -np.inf
    end: float = np.inf

    def __call__(self, times: ArrayLike, beyond: str = "nan") -> NDArray[np.float64]:
        """Values at given times.

        Parameters
        ----------
        times : array-like
            Times.
        beyond : {"nan", "extend"}
            Values outside of ``start`` to ``end``: NaN, or the flat line, which is not an estimate.

        Returns
        -------
        ndarray of the shape of ``times``
        """
        at = np.asarray(times, dtype=np.float64)
        steps = np.concatenate([[self.initial], self.values])
        values = steps[np.searchsorted(self.times, at, side="right")]
        if read_choice("beyond", beyond, BEYOND) == "extend":
            return values
        return np.where((at < self.start) | (at > self.end), np.nan, values)

    @property
    def x(self) -> NDArray[np.float64]:
        """Times of the steps, by the name that scikit-survival uses."""
        return np.asarray(self.times, dtype=np.float64)

    @property
    def y(self) -> NDArray[np.float64]:
        """Values from each step on, by the name that scikit-survival uses."""
        return np.asarray(self.values, dtype=np.float64)

    @property
    def domain(self) -> tuple[float, float]:
        """First and last time at which the curve is known."""
        return self.start, self.end

    def __repr__(self) -> str:
        n = len(self.times)
        return f"StepCurve({n} step{'' if n == 1 else 's'}, {describe_curves([self])})"
