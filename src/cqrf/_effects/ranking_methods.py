"""Methods of the treatment forest that say how well priorities find those who benefit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cqrf._effects.fit import read_effect_settings
from cqrf._effects.follow_up import Known, follow
from cqrf._effects.halves import halves_with_priorities
from cqrf._effects.methods import AverageMethods
from cqrf._effects.predict import insample_effects, residual_responses, training_effects
from cqrf._effects.ranking import (
    METRICS,
    RankAverage,
    Statistic,
    TargetingCurve,
    rank_average,
    toc_at,
    with_error,
)
from cqrf._effects.response import Floats
from cqrf._effects.targets import LinearTarget
from cqrf._runtime.arguments import read_choice, read_floats
from cqrf._survival.little_bags import confidence_width


class RankingMethods(AverageMethods):
    """Rank-weighted average effects, and the targeting operator characteristic."""

    def rate(
        self,
        priorities: ArrayLike | None = None,
        target: str = "rmst",
        *,
        metric: str = "autoc",
        horizon: float | None = None,
        times: float | None = None,
        confidence: float = 0.95,
        beyond: str = "nan",
    ) -> RankAverage:
        """Rank-weighted average effect: how well priorities find those who benefit most.

        Parameters
        ----------
        priorities : array-like of shape (n,), optional
            One number for each training row; the highest are treated first. They must not have
            been learnt from the outcomes of these rows. None: each half of the rows is ranked by
            an effect forest of the other half, and the results of both are averaged.
        target, horizon, times, beyond : optional
            As in :meth:`effect`, with one time.
        metric : {"autoc", "qini"}
            AUTOC weights the first rows most; QINI weights by the share treated.
        confidence : float, default=0.95
            Probability with which the interval holds.

        Returns
        -------
        RankAverage
            ``estimate``, ``standard_error``, ``lower`` and ``upper``.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> found = forest.rate(data.X[:, 0], "survival", times=1.0)
        >>> found.lower < found.estimate < found.upper
        True
        """
        read_choice("metric", metric, METRICS)
        width = confidence_width(confidence)
        known = follow(self._model(), self._single(target, horizon, times), beyond)

        def statistic(scores: Floats, ranking: Floats, weight: Floats) -> Floats:
            return np.array([rank_average(scores, ranking, weight, metric)])

        estimate, error = (float(each[0]) for each in self._estimate(statistic, priorities, known))
        lower, upper = estimate - width * error, estimate + width * error
        return RankAverage(estimate, error, lower, upper, metric, confidence)

    def toc(
        self,
        priorities: ArrayLike | None = None,
        target: str = "rmst",
        *,
        shares: ArrayLike | None = None,
        horizon: float | None = None,
        times: float | None = None,
        beyond: str = "nan",
    ) -> TargetingCurve:
        """Targeting operator characteristic: average effect of the first rows less that of all.

        Parameters
        ----------
        priorities, target, horizon, times, beyond : optional
            As in :meth:`rate`.
        shares : array-like, optional
            Shares of the rows, above 0 and at most 1. Default: .1 to 1.

        Returns
        -------
        TargetingCurve
            ``share``, ``estimate`` and ``standard_error``.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.toc(data.X[:, 0], "survival", times=1.0, shares=[0.5, 1.0]).estimate.shape
        (2,)
        """
        read = np.arange(1, 11) / 10 if shares is None else read_floats("shares", shares)
        if read.ndim != 1 or not ((read > 0) & (read <= 1)).all():
            raise ValueError(f"shares must be numbers above 0 and at most 1; found {shares!r}.")
        known = follow(self._model(), self._single(target, horizon, times), beyond)

        def statistic(scores: Floats, ranking: Floats, weight: Floats) -> Floats:
            return toc_at(scores, ranking, weight, read)

        return TargetingCurve(read, *self._estimate(statistic, priorities, known))

    def _estimate(
        self, statistic: Statistic, priorities: Any, known: Known
    ) -> tuple[Floats, Floats]:
        """An estimate from scores, priorities and weights of rows, and its standard error."""
        model, wanted = self.model_, known.target
        scores, ranks = self._scores(known), model.effect.ranks
        weight, unit, has_score = model.weight[ranks], model.unit[ranks], model.has_score[ranks]
        seed = model.effect.seed
        if priorities is not None:
            ranking = read_floats("priorities", priorities)
            if ranking.shape != scores.shape or np.isnan(ranking).any():
                raise ValueError(
                    f"priorities must be {len(scores)} numbers without NaN, one for each training "
                    f"row; found shape {ranking.shape}."
                )
            self._warn_of_own(ranking, wanted)
            rows = np.flatnonzero(has_score)
            return with_error(
                statistic, scores[rows], ranking[rows], weight[rows], unit[rows], seed
            )
        settings = read_effect_settings(
            self, model.effect.sampling.n_units // 2, len(model.effect.edges), seed
        )
        responses, parts = residual_responses(model, wanted), []
        for half in halves_with_priorities(model, responses, settings, self.n_jobs):
            scored = has_score[half.rows]
            rows, ranking = half.rows[scored], half.priorities[scored]
            parts.append(
                with_error(statistic, scores[rows], ranking, weight[rows], unit[rows], seed)
            )
        estimates, errors = (np.stack(each) for each in zip(*parts, strict=True))
        # Each half ranks the other, so that chance moves both estimates in the same direction.
        return estimates.mean(axis=0), errors.mean(axis=0)

    def _warn_of_own(self, ranking: Floats, wanted: LinearTarget) -> None:
        """Warn if the priorities are the forest's own effects at its training rows."""
        model, ranks = self.model_, self.model_.effect.ranks
        responses = residual_responses(model, wanted)
        for effects in (insample_effects, training_effects):
            own = model.sign * effects(model, responses, self.n_jobs)[ranks, 0]
            if np.allclose(ranking, own, rtol=1e-9, atol=0.0):
                warnings.warn(
                    "priorities are this forest's effects at the rows it was fitted to, so that "
                    "they are not independent of the outcomes that evaluate them. Leave priorities "
                    "out: each half of the rows is then ranked by a forest of the other half.",
                    UserWarning,
                    stacklevel=4,
                )
                return
