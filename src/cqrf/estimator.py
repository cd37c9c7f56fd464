"""The estimator: the rooms of the library joined into one scikit-learn regressor."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cqrf._forest.grower import grow_trees
from cqrf._forest.spec import Growing
from cqrf._input.features import read_table
from cqrf._input.target import read_target
from cqrf._model.file import ModelFileError, Saved, are_notes, read_model_file, write_model_file
from cqrf._model.fitted import Queries, fit_model
from cqrf._model.memory import MemoryEstimate, estimate
from cqrf._model.settings import Plan, read_bins, read_growing, read_sample_size
from cqrf._runtime.arguments import read_choice, read_count, read_flag, read_floats, read_fraction
from cqrf._survival.curves import StepCurves
from cqrf._survival.little_bags import confidence_width
from cqrf._survival.quantiles import QuantileSolver, read_levels

# Levels at which ``score`` compares the forest with the Kaplan-Meier curve.
SCORE_QUANTILES = (0.25, 0.5, 0.75)


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
    max_samples : float, int, None or "auto", default="auto"
        Rows a tree draws: a fraction, a count, or as many as there are (None). ``"auto"``: half,
        but four fifths of 50 to 1000 rows, and 800 of more until half is more than that; half
        also with a ``bag_size``.
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
        weights, Kaplan-Meier over the nearest rows, or over all rows. It and ``solver`` are for
        quantiles; survival curves, and all that is read off them, are Beran's in any case, and
        cross 1 - tau at the tau-quantile with the defaults alone.
    n_neighbors : float or int, default=0.1
        Neighbours for ``"knn"``: a fraction of the training rows or a count.
    solver : {"root", "argmin"}
        How a quantile is read off the estimating equation. ``"argmin"`` is the paper's, for
        comparison: its quantiles may cross, and where much is censored or times are tied it
        drifts to late times, as the equation is nearly flat there.
    bag_size : int, default=1
        Trees that draw from the same half of the rows. With 2 or more, standard errors and
        confidence intervals of the estimates themselves can be had (the bootstrap of little
        bags), for which there should be some hundred bags.
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
            Clusters of rows that belong together. A tree draws whole clusters, an honest tree
            keeps each in one half, and a row is out of bag if its cluster is.

        Returns
        -------
        self
            Unchanged if anything fails.
        """
        named = clone(self)  # receives the names, so that a failed fit leaves ours alone
        matrix, columns = read_table(named, X)
        plan = self._plan(matrix.shape[1])
        self._solver(plan.censoring).check_neighbors(len(matrix))
        if self.verbose and not grow_trees.signatures:
            print(
                "preparing the kernels: compiled at the first fit ever, then read from a cache",
                file=sys.stderr,
            )
        model = fit_model(
            matrix,
            columns,
            read_target(y),
            sample_weight,
            groups,
            plan,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
        )
        self.__dict__.pop("notes_", None)
        take_names(self, named)
        self.model_ = model
        return self

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gain of all splits of all trees; they sum to 1."""
        check_is_fitted(self)
        gain = self.model_.forest.importance
        return gain / max(gain.sum(), np.finfo(np.float64).tiny)

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
        X : array-like or frame of shape (n, n_features)
        quantiles : float or sequence of float, default=0.5
            Levels in (0, 1).
        unidentified : {"inf", "clip", "nan"}
            What stands for a quantile that censoring hides: infinity (minus infinity under
            left censoring) with one warning, the largest observed neighbour (the smallest
            under left censoring), or NaN.

        Returns
        -------
        ndarray of shape (n,), or (n, n_quantiles) for a sequence of levels
            With the root rule, quantiles of one row never cross.
        """
        return self._quantiles(self._queries(X), quantiles, unidentified)

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Interval between the quantiles that leave out half of 1 - coverage on each side.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self._quantiles(self._queries(X), interval_levels(coverage), unidentified)

    def predict_oob(
        self, quantiles: float | Sequence[float] = 0.5, *, unidentified: str = "inf"
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not draw it.

        Rows that every tree has drawn are NaN.
        """
        check_is_fitted(self)
        return self._quantiles(self.model_.training_queries(), quantiles, unidentified)

    def predict_survival(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the latent time.

        Returns
        -------
        StepCurves, or ndarray of shape (n, n_times) if times are given
        """
        queries = self._queries(X)
        return self.model_.curves(queries, times, n_jobs=self.n_jobs)

    def predict_survival_oob(
        self, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the training rows, each from the trees that did not draw it.

        A row that every tree has drawn has an empty curve; at times it is NaN.
        """
        check_is_fitted(self)
        queries = self.model_.training_queries()
        found = self.model_.curves(queries, times, n_jobs=self.n_jobs)
        if isinstance(found, np.ndarray):
            found[~self.model_.has_tree(queries)] = np.nan
        return found

    def predict_censoring(
        self, X: Any, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(C > t | x) of the censoring time, from the forest's weights.

        Returns
        -------
        StepCurves, or ndarray of shape (n, n_times) if times are given
        """
        queries = self._queries(X)
        return self.model_.curves(queries, times, of_censoring=True, n_jobs=self.n_jobs)

    def survival_standard_error(self, X: Any, times: ArrayLike) -> NDArray[np.float64]:
        """Standard error of ``predict_survival(X, times)``: how far another sample would move it.

        Needs ``bag_size`` of 2 or more. Shape (n, n_times).
        """
        queries = self._queries(X)
        at = np.atleast_1d(read_floats("times", times))
        if at.ndim > 1:
            raise ValueError(f"times must be a number or a list of numbers; found {times!r}.")
        spread_out = np.broadcast_to(at, (len(queries.codes), len(at)))
        return self.model_.survival_errors(queries, spread_out, self.n_jobs)

    def survival_confidence_interval(
        self, X: Any, times: ArrayLike, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of P(T > t | x), pointwise; shape (n, n_times, 2).

        On the scale of log(-log S), as is usual for survival curves. It covers the sampling
        error of the estimate, not its bias: small, but not zero.
        """
        width = confidence_width(confidence) * self.survival_standard_error(X, times)
        survival = self.predict_survival(X, np.atleast_1d(read_floats("times", times)))
        assert isinstance(survival, np.ndarray)
        return np.stack(self.model_.survival_interval(survival, width), axis=-1)

    def quantile_confidence_interval(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of the estimated quantile itself, pointwise.

        Shape (n, n_quantiles, 2), or (n, 2) for a single level. An end that censoring hides is
        infinite. Not to be taken for ``predict_interval``, which is where T itself will lie.
        """
        levels, is_scalar = read_levels(quantiles)
        width = confidence_width(confidence)
        queries = self._queries(X)
        solver = self._solver(self.model_.censoring)
        ends = self.model_.quantile_interval(queries, solver, levels, width, self.n_jobs)
        return ends[:, 0] if is_scalar else ends

    def predict_mean(self, X: Any, horizon: float | None = None) -> NDArray[np.float64]:
        """Restricted mean E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

        The default horizon is the last time in the training data (the first, under left
        censoring). What a survival curve leaves above 0 counts at the horizon.
        """
        queries = self._queries(X)
        return self.model_.restricted_mean(queries, horizon, self.n_jobs)

    def max_quantile(self, X: Any) -> NDArray[np.float64]:
        """Largest level that can be estimated at each row of X.

        Levels above it are hidden by censoring (the argmin rule gives a number for them all
        the same). Under left censoring: the smallest level.
        """
        queries = self._queries(X)
        return self.model_.max_level(queries, self._solver(self.model_.censoring), self.n_jobs)

    def weights(self, X: Any) -> sparse.csr_array:
        """Weight of every training row at each row of X: what it says about it.

        Returns
        -------
        sparse CSR array of shape (n, n_train)
            Rows sum to 1.
        """
        queries = self._queries(X)
        return self.model_.weight_matrix(queries, self.n_jobs)

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it."""
        check_is_fitted(self)
        return self.model_.weight_matrix(self.model_.training_queries(), self.n_jobs)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Skill over the Kaplan-Meier curve: 1 - loss(forest) / loss(Kaplan-Meier).

        The loss is the quantile loss at the levels .25 .5 .75, averaged, with events weighted
        by one over the probability that censoring let them be seen
        (:func:`cqrf.metrics.censored_quantile_loss`). 1 is perfect, 0 no better than one
        marginal curve for all; higher is better. Entry times of y do not take part: rows that
        enter late are judged by their whole time.
        """
        predicted = self.predict(X, SCORE_QUANTILES, unidentified="clip")
        levels = np.array(SCORE_QUANTILES)
        return self.model_.skill(predicted, read_target(y), levels, sample_weight)

    def score_oob(self) -> float:
        """Skill over the Kaplan-Meier curve on the training rows, out of bag."""
        predicted = self.predict_oob(SCORE_QUANTILES, unidentified="clip")
        return self.model_.skill_in_training(predicted, np.array(SCORE_QUANTILES))

    def estimate_memory(self, n: int, p: int) -> MemoryEstimate:
        """Memory that ``fit`` will need for n rows of p features, in bytes.

        ``fit`` is its peak, on top of X and y, for X that is an array of floats; a frame, or an
        array of another type, is turned into one, which takes up to 16 n p bytes more. ``model``
        is what the fitted forest keeps. A table that is mostly ties, or nearly all censored,
        gives smaller trees, and so does one in groups of many rows.

        Returns
        -------
        MemoryEstimate
            Named tuple of ``fit`` and ``model``.
        """
        n, p = read_count("n", n, 1), read_count("p", p, 1)
        bootstrap = read_flag("bootstrap", self.bootstrap)
        bag_size = read_count("bag_size", self.bag_size, 1)
        return estimate(
            n,
            p,
            n_trees=read_count("n_estimators", self.n_estimators, 1),
            size=read_sample_size(self.max_samples, n, bootstrap, bag_size=bag_size),
            honest=read_flag("honest", self.honest),
            growing=self._growing(p),
            max_bins=read_bins(self.max_bins),
            n_jobs=self.n_jobs,
        )

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write the fitted forest to a file, whole or not at all.

        The file holds numbers and JSON, no code: it can be read without trusting whoever wrote
        it. It does hold the training data, features rounded to bins; keep it as you keep these.

        Parameters
        ----------
        path : str or path
        notes : mapping of str to str, optional
            Texts to keep with the forest, such as where the data came from; :meth:`load` gives
            them back as ``notes_``.
        """
        check_is_fitted(self)
        kept = getattr(self, "notes_", {}) if notes is None else notes
        if not are_notes(kept):
            raise ValueError(f"notes must be texts by name; found {notes!r}.")
        settings = {name: plain_setting(name, x) for name, x in self.get_params().items()}
        names = getattr(self, "feature_names_in_", None)
        named = None if names is None else [str(name) for name in names]
        write_model_file(path, Saved(self.model_, settings, named, dict(kept)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CensoredQuantileForest:
        """Read a forest from a file that :meth:`save` has written.

        It answers as the saved one does, bit for bit. A file that is damaged, cut short or not
        a model file gives a :class:`~cqrf.ModelFileError`.
        """
        saved = read_model_file(path)
        unknown = saved.settings.keys() - set(cls._get_param_names())
        if unknown:
            raise ModelFileError(
                f"{os.fspath(path)}: has settings that this version of cqrf does not know: "
                f"{', '.join(sorted(unknown))}. Upgrade cqrf."
            )
        forest = cls(**saved.settings)
        forest.model_ = saved.model
        forest.notes_ = saved.notes
        forest.n_features_in_ = len(saved.model.edges)
        if saved.names is not None:
            forest.feature_names_in_ = np.array(saved.names, dtype=object)
        return forest

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # The score is a skill in absolute loss, not an R2: a handful of honest trees does
        # not reach the .5 that scikit-learn's checks want of a regressor.
        tags.regressor_tags.poor_score = True
        return tags

    def _plan(self, n_features: int) -> Plan:
        return Plan(
            growing=self._growing(n_features),
            censoring=read_choice("censoring", self.censoring, ("right", "left")),
            n_trees=read_count("n_estimators", self.n_estimators, 1),
            max_bins=read_bins(self.max_bins),
            max_samples=self.max_samples,
            bootstrap=read_flag("bootstrap", self.bootstrap),
            honest=read_flag("honest", self.honest),
            bag_size=read_count("bag_size", self.bag_size, 1),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _growing(self, n_features: int) -> Growing:
        return read_growing(
            criterion=self.criterion,
            split_quantiles=self.split_quantiles,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_child_fraction=self.min_child_fraction,
            n_features=n_features,
        )

    def _solver(self, censoring: str) -> QuantileSolver:
        return QuantileSolver(
            censoring_survival=self.censoring_survival,
            n_neighbors=self.n_neighbors,
            solver=self.solver,
            censoring=censoring,
        )

    def _queries(self, X: Any) -> Queries:
        check_is_fitted(self)
        matrix, _ = read_table(self, X, self.model_.columns)
        return self.model_.queries(matrix, self.n_jobs)

    def _quantiles(
        self, queries: Queries, quantiles: float | Sequence[float], unidentified: str
    ) -> NDArray[np.float64]:
        levels, is_scalar = read_levels(quantiles)
        read_choice("unidentified", unidentified, ("inf", "clip", "nan"))
        solver = self._solver(self.model_.censoring)
        solution = self.model_.solve(queries, solver, levels, self.n_jobs)
        values = solution.settled(unidentified, stacklevel=4)
        return values[:, 0] if is_scalar else values


def take_names(estimator: Any, named: Any) -> None:
    """Number and names of the features that another estimator has seen, in place of its own."""
    estimator.__dict__.pop("feature_names_in_", None)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(named, name):
            setattr(estimator, name, getattr(named, name))


def interval_levels(coverage: float) -> list[float]:
    """Levels that bound an interval of this coverage, with the same share on each side."""
    tail = (1.0 - read_fraction("coverage", coverage, 0.0, 1.0)) / 2.0
    if not 0.0 < tail < 0.5:
        raise ValueError(f"coverage={coverage!r} must lie strictly between 0 and 1.")
    return [tail, 1.0 - tail]


def plain_setting(name: str, value: Any) -> Any:
    """A setting as a model file keeps it: a number, text, None or a list of numbers."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_setting(name, each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if name == "random_state":
        return None  # a generator, not a seed: the forest that grew from it is in the file
    raise ValueError(f"{name}={value!r} cannot be kept in a model file: give a plain value.")
