"""The estimator: the rooms of the library joined into one scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cqrf.arguments import read_choice, read_count, read_flag, read_fraction
from cqrf.binning import encode, find_edges
from cqrf.curves import StepCurves, step_curves
from cqrf.forest import Forest, Growing, Rows, Sampling, grow_forest, grow_tree, in_bag_bits
from cqrf.metrics import censored_quantile_loss, marginal_weights
from cqrf.progress import show_progress
from cqrf.quantiles import QuantileSolver, Solution, count_neighbors, read_levels
from cqrf.settings import read_bins, read_growing, read_sample_size
from cqrf.target import Target, oriented, read_target, time_order
from cqrf.weights import Weights, map_weights

Result = TypeVar("Result")

# Levels at which ``score`` compares the forest with the Kaplan-Meier curve.
SCORE_QUANTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Model:
    """What a fit leaves behind: everything a prediction needs."""

    edges: list[NDArray[np.float64]]
    forest: Forest
    target: Target
    order: NDArray[np.int32]
    codes: NDArray[np.uint8]
    sampling: Sampling
    seed: int


class CensoredQuantileForest(RegressorMixin, BaseEstimator):
    """Forest that predicts quantiles of censored times.

    Parameters
    ----------
    n_estimators : int, default=500
        Number of trees.
    criterion : {"censored_quantile", "quantile", "variance", "logrank"}
        What a split should tell apart: the distribution of the latent time as its
        Kaplan-Meier curve in the node shows it (default); quantile classes of the observed
        time, as in generalized random forests; its mean, as in Breiman's forests; or its
        hazard, as in random survival forests.
    split_quantiles : sequence of float, optional
        Levels that the two quantile criteria look at. Default: .1 .3 .5 .7 .9 for
        ``"censored_quantile"``, .1 .5 .9 for ``"quantile"``.
    honest : bool, default=True
        Whether one half of a tree's rows chooses the splits and the other fills the leaves.
    max_samples : float, int or None, default=0.5
        Rows a tree draws: a fraction, a count, or as many as there are.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    max_features : float, int, "sqrt", "log2" or None, default=None
        Features tried at each node: a fraction, a count, or all.
    min_samples_leaf : int, default=1
        Fewest rows in a child, of those that choose the splits.
    min_samples_split : int, default=21
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
        weights, Kaplan-Meier over the nearest rows, or over all rows.
    n_neighbors : float or int, default=0.1
        Neighbours for ``"knn"``: a fraction of the training rows or a count.
    solver : {"root", "argmin"}
        How a quantile is read off the estimating equation; ``"argmin"`` is the paper's.
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
        max_samples: float | int | None = 0.5,
        bootstrap: bool = False,
        max_features: float | int | str | None = None,
        min_samples_leaf: int = 1,
        min_samples_split: int = 21,
        min_child_fraction: float = 0.05,
        max_depth: int | None = None,
        max_bins: int = 255,
        censoring: str = "right",
        censoring_survival: str = "beran",
        n_neighbors: float | int = 0.1,
        solver: str = "root",
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> CensoredQuantileForest:
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Numeric features, without missing values.
        y : array-like
            What :func:`censored` returns (scikit-survival's arrays work too), two columns
            (time, event), or one column of times that are all events.

        Returns
        -------
        self
            Unchanged if anything fails.
        """
        read_choice("censoring", self.censoring, ("right", "left"))
        n_trees = read_count("n_estimators", self.n_estimators, 1)
        scratch = clone(self)
        X = validate_data(scratch, X, dtype=[np.float64, np.float32])
        target = read_target(y)
        check_consistent_length(X, target.time)
        if not target.event.any():
            raise ValueError(
                "every row is censored (event is never True): nothing can be learnt about the "
                "time of the event. Check which value of the status means that it was seen."
            )
        n, n_features = X.shape
        self._solver(n)
        growing = read_growing(
            criterion=self.criterion,
            split_quantiles=self.split_quantiles,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_child_fraction=self.min_child_fraction,
            n_features=n_features,
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        time = oriented(target.time, self.censoring)
        order = time_order(time, target.event)
        edges = find_edges(X, read_bins(self.max_bins), seed, self.n_jobs)
        rows = Rows(
            codes=np.take(encode(X, edges, self.n_jobs), order, axis=1),
            categorical=np.zeros(n_features, dtype=bool),
            time=time[order],
            event=target.event[order],
            weight=None,
        )
        bootstrap = read_flag("bootstrap", self.bootstrap)
        sampling = Sampling(
            unit_of_row=order,
            n_units=n,
            size=read_sample_size(self.max_samples, n, bootstrap),
            bootstrap=bootstrap,
            honest=read_flag("honest", self.honest),
        )
        forest = self._grow(rows, sampling, growing, n_trees, seed)
        self.model_ = Model(
            edges, forest, Target(rows.time, rows.event), order, rows.codes, sampling, seed
        )
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(scratch, "feature_names_in_"):
            self.feature_names_in_ = scratch.feature_names_in_
        return self

    def predict(
        self,
        X: Any,
        quantiles: float | Sequence[float] = 0.5,
        *,
        unidentified: str = "inf",
    ) -> NDArray[np.float64]:
        """Quantiles of the latent time at each row of X.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        quantiles : float or sequence of float, default=0.5
            Levels in (0, 1).
        unidentified : {"inf", "clip", "nan"}
            What stands for a quantile that censoring hides: infinity (minus infinity under
            left censoring) with one warning, the largest observed neighbour (the smallest
            under left censoring), or NaN.

        Returns
        -------
        ndarray of shape (n,), or (n, n_quantiles) for a sequence of levels
            Quantiles of one row never cross.
        """
        return self._quantiles(self._queries(X), None, quantiles, unidentified)

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Interval between the quantiles that leave out half of 1 - coverage on each side.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self._quantiles(self._queries(X), None, interval_levels(coverage), unidentified)

    def predict_oob(
        self, quantiles: float | Sequence[float] = 0.5, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not draw it.

        Rows that every tree has drawn are NaN.
        """
        return self._quantiles(*self._training_rows(), quantiles, unidentified)

    def predict_survival(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the latent time.

        Returns
        -------
        StepCurves, or ndarray of shape (n, n_times) if times are given
        """
        return self._curves(self._queries(X), times, of_censoring=False)

    def predict_censoring(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(C > t | x) of the censoring time, from the forest's weights.

        Returns
        -------
        StepCurves, or ndarray of shape (n, n_times) if times are given
        """
        return self._curves(self._queries(X), times, of_censoring=True)

    def predict_mean(self, X: Any, horizon: float | None = None) -> NDArray[np.float64]:
        """Restricted mean E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

        The default horizon is the last time in the training data (the first, under left
        censoring). What a survival curve leaves above 0 counts at the horizon.
        """
        queries = self._queries(X)
        if horizon is None:
            horizon = oriented(self.model_.target.time[-1:], self.censoring)[0]
        if not np.isfinite(horizon):
            raise ValueError(f"horizon={horizon!r} must be a finite time.")

        def read(weights: Weights) -> NDArray[np.float64]:
            return self._step_curves(weights).restricted_mean(float(horizon), self.censoring)

        return np.concatenate(self._map(read, queries))

    def max_quantile(self, X: Any) -> NDArray[np.float64]:
        """Largest level that can be estimated at each row of X.

        Levels above it are hidden by censoring. Under left censoring: the smallest level.
        """
        queries = self._queries(X)
        read = partial(self._solver(len(self.model_.order)).max_level, target=self.model_.target)
        return np.concatenate(self._map(read, queries))

    def weights(self, X: Any) -> sparse.csr_array:
        """Weight of every training row at each row of X: what it says about it.

        Returns
        -------
        sparse CSR array of shape (n, n_train)
            Rows sum to 1.
        """
        return self._weight_matrix(self._queries(X))

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it."""
        return self._weight_matrix(*self._training_rows())

    def score(self, X: Any, y: Any) -> float:
        """Skill over the Kaplan-Meier curve: 1 - loss(forest) / loss(Kaplan-Meier).

        The loss is the quantile loss at the levels .25 .5 .75, averaged, with events weighted
        by one over the probability that censoring let them be seen
        (:func:`cqrf.metrics.censored_quantile_loss`). 1 is perfect, 0 no better than one
        marginal curve for all; higher is better.
        """
        levels = np.array(SCORE_QUANTILES)
        predicted = self.predict(X, SCORE_QUANTILES, unidentified="clip")
        test, train = read_target(y), self._training_target()
        check_consistent_length(predicted, test.time)
        n = len(train.time)
        marginal = QuantileSolver(censoring=self.censoring).solve(
            marginal_weights(n), self.model_.target, levels
        )
        baseline = np.repeat(marginal.settled("clip"), len(test.time), axis=0)
        losses = [
            censored_quantile_loss(train, test, q, levels, self.censoring).mean()
            for q in (predicted, baseline)
        ]
        return float(1.0 - losses[0] / losses[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The score is a skill in absolute loss, not an R2: a handful of honest trees does
        # not reach the .5 that scikit-learn's checks want of a regressor.
        tags.regressor_tags.poor_score = True
        return tags

    def _grow(
        self, rows: Rows, sampling: Sampling, growing: Growing, n_trees: int, seed: int
    ) -> Forest:
        if not self.verbose:
            return grow_forest(rows, sampling, growing, n_trees, seed, self.n_jobs)
        if not grow_tree.signatures:
            print("preparing the kernels: compiled at the first fit ever, then read from a cache")
        progress = partial(show_progress, n_trees=n_trees)
        return grow_forest(rows, sampling, growing, n_trees, seed, self.n_jobs, progress)

    def _queries(self, X: Any) -> NDArray[np.uint8]:
        """Codes of X, one row per query."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.ascontiguousarray(encode(X, self.model_.edges, self.n_jobs).T)

    def _training_rows(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Codes of the training rows, in their own order, and the trees that drew them."""
        check_is_fitted(self)
        model = self.model_
        codes = np.empty(model.codes.shape[::-1], dtype=np.uint8)
        codes[model.order] = model.codes.T
        return codes, in_bag_bits(model.sampling, len(model.forest.roots), model.seed)

    def _training_target(self) -> Target:
        time = oriented(self.model_.target.time, self.censoring)
        return Target(time, self.model_.target.event)

    def _solver(self, n: int) -> QuantileSolver:
        count_neighbors(self.n_neighbors, n)
        return QuantileSolver(
            censoring_survival=self.censoring_survival,
            n_neighbors=self.n_neighbors,
            solver=self.solver,
            censoring=self.censoring,
        )

    def _map(
        self,
        read: Callable[[Weights], Result],
        queries: NDArray[np.uint8],
        in_bag: NDArray[np.uint8] | None = None,
    ) -> list[Result]:
        model = self.model_
        return map_weights(read, model.forest, queries, len(model.order), None, in_bag, self.n_jobs)

    def _quantiles(
        self,
        queries: NDArray[np.uint8],
        in_bag: NDArray[np.uint8] | None,
        quantiles: float | Sequence[float],
        unidentified: str,
    ) -> NDArray[np.float64]:
        levels, is_scalar = read_levels(quantiles)
        read_choice("unidentified", unidentified, ("inf", "clip", "nan"))
        solver = self._solver(len(self.model_.order))
        read = partial(solver.solve, target=self.model_.target, levels=levels)
        parts = self._map(read, queries, in_bag)
        solution = Solution(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        values = solution.settled(unidentified, stacklevel=4)
        return values[:, 0] if is_scalar else values

    def _step_curves(self, weights: Weights, of_censoring: bool = False) -> StepCurves:
        return step_curves(
            weights, *self.model_.target, of_censoring=of_censoring, censoring=self.censoring
        )

    def _curves(
        self, queries: NDArray[np.uint8], times: ArrayLike | None, of_censoring: bool
    ) -> StepCurves | NDArray[np.float64]:
        if times is None:
            read = partial(self._step_curves, of_censoring=of_censoring)
            return StepCurves.join(self._map(read, queries))
        at = np.asarray(times, dtype=np.float64)
        if at.ndim != 1 or np.isnan(at).any():
            raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
        return np.concatenate(
            self._map(lambda weights: self._step_curves(weights, of_censoring)(at), queries)
        )

    def _weight_matrix(
        self, queries: NDArray[np.uint8], in_bag: NDArray[np.uint8] | None = None
    ) -> sparse.csr_array:
        parts = self._map(lambda weights: weights, queries, in_bag)
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        ranks = np.concatenate([part.ranks for part in parts])
        matrix = sparse.csr_array(
            (
                np.concatenate([part.values for part in parts]),
                self.model_.order[ranks],
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=(len(queries), len(self.model_.order)),
        )
        matrix.sort_indices()
        return matrix


def interval_levels(coverage: float) -> list[float]:
    """Levels that bound an interval of this coverage, with the same share on each side."""
    tail = (1.0 - read_fraction("coverage", coverage, 0.0, 1.0)) / 2.0
    if not 0.0 < tail < 0.5:
        raise ValueError(f"coverage={coverage!r} must lie strictly between 0 and 1.")
    return [tail, 1.0 - tail]
