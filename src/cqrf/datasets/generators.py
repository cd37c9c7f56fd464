"""Simulated data whose conditional quantiles are known.

In each model the latent time T, or log T, is normal given x. Its tau-quantile is
location(x) + scale(x) z_tau, with z_tau the standard normal quantile. The observed time is
Y = min(T, C), and ``event`` is True where T <= C. Covariates are numbered from one in the text:
x1 is the first column of ``X``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from cqrf._input.target import censored
from cqrf.datasets.randomness import Randomness, draw_exponential, open_randomness

NOISE_SCALE = 0.3  # standard deviation of log T in the AFT models and of T in the sine model
HETEROSCEDASTIC_MEAN = 10.0
HETEROSCEDASTIC_FIRST_CENSORING = 8.0
SINE_MEAN = 2.5
SINE_FIRST_CENSORING = 1.0  # sin(x) is added, so censoring starts 1.5 below the mean of T
DEPENDENT_CENSORING_MEAN = 7.4  # where x2 is 1, the middle of its range

Floats: TypeAlias = NDArray[np.float64]


class Simulation(NamedTuple):
    """Simulated rows, with their latent times and true quantiles.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Covariates.
    y : structured ndarray of shape (n_samples,)
        The fields ``event`` and ``time``, ready for ``fit``.
    latent : ndarray of shape (n_samples,)
        The event time T, also of censored rows.
    quantile : callable
        ``quantile(X, tau)`` is the true conditional quantile of T: of shape (n,) for one
        level, (n, k) for k levels.
    """

    X: Floats
    y: NDArray[np.void]
    latent: Floats
    quantile: Callable[[ArrayLike, ArrayLike], Floats]


def make_aft(
    n_samples: int = 1000,
    n_features: int = 20,
    *,
    censoring_rate: float = 0.08,
    random_state: Randomness = None,
) -> Simulation:
    """Simulate an accelerated failure time model, censored independently of x.

    Covariates are uniform on [0, 2], log T = x1 + N(0, 0.3²) and C is exponential. At the
    default rate 22 % of the rows are censored.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=20
        Number of covariates; all but the first are noise.
    censoring_rate : float, default=0.08
        Rate of the exponential censoring time; 0 is no censoring.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    Simulation
        ``X``, ``y``, ``latent`` and ``quantile``; unpacks in this order.

    Examples
    --------
    >>> from cqrf.datasets import make_aft
    >>> X, y, latent, quantile = make_aft(random_state=0)
    >>> X.shape
    (1000, 20)
    >>> quantile(X, [0.1, 0.5, 0.9]).shape
    (1000, 3)
    """
    source = open_randomness(random_state)
    X = _draw_covariates(source, n_samples, n_features, low=0.0, high=2.0)
    latent = np.exp(X[:, 0] + NOISE_SCALE * source.normal(size=n_samples))
    censoring = draw_exponential(source, censoring_rate, n_samples)
    return _observe(X, latent, censoring, aft_quantile)


def make_heteroscedastic(
    n_samples: int = 2000,
    n_features: int = 40,
    *,
    censoring_rate: float = 0.10,
    random_state: Randomness = None,
) -> Simulation:
    """Simulate times whose variance, but not whose mean, depends on x.

    Covariates are uniform on [-1, 1], T is N(10, 1) where x1 <= 0 and N(10, 2²) where
    x1 > 0, and C is 8 plus an exponential time. At the default rate 18 % of the rows are
    censored.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows.
    n_features : int, default=40
        Number of covariates; all but the first are noise.
    censoring_rate : float, default=0.10
        Rate of the exponential part of the censoring time; 0 is no censoring.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    Simulation
        ``X``, ``y``, ``latent`` and ``quantile``; unpacks in this order.

    Examples
    --------
    >>> from cqrf.datasets import make_heteroscedastic
    >>> simulation = make_heteroscedastic(n_features=2, random_state=0)
    >>> simulation.quantile([[-0.5, 0.0], [0.5, 0.0]], 0.9).round(2)
    array([11.28, 12.56])
    """
    source = open_randomness(random_state)
    X = _draw_covariates(source, n_samples, n_features, low=-1.0, high=1.0)
    noise = source.normal(size=n_samples)
    latent = HETEROSCEDASTIC_MEAN + _heteroscedastic_scale(X[:, 0]) * noise
    censoring = HETEROSCEDASTIC_FIRST_CENSORING + draw_exponential(
        source, censoring_rate, n_samples
    )
    return _observe(X, latent, censoring, heteroscedastic_quantile)


def make_sine(
    n_samples: int = 300,
    *,
    censoring_rate: float = 0.2,
    random_state: Randomness = None,
) -> Simulation:
    """Simulate a sine curve in one covariate, with censoring that follows the curve.

    The covariate is uniform on [0, 2π], T = 2.5 + sin(x) + N(0, 0.3²), and C is
    1 + sin(x) plus an exponential time. At the default rate 26 % of the rows are censored.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows.
    censoring_rate : float, default=0.2
        Rate of the exponential part of the censoring time; 0 is no censoring.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    Simulation
        ``X``, ``y``, ``latent`` and ``quantile``; unpacks in this order.

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf.datasets import make_sine
    >>> simulation = make_sine(random_state=0)
    >>> simulation.quantile([[0.0], [np.pi / 2]], 0.5)
    array([2.5, 3.5])
    """
    source = open_randomness(random_state)
    X = _draw_covariates(source, n_samples, 1, low=0.0, high=2 * np.pi)
    curve = np.sin(X[:, 0])
    latent = SINE_MEAN + curve + NOISE_SCALE * source.normal(size=n_samples)
    censoring = SINE_FIRST_CENSORING + curve + draw_exponential(source, censoring_rate, n_samples)
    return _observe(X, latent, censoring, sine_quantile)


def make_dependent_censoring(
    n_samples: int = 2000,
    n_features: int = 20,
    *,
    slope: float = 2.0,
    random_state: Randomness = None,
) -> Simulation:
    """Simulate censoring that depends strongly on a covariate that T does not depend on.

    Covariates are uniform on [0, 2] and log T = x1 + N(0, 0.3²), as in :func:`make_aft`.
    C is exponential with mean 7.4 exp(slope (x2 - 1)), which at the default slope grows from
    1 to 55 along x2. Overall 39 % of the rows are then censored: 87 % where x2 is near 0, 6 %
    where it is near 2. Given x, T and C are independent. A criterion that takes Y for T splits
    on x2, although T does not depend on it.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows.
    n_features : int, default=20
        Number of covariates, at least 2; all but the first two are noise.
    slope : float, default=2.0
        How strongly C depends on x2; 0 is no dependence, with 34 % of the rows censored.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    Simulation
        ``X``, ``y``, ``latent`` and ``quantile``; unpacks in this order.

    Examples
    --------
    >>> from cqrf.datasets import make_dependent_censoring
    >>> X, y, latent, quantile = make_dependent_censoring(random_state=0)
    >>> bool(y["event"][X[:, 1] > 1].mean() > y["event"][X[:, 1] <= 1].mean())
    True
    """
    if n_features < 2:
        raise ValueError(
            f"n_features must be at least 2 (T depends on x1, C on x2); found {n_features}."
        )
    source = open_randomness(random_state)
    X = _draw_covariates(source, n_samples, n_features, low=0.0, high=2.0)
    latent = np.exp(X[:, 0] + NOISE_SCALE * source.normal(size=n_samples))
    mean = DEPENDENT_CENSORING_MEAN * np.exp(slope * (X[:, 1] - 1))
    censoring = mean * draw_exponential(source, 1.0, n_samples)
    return _observe(X, latent, censoring, aft_quantile)


def aft_quantile(X: ArrayLike, tau: ArrayLike) -> Floats:
    """Return the true quantile of T in both AFT models, exp(x1 + 0.3 z_tau)."""
    return np.exp(_normal_quantile(_first_column(X), NOISE_SCALE, tau))


def heteroscedastic_quantile(X: ArrayLike, tau: ArrayLike) -> Floats:
    """Return the true quantile of T in the heteroscedastic model, 10 + (1 + 1{x1 > 0}) z_tau."""
    x1 = _first_column(X)
    mean = np.full(len(x1), HETEROSCEDASTIC_MEAN)
    return _normal_quantile(mean, _heteroscedastic_scale(x1), tau)


def sine_quantile(X: ArrayLike, tau: ArrayLike) -> Floats:
    """Return the true quantile of T in the sine model, 2.5 + sin(x) + 0.3 z_tau."""
    return _normal_quantile(SINE_MEAN + np.sin(_first_column(X)), NOISE_SCALE, tau)


def _draw_covariates(
    source: np.random.Generator | np.random.RandomState,
    n_samples: int,
    n_features: int,
    low: float,
    high: float,
) -> Floats:
    if n_samples < 1 or n_features < 1:
        raise ValueError(
            f"n_samples and n_features must be at least 1; found {n_samples} and {n_features}."
        )
    return source.uniform(low, high, size=(n_samples, n_features))


def _observe(
    X: Floats,
    latent: Floats,
    censoring: Floats,
    quantile: Callable[[ArrayLike, ArrayLike], Floats],
) -> Simulation:
    y = censored(np.minimum(latent, censoring), latent <= censoring)
    return Simulation(X, y, latent, quantile)


def _heteroscedastic_scale(x1: Floats) -> Floats:
    return np.where(x1 > 0, 2.0, 1.0)


def _first_column(X: ArrayLike) -> Floats:
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; found {matrix.shape}.")
    return matrix[:, 0]


def _normal_quantile(location: Floats, scale: Floats | float, tau: ArrayLike) -> Floats:
    levels = np.asarray(tau, dtype=np.float64)
    if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(
            f"tau must be one level or a list of levels between 0 and 1; found {tau!r}."
        )
    z: Floats = ndtri(levels)
    if levels.ndim == 0:
        return location + scale * z
    return location[:, np.newaxis] + np.multiply.outer(scale, z)
