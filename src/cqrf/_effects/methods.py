"""Methods of the treatment forest that read its training rows: averages and projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._effects.averages import (
    POPULATIONS,
    AverageEffect,
    average,
    average_quantiles,
    effect_scores,
)
from cqrf._effects.fitted import EffectModel
from cqrf._effects.follow_up import Known, follow, refuse_beyond
from cqrf._effects.predict import residual_responses, training_effects
from cqrf._effects.projection import LinearProjection, project
from cqrf._effects.response import Floats
from cqrf._effects.targets import LinearTarget, Quantiles, Target, read_target
from cqrf._effects.treatment import HIGH, LOW
from cqrf._input.features import read_features
from cqrf._model.queries import Queries, encode_all
from cqrf._runtime.arguments import read_choice, read_floats


@dataclass(frozen=True)
class Overlap:
    """Propensities of the training rows, and what they say about the comparison.

    Attributes
    ----------
    propensity : ndarray of shape (n,)
        Probability of treatment of each row, out of bag or as given.
    treated : ndarray of bool
    n_outside : int
        Rows with a propensity below .05 or above .95.
    censoring_floored : float
        Share of rows whose probability of not being censored before their own time is below .05
        and was replaced by it.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> forest.overlap().n_outside
    0
    """

    propensity: NDArray[np.float64]
    treated: NDArray[np.bool_]
    n_outside: int
    censoring_floored: float

    def __repr__(self) -> str:
        low, high = self.propensity.min(), self.propensity.max()
        return (
            f"Overlap(propensity from {low:.3f} to {high:.3f}; {self.n_outside} of "
            f"{len(self.propensity)} rows below .05 or above .95; "
            f"{self.censoring_floored:.1%} of rows with a probability of being uncensored at its "
            "limit)"
        )


def read_arm(arm: Any, names: tuple[Any, Any], treated: int) -> int:
    """Number of an arm, from 0 (control), 1 (treatment) or its name."""
    if isinstance(arm, str | bool | np.bool_) or arm not in (0, 1):
        if arm not in names:
            raise ValueError(
                f"arm={arm!r} must be 0 for the control {names[0]!r}, 1 for the treatment "
                f"{names[1]!r}, or one of these names."
            )
        arm = names.index(arm)
    return treated if arm == 1 else 1 - treated


class AverageMethods:
    """Averages over the training rows, from doubly robust scores."""

    model_: EffectModel
    n_jobs: int | None

    def effect_oob(
        self,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> NDArray[np.float64]:
        """Effect at each training row, from the trees that did not draw it; not for quantiles.

        Parameters
        ----------
        target, horizon, times, beyond : optional
            As in :meth:`effect`.

        Returns
        -------
        ndarray of shape (n_train,) for one number, (n_train, n_outputs) for a list

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.effect_oob("survival", times=[0.5, 1.0]).shape
        (200, 2)
        """
        model = self._model()
        wanted = _linear(read_target(model, target, horizon, times))
        known = follow(model, wanted, beyond)
        responses = residual_responses(model, known.target)
        values = model.sign * training_effects(model, responses, self.n_jobs)[model.effect.ranks]
        values = known.blank(values)
        return values[:, 0] if wanted.is_single else values

    def scores(
        self,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> NDArray[np.float64]:
        """Doubly robust scores of the training rows, whose mean is the average effect.

        Parameters
        ----------
        target, horizon, times, beyond : optional
            As in :meth:`effect`; not for quantiles.

        Returns
        -------
        ndarray of shape (n_train,) for one number, (n_train, n_outputs) for a list

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> scores = forest.scores("survival", times=1.0)
        >>> bool(abs(scores.mean() - forest.ate("survival", times=1.0).estimate) < 1e-9)
        True
        """
        model = self._model()
        wanted = _linear(read_target(model, target, horizon, times))
        known = follow(model, wanted, beyond)
        values = known.blank(effect_scores(model, known.target, self.n_jobs)[model.effect.ranks])
        return values[:, 0] if wanted.is_single else values

    def ate(
        self,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        quantiles: float | Sequence[float] | None = None,
        population: str = "all",
        subset: ArrayLike | None = None,
        confidence: float = 0.95,
        beyond: str = "nan",
    ) -> AverageEffect:
        """Average effect over the training rows, with its standard error and interval.

        Parameters
        ----------
        target, horizon, times, quantiles, beyond : optional
            As in :meth:`effect`. The effect on a quantile is the difference of the quantiles of
            the average curves of the arms.
        population : {"all", "treated", "control", "overlap"}
            Whose average: of all rows, of those who were treated or not, or of all with weights
            e (1 - e), which give little weight to those with hardly a counterpart. Quantiles:
            ``"all"`` only.
        subset : array-like of bool of shape (n,), or of row numbers, optional
            Training rows to average over.
        confidence : float, default=0.95
            Probability with which the interval holds.

        Returns
        -------
        AverageEffect
            ``estimate``, ``standard_error``, ``lower`` and ``upper``.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> average = forest.ate("survival", times=1.0)
        >>> average.lower < average.estimate < average.upper
        True
        """
        model = self._model()
        read_choice("population", population, POPULATIONS)
        wanted = read_target(model, target, horizon, times, quantiles)
        if isinstance(wanted, Quantiles) and population != "all":
            raise ValueError(
                f'target="quantile" has population="all" only; found population={population!r}.'
            )
        rows = None if subset is None else _read_subset(subset, model)
        if isinstance(wanted, Quantiles):
            refuse_beyond(wanted, beyond)
            return average_quantiles(model, wanted, rows, confidence, self.n_jobs)
        known = follow(model, wanted, beyond)
        return average(model, known, population, rows, confidence, self.n_jobs)

    def best_linear_projection(
        self,
        A: Any = None,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: float | None = None,
        subset: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> LinearProjection:
        """Least squares of the effect on covariates, with HC3 standard errors.

        Parameters
        ----------
        A : array-like or frame of shape (n, p), optional
            Numbers, one row for each training row, without missing values. None: the average
            effect alone.
        target, horizon, times, beyond : optional
            As in :meth:`effect`, with one time.
        subset : array-like, optional
            Training rows to use, as in :meth:`ate`.

        Returns
        -------
        LinearProjection
            ``names``, ``coefficient``, ``standard_error`` and ``p_value``; the intercept is first.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> projection = forest.best_linear_projection(data.X[:, :2], "survival", times=1.0)
        >>> projection.names
        ['intercept', 'A0', 'A1']
        """
        model = self._model()
        known = follow(model, self._single(target, horizon, times), beyond)
        scores = self._scores(known)
        matrix, names = _read_covariates(A, len(scores))
        chosen = model.has_score
        if subset is not None:
            chosen = chosen & _read_subset(subset, model)
        by_row = model.effect.ranks
        rows = chosen[by_row]
        return project(
            scores[rows],
            matrix[rows],
            names,
            model.weight[by_row][rows],
            model.unit[by_row][rows],
        )

    def overlap(self) -> Overlap:
        """Propensities of the training rows, and how far the comparison rests on few of them.

        Returns
        -------
        Overlap
            ``propensity``, ``treated``, ``n_outside`` and ``censoring_floored``.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.overlap().propensity[:2]
        array([0.5, 0.5])
        """
        model = self._model()
        ranks = model.effect.ranks
        propensity = model.nuisances.probability[ranks, model.treated]
        outside = (propensity < LOW) | (propensity > HIGH)
        return Overlap(
            propensity,
            model.arm == bool(model.treated),
            int(outside.sum()),
            model.nuisances.floored,
        )

    def _model(self) -> EffectModel:
        check_is_fitted(self, "model_")
        return self.model_

    def _queries(self, X: Any) -> tuple[Any, Queries]:
        model = self._model()
        matrix, _ = read_features(self, X, model.effect.columns)
        return model, Queries(encode_all(model.effect, matrix, self.n_jobs))

    def _single(self, target: str, horizon: Any, times: Any) -> LinearTarget:
        """The target, with one horizon or time."""
        wanted = _linear(read_target(self._model(), target, horizon, times))
        if not wanted.is_single:
            raise ValueError(f"times must be one time here; found {times!r}.")
        return wanted

    def _scores(self, known: Known) -> Floats:
        """Scores of the training rows for one output, by row, (n,); NaN if it is not known."""
        scores = effect_scores(self.model_, known.target, self.n_jobs)
        return known.blank(scores)[self.model_.effect.ranks, 0]


def _linear(wanted: Target) -> LinearTarget:
    """The target, unless it is a quantile, which has no scores."""
    if isinstance(wanted, Quantiles):
        raise ValueError(
            'target="quantile" has no scores for single rows: use "rmst" or "survival", or ate() '
            "for the effect on quantiles of the average curves."
        )
    return wanted


def _read_subset(subset: ArrayLike, model: EffectModel) -> NDArray[np.bool_]:
    """Chosen rows by rank, from a mask or numbers of rows."""
    chosen, n = np.asarray(subset), len(model.arm)
    if chosen.dtype.kind == "b" and chosen.shape == (n,):
        mask = chosen
    elif chosen.dtype.kind in "iu" and chosen.ndim == 1 and len(chosen):
        if chosen.shape == (n,) and chosen.max() <= 1:
            raise ValueError(
                f"subset has {n} numbers that are all 0 or 1: these would be row numbers. For a "
                "mask, turn them into True and False, as in subset=mask == 1."
            )
        if chosen.min() < 0 or chosen.max() >= n:
            raise ValueError(f"subset: row numbers must lie between 0 and {n - 1}.")
        mask = np.zeros(n, dtype=bool)
        mask[chosen] = True
    else:
        raise ValueError(
            f"subset must be {n} values True or False, or a list of row numbers; found an array of "
            f"{chosen.dtype} with shape {chosen.shape}."
        )
    mask = mask[model.effect.order]
    arms = model.nuisances.arm[mask & (model.weight > 0)]
    if len(arms) < 2 or arms.all() or not arms.any():
        raise ValueError(
            f"subset has {len(arms)} rows of positive weight, not some of each arm: there is "
            "nothing to compare."
        )
    return mask


def _read_covariates(A: Any, n: int) -> tuple[Floats, list[str]]:
    if A is None:
        return np.empty((n, 0)), []
    names = getattr(A, "columns", None)
    if names is None and isinstance(getattr(A, "name", None), str):  # a series
        names = [A.name]
    matrix = read_floats("A", A)
    matrix = matrix[:, np.newaxis] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) != n or not np.isfinite(matrix).all():
        raise ValueError(
            f"A must have one row of finite numbers for each of the {n} training rows; found shape "
            f"{matrix.shape}{'' if np.isfinite(matrix).all() else ' with missing values'}."
        )
    if names is None:
        names = [f"A{j}" for j in range(matrix.shape[1])]
    return matrix, [str(name) for name in names]
