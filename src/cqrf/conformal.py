"""Conformal prediction: lower bounds b(x) with P(T >= b(x)) >= coverage, for any distribution of T.

This is split conformal prediction with censored times:

1. One part of the rows fits the forest, which predicts S(t|x) = P(T > t | x).
2. The other part, the calibration rows, chooses a threshold v. The bound is
   b_v(x) = the first t with S(t|x) <= v. A row is a *miss* if T < b_v(x), which is the same as
   S(T|x) > v. So S(T|x) is the conformity score of a row.
3. A miss is observed only if the row is not censored before. It has the IPCW weight 1 / G(T-|x),
   where G(.|x) = P(C > . | x) comes from a second forest, whose events are the censorings.
4. Of all v whose weighted share of misses is at most 1 - coverage, we take the smallest: it gives
   the largest bounds. As usual, the query itself is counted as a miss.

Assumptions:

- Without censoring: exchangeable rows. P(T >= bound) >= coverage then holds for every n.
- With right censoring: also T and C independent given x, a consistent estimate of G, and G at least
  FLOOR at the bounds (smaller values are replaced by FLOOR). The coverage is then asymptotic.
- With sample weights: the coverage is that in the population that the weighted rows represent, and
  asymptotic. The weight of the query is not known; it is counted as the average weight.
- With groups: clusters are exchangeable, rows of a cluster may depend on each other in any way. The
  coverage is that for a row of a new cluster, not for another row of a known one. The query is
  counted as one average cluster. Without censoring and with clusters of equal size and weight the
  coverage holds for every number of clusters; otherwise it is asymptotic in that number.
- With delayed entry: T is independent of C and of the entry time given x. A subject whose event
  came before its entry is not in the table, so misses are counted in risk sets: a product-limit
  estimate over the thresholds, weighted by IPCW. It takes the share of misses between two
  thresholds from the rows that have entered before the first one, and so assumes that other rows
  have the same share there, as they do if the forest is consistent. The coverage is asymptotic, and
  that for subjects from their start on, late or not, given that T is after the first entry.

``method="adaptive"`` (Gui, Hore, Ren and Barber 2024) counts misses up to each row's own bound, and
loses little where some rows are censored early. ``method="fixed"`` (Candes, Lei and Ren 2023)
counts them up to one cutoff c: bounds do not exceed c, and G is needed at c only. Both papers
assume that C is known for every row, as under administrative censoring: pass it as
``censoring_time``. Without it, C is known for censored rows only, and step 3 gives the weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cqrf._conformal.file import SavedConformal, read_conformal_file, write_conformal_file
from cqrf._conformal.scores import CalibrationRows, censoring_survival_before, score_rows
from cqrf._conformal.settings import FORESTS, read_coverage, read_cutoff, read_forest
from cqrf._conformal.table import ConformalTable, read_table
from cqrf._input.target import censored
from cqrf._model.file import (
    check_settings,
    describe_estimator,
    naming,
    read_notes,
    restore_estimator,
)
from cqrf._model.settings import plain_setting, plain_settings
from cqrf._survival.step_curves import StepCurves
from cqrf.estimator import CensoredQuantileForest
from cqrf.metrics.ipcw import censoring_target

__all__ = ["ConformalForest"]


class ConformalForest(BaseEstimator):
    """Forest with lower bounds of guaranteed coverage.

    Parameters
    ----------
    forest : CensoredQuantileForest, optional
        Forest to calibrate; a copy is fitted. Default: one with default settings.
    censoring_forest : CensoredQuantileForest, optional
        Forest of the censoring times, that is, of ``censoring_target(y)``. Default: one with
        default settings and the trees, threads and seed of ``forest``.
    coverage : float, default=0.9
        Probability that T is at least the bound.
    method : {"adaptive", "fixed"}
        Where misses are counted: up to each row's own bound, or up to one cutoff for all.
    cutoff : float, optional
        The cutoff of ``"fixed"``. Default: the median censoring time, from Kaplan-Meier.
    calibration_share : float, default=0.5
        Share of the rows that are held out from the forest for calibration.
    random_state : int, RandomState or None
        Seed of the split into both parts, and of forests without a seed.

    Attributes
    ----------
    forest_, censoring_forest_ : CensoredQuantileForest
        The forest, and that of the censoring times (None if nothing is censored).
    level_ : float
        The bound is the forest's quantile at this level (for a query of average weight, where
        weights depend on the query). Far from 1 - coverage: the forest alone is miscalibrated.

    Examples
    --------
    >>> from cqrf.conformal import ConformalForest
    >>> from cqrf.datasets import make_aft
    >>> train, test = make_aft(1000, random_state=0), make_aft(1000, random_state=1)
    >>> bounds = ConformalForest(random_state=0).fit(train.X, train.y).predict_lower(test.X)
    >>> bool(0.85 < (test.latent >= bounds).mean() < 0.95)
    True
    """

    def __init__(
        self,
        forest: CensoredQuantileForest | None = None,
        *,
        censoring_forest: CensoredQuantileForest | None = None,
        coverage: float = 0.9,
        method: str = "adaptive",
        cutoff: float | None = None,
        calibration_share: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.censoring_forest = censoring_forest
        self.coverage = coverage
        self.method = method
        self.cutoff = cutoff
        self.calibration_share = calibration_share
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        censoring_time: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> ConformalForest:
        """Fit the forests to one part of the rows, and calibrate on the other.

        The module's documentation says what the coverage means with weights, groups and entry.

        Parameters
        ----------
        X, y
            As for :class:`~cqrf.CensoredQuantileForest`; y may have entry times, but not together
            with ``censoring_time`` or ``method="fixed"``.
        censoring_time : array-like of shape (n,), optional
            C of every row, where it is known for events too.
        sample_weight : array-like of shape (n,), optional
            How often each row counts, in the forests and among the misses. Only ratios matter; a
            row of weight 0 has no influence. A query is counted with the average weight.
        groups : array-like of shape (n,), optional
            Clusters of rows. Whole clusters are held out for calibration, and the forests get
            theirs. The coverage is that for a row of a new cluster.

        Returns
        -------
        self
            Unchanged if anything fails.

        Examples
        --------
        >>> from cqrf.conformal import ConformalForest
        >>> from cqrf.datasets import make_aft
        >>> X, y, _, _ = make_aft(200, random_state=0)
        >>> model = ConformalForest(random_state=0).fit(X, y)
        >>> 0 < model.level_ < 0.5
        True
        """
        coverage = read_coverage(self)
        table = read_table(X, y, censoring_time, sample_weight, groups)
        forest = read_forest(self, table)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if forest.random_state is None and self.random_state is not None:
            forest = clone(forest).set_params(random_state=seed)
        train, kept = table.split(self.calibration_share, seed)
        fitted = clone(forest).fit(train.X, train.y, **train.fit_arguments)
        censoring_forest = None if train.target.event.all() else self._fit_censoring(forest, train)
        cutoff = read_cutoff(self, train) if self.method == "fixed" else np.inf
        lower, upper = score_rows(
            CalibrationRows(
                kept.target,
                kept.weigh_units(),
                predict_curves(fitted, kept.X),
                None if censoring_forest is None else predict_curves(censoring_forest, kept.X),
                kept.censoring_time,
            ),
            cutoff,
        )
        self.forest_, self.censoring_forest_ = fitted, censoring_forest
        self.lower_scores_, self.upper_scores_ = lower, upper
        self.weights_depend_on_query_ = censoring_time is not None and bool(np.isfinite(cutoff))
        self.coverage_, self.cutoff_ = coverage, cutoff
        self.__dict__.pop("notes_", None)
        return self

    @property
    def level_(self) -> float:
        """Level of the forest's quantile that is the bound, for a query of average weight."""
        check_is_fitted(self)
        found = self.lower_scores_.find_threshold(1.0 - self.coverage_)
        return 1.0 - min(1.0, float(found))

    def predict_lower(self, X: Any) -> NDArray[np.float64]:
        """Bound that T reaches or exceeds with probability ``coverage``.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n,)
            Counted from the start, for new subjects; see the manual for those still observed.

        Examples
        --------
        >>> from cqrf.conformal import ConformalForest
        >>> from cqrf.datasets import make_aft
        >>> X, y, _, _ = make_aft(200, random_state=0)
        >>> model = ConformalForest(random_state=0).fit(X, y)
        >>> model.predict_lower(X[:3]).round(1)
        array([2.1, 0.9, 2.3])
        """
        check_is_fitted(self)
        return self._lower(X, predict_curves(self.forest_, X), 1.0 - self.coverage_)

    def predict_interval(self, X: Any) -> NDArray[np.float64]:
        """Two-sided interval of T, with (1 - coverage) / 2 on each side.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n, 2)
            The upper end is infinite where it is not identifiable because of censoring; always
            so with ``method="fixed"`` and where ``censoring_time`` was given.

        Examples
        --------
        >>> from cqrf.conformal import ConformalForest
        >>> from cqrf.datasets import make_aft
        >>> X, y, _, _ = make_aft(200, random_state=0)
        >>> model = ConformalForest(random_state=0).fit(X, y)
        >>> model.predict_interval(X[:2]).shape
        (2, 2)
        """
        check_is_fitted(self)
        missed = (1.0 - self.coverage_) / 2
        curves = predict_curves(self.forest_, X)
        lower = self._lower(X, curves, missed)
        upper = np.full(len(lower), np.inf)
        if self.upper_scores_ is not None:
            v = self.upper_scores_.find_upper_threshold(missed)
            if v is not None:
                upper = curves.first_at_most(v)
        return np.column_stack([lower, upper])

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write the forests and scores to one file, whole or not at all.

        The file holds numbers and JSON, no code, as that of a forest does; it holds the training
        rows of both forests.

        Parameters
        ----------
        path : str or PathLike
            File to write.
        notes : mapping of str to str, optional
            Texts by name; :meth:`load` gives them back as ``notes_``.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf.conformal import ConformalForest
        >>> from cqrf.datasets import make_aft
        >>> X, y, _, _ = make_aft(200, random_state=0)
        >>> model = ConformalForest(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "bounds.cqrf"), notes={"data": "simulated"})
        ...     ConformalForest.load(os.path.join(folder, "bounds.cqrf")).notes_
        {'data': 'simulated'}
        """
        check_is_fitted(self)
        others = [name for name in self._get_param_names() if name not in FORESTS]
        given = {name: getattr(self, name) for name in FORESTS}
        fitted = self.censoring_forest_
        saved = SavedConformal(
            forest=describe_estimator(self.forest_, {}),
            censoring_forest=None if fitted is None else describe_estimator(fitted, {}),
            settings={name: plain_setting(name, getattr(self, name)) for name in others},
            forest_settings={
                name: None if forest is None else plain_settings(forest)
                for name, forest in given.items()
            },
            coverage=self.coverage_,
            cutoff=self.cutoff_,
            weights_depend_on_query=self.weights_depend_on_query_,
            lower=self.lower_scores_,
            upper=self.upper_scores_,
            notes=read_notes(self, notes),
        )
        write_conformal_file(path, saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConformalForest:
        """Read what :meth:`save` has written.

        A file that is damaged, cut short or of something else gives a
        :class:`~cqrf.ModelFileError`.

        Parameters
        ----------
        path : str or PathLike
            File to read.

        Returns
        -------
        ConformalForest
            Its bounds are those of the saved one, bit for bit.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf.conformal import ConformalForest
        >>> from cqrf.datasets import make_aft
        >>> X, y, _, _ = make_aft(200, random_state=0)
        >>> model = ConformalForest(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "bounds.cqrf"))
        ...     loaded = ConformalForest.load(os.path.join(folder, "bounds.cqrf"))
        >>> bool((loaded.predict_lower(X) == model.predict_lower(X)).all())
        True
        """
        saved = read_conformal_file(path)
        with naming(path):
            check_settings(cls, saved.settings)
            forests: dict[str, Any] = {}
            for name, settings in saved.forest_settings.items():
                check_settings(CensoredQuantileForest, settings or {})
                forests[name] = None if settings is None else CensoredQuantileForest(**settings)
            model = cls(**forests, **saved.settings)
            model.forest_, model.censoring_forest_ = (
                None if each is None else restore_estimator(CensoredQuantileForest, each)
                for each in (saved.forest, saved.censoring_forest)
            )
        model.coverage_, model.cutoff_ = saved.coverage, saved.cutoff
        model.weights_depend_on_query_ = saved.weights_depend_on_query
        model.lower_scores_, model.upper_scores_ = saved.lower, saved.upper
        model.notes_ = saved.notes
        return model

    def _lower(self, X: Any, curves: StepCurves, allowed: float) -> NDArray[np.float64]:
        """Lower bounds, missed with probability ``allowed``."""
        query_weight: NDArray[np.float64] | float = 1.0
        if self.weights_depend_on_query_:
            at = np.full(len(curves), self.cutoff_)
            query_weight = 1.0 / censoring_survival_before(self._predict_censoring(X), at)
        found = self.lower_scores_.find_threshold(allowed, query_weight)
        v = np.broadcast_to(found, len(curves))
        bound = curves.first_at_most(v)
        smallest = 0.0 if self.forest_.model_.rows.time[0] >= 0 else -np.inf
        # A curve that does not fall to v is identified up to its last step only, and not at all
        # where all neighbours are censored.
        last, has_steps = np.full(len(curves), smallest), np.diff(curves.offsets) > 0
        last[has_steps] = curves.times[curves.offsets[1:][has_steps] - 1]
        bound = np.where(np.isposinf(bound), last, bound)
        return np.where(v >= 1, smallest, np.minimum(bound, self.cutoff_))

    def _predict_censoring(self, X: Any) -> StepCurves | None:
        """G(.|x); None if nothing is censored."""
        if self.censoring_forest_ is None:
            return None
        return predict_curves(self.censoring_forest_, X)

    def _fit_censoring(
        self, forest: CensoredQuantileForest, train: ConformalTable
    ) -> CensoredQuantileForest:
        """The forest of the censoring times; none of these is censored if all are known."""
        # No row is censored before its entry: for C all rows are at risk from the start.
        y = censoring_target(train.target._replace(entry=None))
        known = train.censoring_time
        if known is not None:
            y = censored(known, np.full(len(known), True))
        shared = ("n_estimators", "n_jobs", "random_state")
        default = CensoredQuantileForest(**{name: getattr(forest, name) for name in shared})
        chosen = default if self.censoring_forest is None else clone(self.censoring_forest)
        return chosen.fit(train.X, y, **train.fit_arguments)


def predict_curves(forest: CensoredQuantileForest, X: Any) -> StepCurves:
    """Survival curves of the rows of X."""
    curves = forest.predict_survival(X)
    assert isinstance(curves, StepCurves)
    return curves
