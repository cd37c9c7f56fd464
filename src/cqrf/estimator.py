"""The estimator: a scikit-learn regressor around the fitted model.

The methods that predict are in :mod:`cqrf._estimator`, one file per subject.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from cqrf._estimator.errors import ErrorMethods
from cqrf._estimator.incidence import IncidenceMethods
from cqrf._estimator.intervals import IntervalMethods
from cqrf._estimator.out_of_bag import OutOfBagMethods
from cqrf._estimator.scikit_survival import ScikitSurvivalMethods
from cqrf._input.features import copy_feature_names, read_features
from cqrf._input.target import read_target
from cqrf._model.file import load_estimator, save_estimator
from cqrf._model.fit import TrainingTable, fit_model
from cqrf._model.memory import MemoryEstimate, estimate_memory
from cqrf._model.settings import draw_seed, read_settings
from cqrf._model.skill import compute_oob_skill, compute_skill
from cqrf._runtime.arguments import read_count


class CensoredQuantileForest(
    IncidenceMethods,
    IntervalMethods,
    OutOfBagMethods,
    ErrorMethods,
    ScikitSurvivalMethods,
    RegressorMixin,
    BaseEstimator,
):
    """Forest that predicts quantiles of censored times.

    ``fit(X, censored(time, event))``, then ``predict(X, quantiles)``.

    Parameters
    ----------
    n_estimators : int, default=500
        Number of trees.
    n_jobs : int, optional
        Threads; -1 for all processors. Results do not depend on it.
    random_state : int, RandomState or None
        Seed of the forest.
    min_samples_leaf, min_samples_split : int, default=5, 11
        Fewest rows in a child, and in a node that is split, of those that choose the splits.
    max_features : float, int, "sqrt", "log2" or None, default=None
        Features tried at each node: a fraction, a count, or all.
    max_samples : float, int, None or "auto", default="auto"
        Rows a tree draws: a fraction, a count, or as many as there are (None). ``"auto"``:
        max(n / 2, min(800, 0.8 n)) if n >= 50, else n / 2; always n / 2 with a ``bag_size``.
    bag_size : int, default=1
        Trees that draw from the same half of the rows. With 2 or more, and some hundred bags,
        there are standard errors and confidence intervals (the bootstrap of little bags).
    prediction : {"median", "mean", "risk"}
        What ``predict(X)`` gives without ``quantiles``: the median; the restricted mean, which is
        finite also where censoring hides the median; or minus that mean, a risk score.
    unidentified : {"inf", "clip", "nan"}
        Value of a quantile that is not identifiable because of censoring: infinity (minus infinity
        under left censoring) with one warning, the last observed neighbour, or NaN.
    censoring : {"right", "left"}
        Side on which times are censored.
    criterion : {"censored_quantile", "quantile", "variance", "logrank"}
        What a split compares: the Kaplan-Meier distribution of the latent time (default); quantile
        classes of the observed time; its mean; or its hazard.
    split_quantiles : sequence of float, optional
        Levels of the two quantile criteria. Default: .1 .3 .5 .7 .9, or .1 .5 .9 for "quantile".
    split_causes : cause or sequence of causes, optional
        With competing risks: the causes whose incidence a split compares. Default: all, equally.
    working_model : {"auto", "cox"} or None, default="auto"
        Model that half of the trees start from: a ridge Cox model, or none. ``"auto"``: Cox for the
        default criterion, censoring_survival and solver.
    honest : bool or "auto", default="auto"
        Whether half of a tree's rows makes its splits, half its leaves; "auto": not in wide tables.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    min_child_fraction, max_depth, max_bins : float, int, int, default=0.05, None, 255
        Smallest child as a fraction of its parent, most splits above a leaf, bins of a feature.
    censoring_survival : {"beran", "knn", "km"}
        Estimate of the censoring curve: product-limit with the forest's weights, Kaplan-Meier over
        the nearest rows, or over all rows. For comparison; survival curves do not depend on it.
    n_neighbors : float or int, default=0.1
        Neighbours for ``"knn"``: a fraction of the training rows or a count.
    solver : {"root", "argmin"}
        Rule that solves the estimating equation. ``"argmin"`` is the paper's, for comparison.
    time_unit, event_name : str, optional
        Words for pictures, reports and the server, such as "days" and "death".
    verbose : int, default=0
        Whether to show a progress bar over the trees.

    Attributes
    ----------
    model_ : Model
        The fitted forest. ``follow_up``: the default horizon of :meth:`predict_mean`;
        ``score_levels``: the levels of :meth:`score`; ``working``: the working model or None, and
        ``working.root_share``, the share of a curve that it alone gives.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features, and their names if X had string column names.

    References
    ----------
    Li, A. H. and Bradic, J. (2020). Censored Quantile Regression Forest. AISTATS.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest, datasets
    >>> X, y, _, _ = datasets.make_aft(300, random_state=0)
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
        split_causes: int | str | Sequence[int | str] | None = None,
        honest: bool | str = "auto",
        max_samples: float | int | str | None = "auto",
        bootstrap: bool = False,
        max_features: float | int | str | None = None,
        min_samples_leaf: int = 5,
        min_samples_split: int = 11,
        min_child_fraction: float = 0.05,
        max_depth: int | None = None,
        max_bins: int = 255,
        working_model: str | None = "auto",
        censoring: str = "right",
        censoring_survival: str = "beran",
        n_neighbors: float | int = 0.1,
        solver: str = "root",
        bag_size: int = 1,
        prediction: str = "median",
        unidentified: str = "inf",
        time_unit: str | None = None,
        event_name: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.split_quantiles = split_quantiles
        self.split_causes = split_causes
        self.honest = honest
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_child_fraction = min_child_fraction
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.working_model = working_model
        self.censoring = censoring
        self.censoring_survival = censoring_survival
        self.n_neighbors = n_neighbors
        self.solver = solver
        self.bag_size = bag_size
        self.prediction = prediction
        self.unidentified = unidentified
        self.time_unit = time_unit
        self.event_name = event_name
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
            (time, event), or one column of times that are all events. With several causes, as in
            ``censored(time, cause)``, the forest predicts the incidence of each, too.
            :func:`interval` pairs the ends of intervals, for times known only to lie between two.
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

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, censored
        >>> X, y = [[0.0], [1.0]] * 50, censored([1.0, 2.0] * 50, [True] * 100)
        >>> forest = CensoredQuantileForest(n_estimators=20).fit(X, y)
        >>> forest.predict([[0.0], [1.0]])
        array([1., 2.])
        """
        named = clone(self)  # receives the names, so that a failed fit leaves ours alone
        matrix, columns = read_features(named, X)
        target = read_target(y).drop_single_cause()
        seed = draw_seed(self.random_state)
        has_intervals = target.lower is not None
        settings = read_settings(self, matrix.shape[1], seed, target.causes, has_intervals)
        table = TrainingTable(matrix, columns, target, sample_weight, groups)
        model = fit_model(table, settings, self.n_jobs, bool(self.verbose))
        self.__dict__.pop("notes_", None)
        copy_feature_names(named, self)
        self.model_ = model
        return self

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gain of all trees that are grown on times; sums to 1."""
        check_is_fitted(self)
        gain = self.model_.forest.importance
        return gain / max(gain.sum(), np.finfo(np.float64).tiny)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Skill over the Kaplan-Meier curve: 1 - loss(forest) / loss(Kaplan-Meier).

        The loss is :func:`cqrf.metrics.censored_quantile_loss`, averaged over the levels
        ``model_.score_levels``: the quantile loss with inverse-probability-of-censoring weights
        (IPCW). The levels are .25 .5 .75, or lower where censoring hides these in the training
        rows. Entry times of y are not used: rows that enter late are scored on their whole time.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Test rows.
        y : array-like
            Their times and events, as for :meth:`fit`.
        sample_weight : array-like of shape (n,), optional
            Weights of the test rows; only ratios matter.

        Returns
        -------
        float
            1 is perfect, 0 is no better than one marginal curve for all rows; higher is better.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(300, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X[:200], y[:200])
        >>> round(forest.score(X[200:], y[200:]), 1)
        0.5
        """
        queries = self._queries(X)
        predicted = self._quantiles(queries, self.model_.score_levels, "clip")
        return compute_skill(self.model_, predicted, read_target(y), sample_weight=sample_weight)

    def score_oob(self) -> float:
        """Skill over the Kaplan-Meier curve on the training rows, out of bag.

        Returns
        -------
        float
            As :meth:`score`. Rows that every tree has drawn are left out.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> round(forest.score_oob(), 1)
        0.5
        """
        check_is_fitted(self)
        predicted = self.predict_oob(self.model_.score_levels, unidentified="clip")
        return compute_oob_skill(self.model_, predicted)

    def estimate_memory(self, n: int, p: int) -> MemoryEstimate:
        """Memory that ``fit`` will need, in bytes.

        Parameters
        ----------
        n : int
            Number of rows.
        p : int
            Number of features.

        Returns
        -------
        MemoryEstimate
            Named tuple of two numbers of bytes. ``fit`` is the peak of ``fit``, on top of X and y,
            for X that is an array of floats; converting a frame or another type takes up to 16 n p
            bytes more. ``model`` is what the fitted forest keeps. Many ties, heavy censoring or
            large groups give smaller trees.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest
        >>> estimate = CensoredQuantileForest().estimate_memory(100_000, 20)
        >>> estimate.model < estimate.fit < 2e9
        True
        """
        n, p = read_count("n", n, 1), read_count("p", p, 1)
        # No seed is drawn: that would change the state of a generator.
        return estimate_memory(read_settings(self, p, seed=0), n, p, self.n_jobs)

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write the fitted forest to a file, whole or not at all.

        The file holds numbers and JSON, no code: it is safe to read a file from an unknown source.
        It does hold the training data, features rounded to bins; protect it as you protect these.

        Parameters
        ----------
        path : str or PathLike
            File to write.
        notes : mapping of str to str, optional
            Texts by name, such as where the data came from; :meth:`load` gives them back as
            ``notes_``.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.save(os.path.join(folder, "forest.cqrf"), notes={"data": "simulated"})
        ...     loaded = CensoredQuantileForest.load(os.path.join(folder, "forest.cqrf"))
        >>> loaded.notes_
        {'data': 'simulated'}
        """
        check_is_fitted(self)
        save_estimator(self, path, notes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CensoredQuantileForest:
        """Read a forest from a file that :meth:`save` has written.

        A file that is damaged, cut short or not a model file gives a
        :class:`~cqrf.ModelFileError`.

        Parameters
        ----------
        path : str or PathLike
            File to read.

        Returns
        -------
        CensoredQuantileForest
            Its predictions are those of the saved one, bit for bit.

        Examples
        --------
        >>> import os, tempfile
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.save(os.path.join(folder, "forest.cqrf"))
        ...     loaded = CensoredQuantileForest.load(os.path.join(folder, "forest.cqrf"))
        >>> bool((loaded.predict(X) == forest.predict(X)).all())
        True
        """
        return load_estimator(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # The score is a skill in absolute loss, not an R2: a few honest trees do not reach the .5
        # that scikit-learn's checks require of a regressor.
        tags.regressor_tags.poor_score = True
        return tags
