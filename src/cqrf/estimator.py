"""The estimator: a scikit-learn regressor around the fitted model and its readers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from cqrf._input.features import copy_feature_names, read_features
from cqrf._input.target import read_target
from cqrf._model import predict as readers
from cqrf._model.file import load_estimator, save_estimator
from cqrf._model.fit import TrainingTable, fit_model
from cqrf._model.memory import MemoryEstimate, estimate_memory
from cqrf._model.settings import draw_seed, read_settings, read_solver
from cqrf._model.skill import compute_oob_skill, compute_skill
from cqrf._runtime.arguments import read_choice, read_count
from cqrf._survival.curves import StepCurves
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf._survival.quantiles import UNIDENTIFIED, QuantileSolver, interval_levels, read_levels
from cqrf.metrics.metric import SCORE_QUANTILES


class CensoredQuantileForest(RegressorMixin, BaseEstimator):
    """Forest that predicts quantiles of censored times.

    Parameters
    ----------
    n_estimators : int, default=500
        Number of trees.
    criterion : {"censored_quantile", "quantile", "variance", "logrank"}
        What a split compares: the Kaplan-Meier distribution of the latent time (default);
        quantile classes of the observed time, as in generalized random forests; its mean, as in
        Breiman's forests; or its hazard, as in random survival forests.
    split_quantiles : sequence of float, optional
        Levels of the two quantile criteria. Default: .1 .3 .5 .7 .9 for
        ``"censored_quantile"``, .1 .5 .9 for ``"quantile"``.
    honest : bool, default=True
        Whether one half of a tree's rows chooses the splits and the other half fills the leaves.
    max_samples : float, int, None or "auto", default="auto"
        Rows a tree draws: a fraction, a count, or as many as there are (None). ``"auto"``:
        max(n / 2, min(800, 0.8 n)) if n >= 50, else n / 2; always n / 2 with a ``bag_size``.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    max_features : float, int, "sqrt", "log2" or None, default=None
        Features tried at each node: a fraction, a count, or all.
    min_samples_leaf : int, default=5
        Fewest rows in a child, of those that choose the splits.
    min_samples_split : int, default=11
        Fewest rows in a node that is split, of those that choose the splits.
    min_child_fraction : float, default=0.05
        Smallest child, as a fraction of its parent.
    max_depth : int, optional
        Most splits above a leaf.
    max_bins : int, default=255
        Most bins of a feature.
    censoring : {"right", "left"}
        Side on which times are censored.
    censoring_survival : {"beran", "knn", "km"}
        Estimate of the survival of the censoring time: product-limit with the forest's
        weights, Kaplan-Meier over the nearest rows, or over all rows. Survival curves do not
        depend on it: they cross 1 - tau at the tau-quantile only with ``"beran"`` and ``"root"``.
    n_neighbors : float or int, default=0.1
        Neighbours for ``"knn"``: a fraction of the training rows or a count.
    solver : {"root", "argmin"}
        Rule that solves the estimating equation. ``"argmin"`` is the paper's, for comparison: its
        quantiles may cross, and drift to late times under heavy censoring or ties.
    bag_size : int, default=1
        Trees that draw from the same half of the rows. With 2 or more, and some hundred bags,
        there are standard errors and confidence intervals (the bootstrap of little bags).
    n_jobs : int, optional
        Threads. Results do not depend on it.
    random_state : int, RandomState or None
        Seed of the forest.
    verbose : int, default=0
        Whether to show a progress bar over the trees.

    Attributes
    ----------
    model_ : Model
        The fitted forest with its bins and training target.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    References
    ----------
    Li, A. H. and Bradic, J. (2020). Censored Quantile Regression Forest. AISTATS.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> X, y, _, _ = make_aft(300, random_state=0)
    >>> forest = CensoredQuantileForest(random_state=0).fit(X, y)
    >>> forest.predict(X[:2], quantiles=[0.1, 0.5, 0.9]).shape
    (2, 3)
    """

    def __init__(
        self,
        *,
        n_estimators: int = 500,
        criterion: str = "censored_quantile",
        split_quantiles: Sequence[float] | None = None,
        honest: bool = True,
        max_samples: float | int | str | None = "auto",
        bootstrap: bool = False,
        max_features: float | int | str | None = None,
        min_samples_leaf: int = 5,
        min_samples_split: int = 11,
        min_child_fraction: float = 0.05,
        max_depth: int | None = None,
        max_bins: int = 255,
        censoring: str = "right",
        censoring_survival: str = "beran",
        n_neighbors: float | int = 0.1,
        solver: str = "root",
        bag_size: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.split_quantiles = split_quantiles
        self.honest = honest
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_child_fraction = min_child_fraction
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.censoring = censoring
        self.censoring_survival = censoring_survival
        self.n_neighbors = n_neighbors
        self.solver = solver
        self.bag_size = bag_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> CensoredQuantileForest:
        """Grow the forest.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Features: an array of numbers, or a frame (pandas, polars, pyarrow, ...) whose text
            and category columns are split by level. Missing values are allowed.
        y : array-like
            What :func:`censored` returns (scikit-survival's arrays work too), two columns
            (time, event), or one column of times that are all events.
        sample_weight : array-like of shape (n,), optional
            How often each row counts, in splits, weights and curves. Only ratios matter; a
            row of weight 0 has no influence.
        groups : array-like of shape (n,), optional
            Clusters of rows. A tree draws whole clusters, an honest tree keeps each in one half,
            and a row is out of bag if its cluster is.

        Returns
        -------
        self
            Unchanged if anything fails.
        """
        named = clone(self)  # receives the names, so that a failed fit leaves ours alone
        matrix, columns = read_features(named, X)
        settings = read_settings(self, matrix.shape[1], draw_seed(self.random_state))
        table = TrainingTable(matrix, columns, read_target(y), sample_weight, groups)
        model = fit_model(table, settings, self.n_jobs, bool(self.verbose))
        self.__dict__.pop("notes_", None)
        copy_feature_names(named, self)
        self.model_ = model
        return self

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gain of all splits of all trees; they sum to 1."""
        check_is_fitted(self)
        gain = self.model_.forest.importance
        return gain / max(gain.sum(), np.finfo(np.float64).tiny)

    def predict(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Quantiles of the latent time at each row of X.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
        quantiles : float or sequence of float, default=0.5
            Levels in (0, 1).
        unidentified : {"inf", "clip", "nan"}
            Value of a quantile that is not identifiable because of censoring: infinity (minus
            infinity under left censoring) with one warning, the largest observed neighbour (the
            smallest under left censoring), or NaN.

        Returns
        -------
        ndarray of shape (n,), or (n, n_quantiles) for a sequence of levels
            With the root rule, quantiles of one row never cross.
        """
        return self._quantiles(self._queries(X), quantiles, unidentified)

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Quantiles that leave out half of 1 - coverage on each side; shape (n, 2)."""
        return self._quantiles(self._queries(X), interval_levels(coverage), unidentified)

    def predict_oob(
        self, quantiles: float | Sequence[float] = 0.5, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not draw it.

        Rows that every tree has drawn are NaN.
        """
        return self._quantiles(self._training_queries(), quantiles, unidentified)

    def predict_survival(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) as StepCurves, or of shape (n, n_times) if times are given."""
        return self._read(self._queries(X), readers.survival_reader(times))

    def predict_survival_oob(
        self, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the training rows, each from the trees that did not draw it.

        A row that every tree has drawn has an empty curve; at times it is NaN.
        """
        queries = self._training_queries()
        survival = self._read(queries, readers.survival_reader(times))
        if isinstance(survival, np.ndarray):
            survival[~readers.has_tree(self.model_, queries)] = np.nan
        return survival

    def predict_censoring(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(C > t | x) of the censoring time, in the form of ``predict_survival``."""
        return self._read(self._queries(X), readers.censoring_reader(times))

    def survival_standard_error(self, X: Any, times: ArrayLike) -> NDArray[np.float64]:
        """Standard error of ``predict_survival(X, times)`` over repeated training samples.

        Needs ``bag_size`` of 2 or more. Shape (n, n_times).
        """
        return self._read(self._queries(X), readers.SurvivalErrors(times))

    def survival_confidence_interval(
        self, X: Any, times: ArrayLike, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of P(T > t | x), pointwise; shape (n, n_times, 2).

        On the scale of log(-log S), as is usual for survival curves. It covers the sampling
        error of the estimate, not its bias, which is small but not zero.
        """
        width, queries = confidence_width(confidence), self._queries(X)
        wanted = [readers.SurvivalAt(times), readers.SurvivalErrors(times)]
        survival, errors = readers.read_weights(self.model_, queries, wanted, self.n_jobs)
        return np.stack(survival_interval(survival, width * errors, self.model_.censoring), axis=-1)

    def quantile_confidence_interval(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of the estimated quantile, pointwise.

        Shape (n, n_quantiles, 2), or (n, 2) for a single level. An end that is not identifiable
        because of censoring is infinite. For an interval of T itself see ``predict_interval``.
        """
        levels, is_scalar = read_levels(quantiles)
        width, queries = confidence_width(confidence), self._queries(X)
        ends = self._read(queries, readers.QuantileIntervals(self._solver(), levels, width))
        return ends[:, 0] if is_scalar else ends

    def predict_mean(self, X: Any, horizon: float | None = None) -> NDArray[np.float64]:
        """Restricted mean E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

        The default horizon is the last time in the training data (the first, under left
        censoring). Probability that a survival curve leaves above 0 is placed at the horizon.
        """
        return self._read(self._queries(X), readers.RestrictedMean(horizon))

    def max_quantile(self, X: Any) -> NDArray[np.float64]:
        """Largest level that is identifiable at each row of X.

        Higher levels cannot be estimated because of censoring (the argmin rule gives a number for
        them all the same). Under left censoring: the smallest level.
        """
        return self._read(self._queries(X), readers.MaxLevel(self._solver()))

    def weights(self, X: Any) -> sparse.csr_array:
        """Weight of every training row at each row of X, shape (n, n_train); rows sum to 1."""
        return self._read(self._queries(X), readers.WeightRows())

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it."""
        return self._read(self._training_queries(), readers.WeightRows())

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Skill over the Kaplan-Meier curve: 1 - loss(forest) / loss(Kaplan-Meier).

        The loss is :func:`cqrf.metrics.censored_quantile_loss`, averaged over the levels .25 .5
        .75: the quantile loss with inverse-probability-of-censoring weights (IPCW). 1 is perfect,
        0 is no better than one marginal curve for all rows; higher is better. Entry times of y
        are not used: rows that enter late are scored on their whole time.
        """
        predicted = self.predict(X, SCORE_QUANTILES, unidentified="clip")
        return compute_skill(self.model_, predicted, read_target(y), sample_weight=sample_weight)

    def score_oob(self) -> float:
        """Skill over the Kaplan-Meier curve on the training rows, out of bag."""
        predicted = self.predict_oob(SCORE_QUANTILES, unidentified="clip")
        return compute_oob_skill(self.model_, predicted)

    def estimate_memory(self, n: int, p: int) -> MemoryEstimate:
        """Memory that ``fit`` will need for n rows of p features, in bytes.

        ``fit`` is its peak, on top of X and y, for X that is an array of floats; converting a
        frame or another type takes up to 16 n p bytes more. ``model`` is what the fitted forest
        keeps. Many ties, heavy censoring or large groups give smaller trees.
        """
        n, p = read_count("n", n, 1), read_count("p", p, 1)
        # No seed is drawn: that would change the state of a generator.
        return estimate_memory(read_settings(self, p, seed=0), n, p, self.n_jobs)

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write the fitted forest to a file, whole or not at all.

        The file holds numbers and JSON, no code: it is safe to read a file from an unknown source.
        It does hold the training data, features rounded to bins; protect it as you protect these.
        ``notes`` are texts by name, such as where the data came from; :meth:`load` gives them back
        as ``notes_``.
        """
        check_is_fitted(self)
        save_estimator(self, path, notes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CensoredQuantileForest:
        """Read a forest from a file that :meth:`save` has written.

        Its predictions are those of the saved one, bit for bit. A file that is damaged, cut short
        or not a model file gives a :class:`~cqrf.ModelFileError`.
        """
        return load_estimator(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # The score is a skill in absolute loss, not an R2: a few honest trees do not reach the .5
        # that scikit-learn's checks require of a regressor.
        tags.regressor_tags.poor_score = True
        return tags

    def _solver(self) -> QuantileSolver:
        return read_solver(self, self.model_.censoring)

    def _queries(self, X: Any) -> readers.Queries:
        check_is_fitted(self)
        matrix, _ = read_features(self, X, self.model_.columns)
        return readers.encode_queries(self.model_, matrix, self.n_jobs)

    def _training_queries(self) -> readers.Queries:
        check_is_fitted(self)
        return readers.training_queries(self.model_)

    def _read(
        self, queries: readers.Queries, reader: readers.Reader[Any, readers.Result]
    ) -> readers.Result:
        return readers.read_one(self.model_, queries, reader, self.n_jobs)

    def _quantiles(
        self, queries: readers.Queries, quantiles: float | Sequence[float], unidentified: str
    ) -> NDArray[np.float64]:
        levels, is_scalar = read_levels(quantiles)
        read_choice("unidentified", unidentified, UNIDENTIFIED)
        solution = self._read(queries, readers.Quantiles(self._solver(), levels))
        values = solution.fill(unidentified, stacklevel=4)
        return values[:, 0] if is_scalar else values
