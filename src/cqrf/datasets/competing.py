"""Simulated competing risks whose cumulative incidences are known.

A row has one of two causes. Given its cause k and x, log T is normal:

    P(cause k | x) = p_k(x),    log T | cause k, x ~ N(m_k(x), 0.5^2).

The cumulative incidence is F_k(t|x) = p_k(x) Phi((log t - m_k(x)) / 0.5), with Phi the standard
normal distribution. Its tau-quantile exists where tau < p_k(x). Covariates are numbered from one in
the text: x1 is the first column of ``X``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr, ndtri

from cqrf._input.target import censored
from cqrf.datasets.randomness import Randomness, draw_exponential, open_randomness

CAUSES = (1, 2)
LOG_SCALE = 0.5  # standard deviation of log T given the cause
CENSORING_MEAN = 8.0  # where x2 is 1, the middle of its range
FEWEST_FEATURES = 3

Floats = NDArray[np.float64]


class CompetingSimulation(NamedTuple):
    """Simulated rows, with their latent times and causes and the true incidences.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Covariates.
    y : structured ndarray of shape (n_samples,)
        The fields ``event``, ``time`` and ``cause``, ready for ``fit``; ``cause`` is 1 or 2, and
        0 in censored rows.
    latent : ndarray of shape (n_samples,)
        The event time T, also of censored rows.
    latent_cause : ndarray of shape (n_samples,)
        The cause, 1 or 2, also of censored rows.
    incidence : callable
        ``incidence(X, times, cause=1)`` is the true F_1(t|x), of shape (n, n_times);
        ``incidence(X, times)`` that of both causes, of shape (n, 2, n_times).
    quantile : callable
        ``quantile(X, tau, cause=1)`` is the first t with F_1(t|x) >= tau, infinite if there is
        none: of shape (n,) for one level, (n, k) for k levels.
    """

    X: Floats
    y: NDArray[np.void]
    latent: Floats
    latent_cause: NDArray[np.int64]
    incidence: Callable[..., Floats]
    quantile: Callable[..., Floats]


def make_competing_risks(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    slope: float = 1.0,
    random_state: Randomness = None,
) -> CompetingSimulation:
    """Simulate two competing causes with different effects of the covariates.

    Covariates are uniform on [0, 2]. The cause is 1 with probability 1 / (1 + exp(2 - 2 x3)),
    otherwise 2. The time to an event of cause 1 grows with x1, log T ~ N(x1, 0.5²), that to one of
    cause 2 falls with x2, log T ~ N(2 - x2, 0.5²). C is exponential with mean
    8 exp(slope (x2 - 1)), independent of T given x. At the default slope 36 % of the rows are
    censored.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=10
        Number of covariates, at least 3; all but the first three are noise.
    slope : float, default=1.0
        How strongly C depends on x2; 0 is no dependence.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator.

    Returns
    -------
    CompetingSimulation
        ``X``, ``y``, ``latent``, ``latent_cause``, ``incidence`` and ``quantile``; unpacks in
        this order.

    Examples
    --------
    >>> from cqrf.datasets import make_competing_risks
    >>> simulation = make_competing_risks(random_state=0)
    >>> simulation.y.dtype.names
    ('event', 'time', 'cause')
    >>> simulation.incidence([[1.0, 1.0, 1.0]], [2.0, 1000.0]).round(2)
    array([[[0.13, 0.5 ],
            [0.13, 0.5 ]]])
    """
    if n_samples < 1 or n_features < FEWEST_FEATURES:
        raise ValueError(
            f"n_samples must be at least 1 and n_features at least {FEWEST_FEATURES}; found "
            f"{n_samples} and {n_features}."
        )
    source = open_randomness(random_state)
    X = source.uniform(0.0, 2.0, size=(n_samples, n_features))
    shares, locations = _shares(X), _locations(X)
    place = (source.uniform(size=n_samples) >= shares[:, 0]).astype(np.intp)
    noise = LOG_SCALE * source.normal(size=n_samples)
    latent = np.exp(locations[np.arange(n_samples), place] + noise)
    mean = CENSORING_MEAN * np.exp(slope * (X[:, 1] - 1))
    censoring = mean * draw_exponential(source, 1.0, n_samples)
    cause = np.array(CAUSES)[place]
    y = censored(np.minimum(latent, censoring), np.where(latent <= censoring, cause, 0), censored=0)
    return CompetingSimulation(X, y, latent, cause, competing_incidence, competing_quantile)


def competing_incidence(X: ArrayLike, times: ArrayLike, cause: Any = None) -> Floats:
    """True cumulative incidence of a cause, (n, n_times), or of both, (n, 2, n_times)."""
    matrix = _read_matrix(X)
    at = np.atleast_1d(np.asarray(times, np.float64))
    if at.ndim > 1 or np.isnan(at).any():
        raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.maximum(at, 0.0))
    distance = (logarithm - _locations(matrix)[:, :, np.newaxis]) / LOG_SCALE
    incidence = _shares(matrix)[:, :, np.newaxis] * ndtr(distance)
    return incidence if cause is None else incidence[:, _find_cause(cause)]


def competing_quantile(X: ArrayLike, tau: ArrayLike, cause: Any) -> Floats:
    """First t at which the true incidence of a cause reaches each level; inf if it never does."""
    matrix, place = _read_matrix(X), _find_cause(cause)
    levels = np.asarray(tau, np.float64)
    if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(
            f"tau must be one level or a list of levels between 0 and 1; found {tau!r}."
        )
    relative = np.atleast_1d(levels) / _shares(matrix)[:, place, np.newaxis]
    z = ndtri(np.minimum(relative, 1.0))  # infinite where the incidence stays below the level
    quantile = np.exp(_locations(matrix)[:, place, np.newaxis] + LOG_SCALE * z)
    return quantile[:, 0] if levels.ndim == 0 else quantile


def _find_cause(cause: Any) -> int:
    if cause not in CAUSES:
        raise ValueError(f"cause={cause!r} is unknown; choose 1 or 2.")
    return CAUSES.index(cause)


def _shares(X: Floats) -> Floats:
    """Probability of each cause, of shape (n, 2)."""
    first = expit(2.0 * (X[:, 2] - 1.0))
    return np.column_stack([first, 1.0 - first])


def _locations(X: Floats) -> Floats:
    """Mean of log T given each cause, of shape (n, 2)."""
    return np.column_stack([X[:, 0], 2.0 - X[:, 1]])


def _read_matrix(X: ArrayLike) -> Floats:
    matrix = np.asarray(X, np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < FEWEST_FEATURES:
        raise ValueError(
            f"X must have two dimensions and at least {FEWEST_FEATURES} columns; found shape "
            f"{matrix.shape}."
        )
    return matrix
