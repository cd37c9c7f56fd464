"""Effects of a treatment on censored times.

:class:`CensoredTreatmentForest` compares two arms: how much time treatment gains, how it
changes the probability of surviving a time, by how much it moves a quantile; at a row of covariates
and on average. Effects are causal if treatment was randomised, or if all that drives both
treatment and outcome is among the covariates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from cqrf._effects.arm_methods import ArmMethods
from cqrf._effects.averages import AverageEffect
from cqrf._effects.file import SavedEffects, read_treatment_file, write_treatment_file
from cqrf._effects.fit import fit_effect_model
from cqrf._effects.follow_up import follow, half_ranges, refuse_beyond
from cqrf._effects.methods import Overlap
from cqrf._effects.predict import (
    arm_curves,
    effects_and_errors,
    estimate_effects,
    quantile_effects,
    residual_responses,
)
from cqrf._effects.projection import LinearProjection
from cqrf._effects.ranking import RankAverage, TargetingCurve
from cqrf._effects.ranking_methods import RankingMethods
from cqrf._effects.targets import Quantiles, read_target
from cqrf._effects.treatment import OverlapWarning, read_treatment
from cqrf._input.features import copy_feature_names, read_features
from cqrf._input.target import read_target as read_y
from cqrf._model.file import check_settings, naming, read_notes, refusing_settings
from cqrf._model.fit import TrainingTable
from cqrf._model.settings import (
    check_n_jobs,
    check_names,
    draw_seed,
    plain_setting,
    plain_settings,
)
from cqrf._survival.little_bags import confidence_width
from cqrf.estimator import CensoredQuantileForest

__all__ = [
    "AverageEffect",
    "CensoredTreatmentForest",
    "LinearProjection",
    "Overlap",
    "OverlapWarning",
    "RankAverage",
    "TargetingCurve",
]


class CensoredTreatmentForest(RankingMethods, ArmMethods, BaseEstimator):
    """Forest that estimates effects of a treatment on censored times.

    One fit answers every target, horizon, time and quantile.

    Parameters
    ----------
    n_estimators : int, default=2000
        Trees of the effect forest, a multiple of ``bag_size``.
    min_samples_arm : int or "auto", default="auto"
        Fewest rows of each arm, and fewest events, in a child, of the rows that choose the splits.
        ``"auto"``: 30 for 2000 rows, growing with the square root of the number of rows.
    min_child_fraction : float, default=0.05
        Smallest child, as a fraction of its parent.
    max_features : float, int, "sqrt", "log2" or None, default=None
        Features tried at each node: a fraction, a count, or all.
    max_depth : int, optional
        Most splits above a leaf.
    bag_size : int, default=4
        Trees that draw from the same half of the rows; standard errors come from these bags.
    nuisance_forest : CensoredQuantileForest, optional
        Parameters of the forests of survival, censoring and propensity. Default: those of
        :class:`~cqrf.CensoredQuantileForest`.
    time_unit, event_name : str, optional
        What times are measured in, such as "days", and what the event is, such as "death"; for
        pictures, reports and pages.
    n_jobs : int, optional
        Threads; -1 for all processors.
    random_state : int, RandomState or None
        Seed.

    Attributes
    ----------
    arms_ : tuple
        Names of the control and of the treatment.
    model_ : EffectModel
        The fitted forests and the arms of their rows. ``model_.effect`` is the forest of effects.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("confounded", n=400, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=200, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment)
    >>> forest.effect(data.X[:3], target="survival", times=[1.0, 2.0]).shape
    (3, 2)
    """

    def __init__(
        self,
        *,
        n_estimators: int = 2000,
        min_samples_arm: int | str = "auto",
        min_child_fraction: float = 0.05,
        max_features: float | int | str | None = None,
        max_depth: int | None = None,
        bag_size: int = 4,
        nuisance_forest: Any = None,
        time_unit: str | None = None,
        event_name: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_arm = min_samples_arm
        self.min_child_fraction = min_child_fraction
        self.max_features = max_features
        self.max_depth = max_depth
        self.bag_size = bag_size
        self.nuisance_forest = nuisance_forest
        self.time_unit = time_unit
        self.event_name = event_name
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        treatment: ArrayLike,
        *,
        control: Any = None,
        propensity: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> CensoredTreatmentForest:
        """Grow the forests.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Covariates measured before treatment, as for :class:`~cqrf.CensoredQuantileForest`.
        y : array-like
            What :func:`~cqrf.censored` returns; right-censored, without entry times.
        treatment : array-like of shape (n,)
            Two values of any kind, such as 0 and 1, False and True, or two texts.
        control : optional
            Which of them is the control. Default: the smaller one, or the first in the alphabet;
            of an ordered categorical, the one that comes first.
        propensity : float or array-like of shape (n,), optional
            Known probability of treatment, as in a trial. Default: it is estimated.
        sample_weight : array-like of shape (n,), optional
            How often each row counts; only ratios matter.
        groups : array-like of shape (n,), optional
            Clusters of rows: they are drawn together, and errors allow for their dependence.

        Returns
        -------
        self
            Unchanged if anything fails.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.arms_
        (0, 1)
        """
        named = clone(self)
        matrix, columns = read_features(named, X)
        arms = read_treatment(treatment, control, len(matrix))
        outcome = read_y(y).drop_single_cause()
        table = TrainingTable(matrix, columns, outcome, sample_weight, groups)
        model = fit_effect_model(self, table, arms, propensity, draw_seed(self.random_state))
        copy_feature_names(named, self)
        self.model_, self.arms_ = model, arms.levels
        self.__dict__.pop("notes_", None)
        return self

    def effect(
        self,
        X: Any,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        quantiles: float | Sequence[float] | None = None,
        beyond: str = "nan",
    ) -> NDArray[np.float64]:
        """Effect of treatment at each row of X.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        target : {"rmst", "survival", "quantile"}
            ``"rmst"``: E[min(T1, h) - min(T0, h) | x], time gained up to ``horizon`` (default: the
            last time at which a tenth of each arm is at risk). ``"survival"``:
            P(T1 > t | x) - P(T0 > t | x) at ``times``. ``"quantile"``: quantile of T1 less that of
            T0, at ``quantiles`` (default: the median); infinite if censoring hides one, NaN if it
            hides both.
        horizon : float, optional
            Time up to which ``"rmst"`` counts.
        times, quantiles : float or sequence of float, optional
            Times of ``"survival"``, levels of ``"quantile"``.
        beyond : {"nan", "extend", "restrict"}
            What becomes of effects that need the curve of an arm after its last time: ``"nan"``,
            unless what is not known is at most a hundredth of the horizon, or of a probability;
            ``"restrict"``, for ``"rmst"`` only: the effect up to the last time that both arms
            reach; ``"extend"`` draws the curves on as flat lines, which is not an estimate.

        Returns
        -------
        ndarray of shape (n,) for one number, (n, n_outputs) for a list

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.effect(data.X[:3], target="survival", times=[0.5, 1.0]).shape
        (3, 2)
        """
        model, queries = self._queries(X)
        wanted = read_target(model, target, horizon, times, quantiles)
        if isinstance(wanted, Quantiles):
            refuse_beyond(wanted, beyond)
            curves = arm_curves(model, queries, self.n_jobs)
            values = quantile_effects(model, curves, wanted.levels)
        else:
            known = follow(model, wanted, beyond)
            responses = residual_responses(model, known.target)
            estimated = estimate_effects(model, responses, queries, self.n_jobs)
            values = known.blank(model.sign * estimated.effect)
        return values[:, 0] if wanted.is_single else values

    def effect_interval(
        self,
        X: Any,
        target: str = "rmst",
        *,
        horizon: float | None = None,
        times: ArrayLike | None = None,
        quantiles: float | Sequence[float] | None = None,
        confidence: float = 0.95,
        beyond: str = "nan",
    ) -> NDArray[np.float64]:
        """Confidence interval of :meth:`effect`.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        target, horizon, times, quantiles, beyond : optional
            As in :meth:`effect`.
        confidence : float, default=0.95
            Probability with which the interval holds for each row by itself.

        Returns
        -------
        ndarray of shape (n, 2), or (n, n_outputs, 2) for a list of times or levels
            Lower and upper end.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.effect_interval(data.X[:3], target="survival", times=1.0).shape
        (3, 2)
        """
        model, queries = self._queries(X)
        wanted = read_target(model, target, horizon, times, quantiles)
        width = confidence_width(confidence)
        if isinstance(wanted, Quantiles):
            refuse_beyond(wanted, beyond)
            values, errors = effects_and_errors(model, wanted, queries, self.n_jobs)
            reach = width * errors
        else:
            known = follow(model, wanted, beyond)
            values, errors = effects_and_errors(model, known.target, queries, self.n_jobs)
            values, reach = known.blank(values), width * errors
            if known.has_rest:
                reach = reach + half_ranges(model, known, queries, self.n_jobs)
        ends = np.stack([values - reach, values + reach], axis=-1)
        return ends[:, 0] if wanted.is_single else ends

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write all forests and the arms of their rows to one file, whole or not at all.

        The file holds numbers and JSON, no code, as that of a forest does; it holds the training
        rows. Arms must be called by texts, numbers, or True and False.

        Parameters
        ----------
        path : str or PathLike
            File to write.
        notes : mapping of str to str, optional
            Texts by name; :meth:`load` gives them back as ``notes_``.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.save(os.path.join(folder, "trial.cqrf"), notes={"data": "simulated"})
        ...     type(forest).load(os.path.join(folder, "trial.cqrf")).notes_
        {'data': 'simulated'}
        """
        model = self._model()
        check_names(self)
        check_n_jobs(self)
        given, names = self.nuisance_forest, getattr(self, "feature_names_in_", None)
        others = [name for name in self._get_param_names() if name != "nuisance_forest"]
        saved = SavedEffects(
            model=model,
            settings={name: plain_setting(name, getattr(self, name)) for name in others},
            nuisance_settings=None if given is None else plain_settings(given),
            arms=self.arms_,
            names=None if names is None else [str(name) for name in names],
            notes=read_notes(self, notes),
        )
        write_treatment_file(path, saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CensoredTreatmentForest:
        """Read what :meth:`save` has written.

        Survival, censoring and propensity of the training rows are computed anew, which takes a
        share of the time of a fit. A file that is damaged, cut short or of something else gives a
        :class:`~cqrf.ModelFileError`.

        Parameters
        ----------
        path : str or PathLike
            File to read.

        Returns
        -------
        CensoredTreatmentForest
            Its effects are those of the saved one, bit for bit.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.save(os.path.join(folder, "trial.cqrf"))
        ...     loaded = effects.CensoredTreatmentForest.load(os.path.join(folder, "trial.cqrf"))
        >>> bool((loaded.effect(data.X, horizon=1.0) == forest.effect(data.X, horizon=1.0)).all())
        True
        """
        saved = read_treatment_file(path)
        with naming(path):
            check_settings(cls, saved.settings)
            check_settings(CensoredQuantileForest, saved.nuisance_settings or {})
        of_nuisances = saved.nuisance_settings
        nuisance = None if of_nuisances is None else CensoredQuantileForest(**of_nuisances)
        forest: Any = cls(nuisance_forest=nuisance, **saved.settings)
        with naming(path), refusing_settings():
            check_names(forest)
            check_n_jobs(forest)
        forest.model_, forest.arms_ = saved.model, saved.arms
        forest.notes_ = saved.notes
        forest.n_features_in_ = len(saved.model.effect.edges)
        if saved.names is not None:
            forest.feature_names_in_ = np.array(saved.names, dtype=object)
        return forest
