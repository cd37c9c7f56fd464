"""Simulated trials and observational studies whose treatment effects are known.

Covariates are uniform on [0, 1], x1 is the first column of ``X``, and w is 1 for treated rows. In
each kind the latent time T has a distribution of one of four families given x and w, so that its
survival, restricted mean and quantiles have closed forms. The observed time is Y = min(T, C), and
``event`` is True where T <= C. Times of ``type3`` and ``type4`` are whole numbers.

======== ========================================== ============================================
kind     T                                          P(w = 1), C
======== ========================================== ============================================
simple1  w + x1 Exp(1)                              1/2; 2 U(0, 1)
type1    log T normal, mean -1.85 - .8 I + .7 √x2   (1 + beta(x1; 2, 4)) / 4; C² exponential,
         + .2 x3 + w (.7 - .4 I - .4 √x2), sd 1     log rate -1.75 - .5 √x2 + .2 x3
         with I = 1(x1 < .5)                        + w (1.15 + .5 I - .3 √x2)
type2    √T exponential, rate exp(x1 + w (x2-.5))   as type1; 3 U(0, 1)
type3    Poisson, mean x2² + x3 + 6                 as type1; Poisson, mean 12 + log(1 + exp x3)
         + 2 w (√x1 - .3)
type4    Poisson, mean x2 + x3                      1 / ((1 + exp(-x1)) (1 + exp(-x2)));
         + w max(0, x1 - .3)                        Poisson, mean 1 + log(1 + exp x3)
type5    √T exponential, rate exp(x1 + w (x2-.4))   as type1; log C normal, mean x1 - w x3, sd 1
confoun- log T normal, mean -.5 + .7 b              sin(π x1 x2), at least .1 and at most .9;
ded      + w (.1 + .2 (x1 + x2)), sd .6             exp(.9 + .8 x4 - .5 w) Weibull(1.5)
null     the same without w                         the same
spread   log T normal, mean x1 + .5 x3,             1/2; exp(1.3 + .5 x2) Weibull(1.5)
         sd .3 + .9 w x2
======== ========================================== ============================================

with b = sin(π x1 x2) + 2 (x3 - .5)² + x4 + .5 x5. The first six are designs of R's grf
(``generate_causal_survival_data``). Its type5 takes the first row of X, recycled, where the first
column was surely meant; here it is the first column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr, ndtri, pdtr, pdtrik
from scipy.stats import beta

from cqrf._input.target import censored
from cqrf.datasets.generators import Floats
from cqrf.datasets.randomness import Randomness, open_randomness

Source = np.random.Generator | np.random.RandomState
# The argument of each target, and the method of a distribution that gives it.
TARGETS = {
    "rmst": ("horizon", "restricted_mean"),
    "survival": ("times", "survival"),
    "quantile": ("quantiles", "quantile"),
}


class LogNormal(NamedTuple):
    """Times whose logarithm is normal."""

    location: Floats
    scale: Floats | float

    def draw(self, source: Source) -> Floats:
        """One time for each row."""
        return np.exp(self.location + self.scale * source.normal(size=len(self.location)))

    def survival(self, time: float) -> Floats:
        """P(T > time)."""
        if time <= 0:
            return np.ones(len(self.location))
        return np.asarray(ndtr((self.location - np.log(time)) / self.scale))

    def restricted_mean(self, horizon: float) -> Floats:
        """E[min(T, horizon)]."""
        below = (np.log(horizon) - self.location) / self.scale
        mean = np.exp(self.location + np.square(self.scale) / 2)
        return np.asarray(mean * ndtr(below - self.scale) + horizon * ndtr(-below))

    def quantile(self, level: float) -> Floats:
        """Least time that T exceeds with a probability of at most 1 - level."""
        return np.asarray(np.exp(self.location + self.scale * ndtri(level)))


class SquaredExponential(NamedTuple):
    """Times whose square root is exponential."""

    rate: Floats

    def draw(self, source: Source) -> Floats:
        """One time for each row."""
        return np.square(source.standard_exponential(len(self.rate)) / self.rate)

    def survival(self, time: float) -> Floats:
        """P(T > time)."""
        return np.exp(-self.rate * np.sqrt(max(time, 0.0)))

    def restricted_mean(self, horizon: float) -> Floats:
        """E[min(T, horizon)]."""
        passed = self.rate * np.sqrt(horizon)
        return np.asarray(2.0 / self.rate**2 * (1.0 - np.exp(-passed) * (1.0 + passed)))

    def quantile(self, level: float) -> Floats:
        """Least time that T exceeds with a probability of at most 1 - level."""
        return np.square(np.log1p(-level) / self.rate)


class ShiftedExponential(NamedTuple):
    """Times that are exponential from a start on."""

    start: Floats
    mean: Floats

    def draw(self, source: Source) -> Floats:
        """One time for each row."""
        return self.start + self.mean * source.standard_exponential(len(self.mean))

    def survival(self, time: float) -> Floats:
        """P(T > time)."""
        return np.exp(-np.maximum(time - self.start, 0.0) / self.mean)

    def restricted_mean(self, horizon: float) -> Floats:
        """E[min(T, horizon)]."""
        return np.minimum(self.start, horizon) + self.mean * (1.0 - self.survival(horizon))

    def quantile(self, level: float) -> Floats:
        """Least time that T exceeds with a probability of at most 1 - level."""
        return self.start - self.mean * np.log1p(-level)


class Poisson(NamedTuple):
    """Times that are counts."""

    mean: Floats

    def draw(self, source: Source) -> Floats:
        """One time for each row."""
        return source.poisson(self.mean).astype(np.float64)

    def survival(self, time: float) -> Floats:
        """P(T > time)."""
        return np.ones(len(self.mean)) if time < 0 else np.asarray(1.0 - pdtr(time, self.mean))

    def restricted_mean(self, horizon: float) -> Floats:
        """E[min(T, horizon)], the sum of P(T > k) over stretches of length 1."""
        steps = range(int(np.ceil(horizon)))
        return np.sum([min(1.0, horizon - k) * self.survival(k) for k in steps], axis=0)

    def quantile(self, level: float) -> Floats:
        """Least time that T exceeds with a probability of at most 1 - level."""
        whole = np.floor(np.maximum(pdtrik(level, self.mean), 0.0))
        return whole + (pdtr(whole, self.mean) < level)


Times = LogNormal | SquaredExponential | ShiftedExponential | Poisson


class Design(NamedTuple):
    """One kind of data: how many covariates, and functions of X and the arm w of each row."""

    n_features: int
    propensity: Callable[[Floats], Floats]
    times: Callable[[Floats, Floats], Times]
    draw_censoring: Callable[[Source, Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class TreatmentSimulation:
    """Simulated rows of two arms, with their true effects.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Covariates.
    y : structured ndarray of shape (n,)
        The fields ``event`` and ``time``, ready for ``fit``.
    treatment : ndarray of shape (n,)
        1 for treated rows, 0 for controls.
    propensity : ndarray of shape (n,)
        True probability of treatment.
    kind : str
    """

    X: Floats
    y: NDArray[np.void]
    treatment: NDArray[np.int64]
    propensity: Floats
    kind: str

    def true_effect(
        self,
        X: ArrayLike,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
    ) -> Floats:
        """True effect at each row of X.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        target : {"rmst", "survival", "quantile"}
            As in :meth:`~cqrf.effects.CensoredTreatmentForest.effect`: the difference between the
            arms of E[min(T, horizon)], of P(T > t) at ``times``, or of ``quantiles`` of T.
        horizon : float
        times, quantiles : float or sequence of float

        Returns
        -------
        ndarray of shape (n,) for one number, (n, n_outputs) for a list

        Examples
        --------
        >>> from cqrf.datasets import make_treatment
        >>> data = make_treatment("spread", n=100, random_state=0)
        >>> data.true_effect(data.X[:1], "quantile", quantiles=[0.25, 0.5, 0.75]).round(2)
        array([[-0.24,  0.  ,  0.42]])
        """
        given = {"horizon": horizon, "times": times, "quantiles": quantiles}
        if target not in TARGETS:
            raise ValueError(f"target={target!r} is unknown; choose one of {', '.join(TARGETS)}.")
        name, method = TARGETS[target]
        at = given.pop(name)
        if at is None or any(other is not None for other in given.values()):
            raise ValueError(f'target="{target}" needs {name}=, and no other of them.')
        control, treated = (self._read(X, arm, method, at) for arm in (0, 1))
        return treated - control

    def true_survival(self, X: ArrayLike, times: ArrayLike, arm: int) -> Floats:
        """True P(T > t) in one arm, 0 or 1: (n,) for one time, (n, n_times) for a list.

        Examples
        --------
        >>> from cqrf.datasets import make_treatment
        >>> data = make_treatment("simple1", n=100, random_state=0)
        >>> data.true_survival(data.X[:2], [0.5, 1.0], arm=1)
        array([[1., 1.],
               [1., 1.]])
        """
        if arm not in (0, 1):
            raise ValueError(f"arm={arm!r} must be 0 for the control or 1 for the treatment.")
        return self._read(X, arm, "survival", times)

    def _read(self, X: ArrayLike, arm: int, method: str, at: ArrayLike) -> Floats:
        """A method of the distribution of T in one arm, at one number or several."""
        design, matrix = DESIGNS[self.kind], np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != design.n_features:
            raise ValueError(
                f"X must have {design.n_features} columns for kind={self.kind!r}; found shape "
                f"{matrix.shape}."
            )
        each = getattr(design.times(matrix, np.full(len(matrix), float(arm))), method)
        numbers = np.asarray(at, dtype=np.float64)
        if numbers.ndim == 0:
            return np.asarray(each(float(numbers)))
        return np.column_stack([each(float(number)) for number in numbers])


def make_treatment(
    kind: str = "confounded",
    n: int = 2000,
    *,
    horizon: float | None = None,
    random_state: Randomness = None,
) -> TreatmentSimulation:
    """Simulate censored times in two arms, with known effects of the treatment.

    :mod:`cqrf.datasets.treatment` lists the formulas. Treatment depends on x in all kinds but
    ``simple1`` and ``spread``, which are randomised.

    Parameters
    ----------
    kind : str, default="confounded"
        ``simple1``, ``type1`` to ``type5``: designs of R's grf with five covariates (``type5``
        with the first column of X in the censoring, where grf recycles the first row).
        ``confounded``: what makes treatment likely also makes times long; ``null``: the same
        without any effect; ``spread``: treatment widens the distribution and leaves its median;
        these have ten covariates.
    n : int, default=2000
        Number of rows.
    horizon : float, optional
        Rows still under observation then become events at the horizon, as in grf's own data. The
        truth is not cut: up to the horizon it is the same. Default: times are not cut.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    TreatmentSimulation
        ``X``, ``y``, ``treatment``, ``propensity``; ``true_effect`` and ``true_survival``.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> data = make_treatment("null", n=500, random_state=0)
    >>> data.X.shape
    (500, 10)
    >>> bool(abs(data.true_effect(data.X, "rmst", horizon=3.0)).max() > 0)
    False
    """
    if kind not in DESIGNS:
        raise ValueError(f"kind={kind!r} is unknown; choose one of {', '.join(DESIGNS)}.")
    if n < 1:
        raise ValueError(f"n must be at least 1; found {n}.")
    design, source = DESIGNS[kind], open_randomness(random_state)
    X = source.uniform(size=(n, design.n_features))
    propensity = design.propensity(X)
    arm = (source.uniform(size=n) < propensity).astype(np.float64)
    latent = design.times(X, arm).draw(source)
    censoring = design.draw_censoring(source, X, arm)
    time, event = np.minimum(latent, censoring), latent <= censoring
    if horizon is not None:
        time, event = np.minimum(time, horizon), event | (time >= horizon)
    return TreatmentSimulation(X, censored(time, event), arm.astype(np.int64), propensity, kind)


def _randomised(X: Floats) -> Floats:
    return np.full(len(X), 0.5)


def _by_beta_density(X: Floats) -> Floats:
    return np.asarray((1.0 + beta.pdf(X[:, 0], 2, 4)) / 4.0)


def _by_sine(X: Floats) -> Floats:
    return np.clip(np.sin(np.pi * X[:, 0] * X[:, 1]), 0.1, 0.9)


def _baseline(X: Floats) -> Floats:
    curved = np.sin(np.pi * X[:, 0] * X[:, 1]) + 2.0 * (X[:, 2] - 0.5) ** 2
    return np.asarray(-0.5 + 0.7 * (curved + X[:, 3] + 0.5 * X[:, 4]))


def _type1_times(X: Floats, w: Floats) -> Times:
    low, root = (X[:, 0] < 0.5).astype(np.float64), np.sqrt(X[:, 1])
    control = -1.85 - 0.8 * low + 0.7 * root + 0.2 * X[:, 2]
    return LogNormal(control + w * (0.7 - 0.4 * low - 0.4 * root), 1.0)


def _type1_censoring(source: Source, X: Floats, w: Floats) -> Floats:
    low, root = (X[:, 0] < 0.5).astype(np.float64), np.sqrt(X[:, 1])
    log_rate = -1.75 - 0.5 * root + 0.2 * X[:, 2] + w * (1.15 + 0.5 * low - 0.3 * root)
    return np.sqrt(source.standard_exponential(len(X)) / np.exp(log_rate))


def _count_censoring(at_least: float) -> Callable[[Source, Floats, Floats], Floats]:
    return lambda source, X, w: Poisson(at_least + np.log1p(np.exp(X[:, 2]))).draw(source)


def _confounded_censoring(source: Source, X: Floats, w: Floats) -> Floats:
    return np.exp(0.9 + 0.8 * X[:, 3] - 0.5 * w) * source.weibull(1.5, len(X))


DESIGNS = {
    "simple1": Design(
        5,
        _randomised,
        lambda X, w: ShiftedExponential(w, X[:, 0]),
        lambda source, X, w: 2.0 * source.uniform(size=len(X)),
    ),
    "type1": Design(5, _by_beta_density, _type1_times, _type1_censoring),
    "type2": Design(
        5,
        _by_beta_density,
        lambda X, w: SquaredExponential(np.exp(X[:, 0] + w * (X[:, 1] - 0.5))),
        lambda source, X, w: 3.0 * source.uniform(size=len(X)),
    ),
    "type3": Design(
        5,
        _by_beta_density,
        lambda X, w: Poisson(X[:, 1] ** 2 + X[:, 2] + 6.0 + 2.0 * w * (np.sqrt(X[:, 0]) - 0.3)),
        _count_censoring(12.0),
    ),
    "type4": Design(
        5,
        lambda X: expit(X[:, 0]) * expit(X[:, 1]),
        lambda X, w: Poisson(X[:, 1] + X[:, 2] + w * np.maximum(0.0, X[:, 0] - 0.3)),
        _count_censoring(1.0),
    ),
    "type5": Design(
        5,
        _by_beta_density,
        lambda X, w: SquaredExponential(np.exp(X[:, 0] + w * (X[:, 1] - 0.4))),
        lambda source, X, w: LogNormal(X[:, 0] - w * X[:, 2], 1.0).draw(source),
    ),
    "confounded": Design(
        10,
        _by_sine,
        lambda X, w: LogNormal(_baseline(X) + w * (0.1 + 0.2 * (X[:, 0] + X[:, 1])), 0.6),
        _confounded_censoring,
    ),
    "null": Design(10, _by_sine, lambda X, w: LogNormal(_baseline(X), 0.6), _confounded_censoring),
    "spread": Design(
        10,
        _randomised,
        lambda X, w: LogNormal(X[:, 0] + 0.5 * X[:, 2], 0.3 + 0.9 * w * X[:, 1]),
        lambda source, X, w: np.exp(1.3 + 0.5 * X[:, 1]) * source.weibull(1.5, len(X)),
    ),
}
