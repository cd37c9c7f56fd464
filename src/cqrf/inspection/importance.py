"""Permutation importance out of bag: the skill that is lost if a feature's values are permuted.

The values of feature j are permuted among the training rows, and each row is predicted by the trees
that did not draw it. With the loss l_i of row i, its loss l_i' after the permutation (the mean over
repeats), the loss b_i of the Kaplan-Meier curve, all averaged over ``Model.score_levels``, and the
IPCW weights w_i, the importance is the difference of two skills:

    I_j = sum_i w_i (l_i' - l_i) / sum_i w_i b_i

It has the standard error of a ratio of two means: with u_i = w_i (l_i' - l_i - I_j b_i) / sum w b,
the variance is n / (n - 1) times the sum of u_i^2, or of the squared sums over the groups that
trees draw as a whole. Every row has permuted values of its own, so that the error over rows
contains the error due to a finite number of repeats.

Values are permuted as bins, which neither the trees nor the working model can tell from the values.
A row's linear predictor is that of the model fitted without its fold; it changes by what the whole
model gives to the two bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import feature_names
from cqrf._input.units import find_clusters
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, has_tree, training_queries
from cqrf._model.settings import draw_seed, read_solver
from cqrf._model.skill import marginal_quantiles
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import is_count, read_count
from cqrf.estimator import CensoredQuantileForest
from cqrf.inspection.dependence import evenly_spaced
from cqrf.inspection.forests import check_forest, find_feature
from cqrf.metrics.ipcw import EvaluationRows, read_evaluation_rows
from cqrf.metrics.quantile import compute_row_losses
from cqrf.metrics.skill import compare_losses

MAX_NAMED = 3  # features in the one-line representation


@dataclass(frozen=True, eq=False, repr=False)
class PermutationImportance:
    """Permutation importance of features, out of bag.

    Attributes
    ----------
    names : list of str
        Names of the features.
    importances : ndarray of shape (n_features,)
        Skill over Kaplan-Meier that is lost if the values of the feature are permuted; 0 for a
        feature that predictions do not depend on.
    standard_errors : ndarray of shape (n_features,)
        Standard errors of ``importances`` over rows, or over groups of rows.
    skill : float
        Skill over Kaplan-Meier without a permutation, of the same rows.
    n_rows, n_repeats : int
        Rows that were scored, and permutations of each feature.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.inspection import permutation_importance_oob
    >>> X, y, _, _ = make_aft(100, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
    >>> permutation_importance_oob(forest, random_state=0).importances.shape
    (2,)
    """

    names: list[str]
    importances: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    skill: float
    n_rows: int
    n_repeats: int

    def __repr__(self) -> str:
        order = np.argsort(-self.importances, kind="stable")
        first = ", ".join(
            f"{self.names[i]} {self.importances[i]:.3f} ± {self.standard_errors[i]:.3f}"
            for i in order[:MAX_NAMED]
        )
        more = ", ..." if len(order) > MAX_NAMED else ""
        return f"PermutationImportance({first}{more}; skill {self.skill:.3f}, {self.n_rows} rows)"

    def to_frame(self) -> Any:
        """The importances as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            A row for each feature, the most important first; columns ``importance`` and
            ``standard_error``.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> from cqrf.inspection import permutation_importance_oob
        >>> permutation_importance_oob(forest, features=[0, 1], random_state=0).to_frame().shape
        (2, 2)
        """
        import pandas as pd

        frame = pd.DataFrame(
            {"importance": self.importances, "standard_error": self.standard_errors},
            index=pd.Index(self.names, name="feature"),
        )
        return frame.iloc[np.argsort(-self.importances, kind="stable")]


def permutation_importance_oob(
    forest: CensoredQuantileForest,
    *,
    features: str | int | Sequence[str | int] | None = None,
    n_repeats: int = 5,
    n_rows: int | None = None,
    random_state: Any = None,
) -> PermutationImportance:
    """Skill that is lost if the values of a feature are permuted among the training rows.

    Each row is predicted by the trees that did not draw it. The skill is that of ``score_oob``, so
    an importance of .1 means that without the feature's values the quantile loss is larger by a
    tenth of the loss of the Kaplan-Meier curve. A feature without effect has an importance of about
    0, above or below. Of two features that say the same, each can replace the other, and both
    have a small importance. Permuting one of several correlated features gives rows that do not
    exist, which can make it look more important.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest that has the features of its training rows: not one grown on Dask.
    features : str, int or a sequence of them, optional
        Names or indices of features. Default: all.
    n_repeats : int, default=5
        Permutations of each feature.
    n_rows : int, optional
        Maximum number of rows to score, evenly spaced in the training table. Default: all.
    random_state : int, RandomState or None
        Seed of the permutations. Results depend neither on ``n_jobs`` nor on which other
        features are asked for.

    Returns
    -------
    PermutationImportance
        ``names``, ``importances`` and ``standard_errors``; ``to_frame()`` gives a pandas frame.
        The standard errors are over rows (over groups, if the forest was fitted with groups), for
        the forest as it is: they contain the error of a finite number of permutations, but not
        that another sample would have grown another forest.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.inspection import permutation_importance_oob
    >>> X, y, _, _ = make_aft(300, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
    >>> found = permutation_importance_oob(forest, random_state=0)
    >>> bool(found.importances[0] > 2 * found.standard_errors[0])
    True
    """
    check_forest(forest)
    columns = find_features(forest, features)
    n_repeats = read_count("n_repeats", n_repeats, 1)
    most = None if n_rows is None else read_count("n_rows", n_rows, 1)
    seed = draw_seed(random_state)
    scored = score_unpermuted(forest, most)
    return permute_features(forest, scored, columns, n_repeats, seed)


def find_features(forest: CensoredQuantileForest, features: Any) -> list[int]:
    """Indices of features that are given by name or index; of all, if None are given."""
    if features is None:
        return list(range(forest.n_features_in_))
    if isinstance(features, str) or is_count(features):
        features = [features]
    return [find_feature(forest, feature) for feature in features]


class ScoredRows(NamedTuple):
    """Training rows that are scored out of bag, and their losses without a permutation."""

    queries: Queries
    """All training rows, in the order of their table."""
    rows: NDArray[np.intp]
    """Those that are scored."""
    evaluated: EvaluationRows
    weight: NDArray[np.float64]
    """IPCW weights of the scored rows, which sum to 1; 0 if the loss is not known."""
    predicted: NDArray[np.float64]
    """Their quantiles at ``score_levels``, clipped."""
    loss: NDArray[np.float64]
    """Their losses, averaged over levels."""
    baseline: NDArray[np.float64]
    """Losses of the Kaplan-Meier curve."""
    unit: NDArray[np.intp]
    """Number of each scored row's group, from 0; of the row itself without groups."""

    @property
    def skill(self) -> float:
        """Skill of the scored rows."""
        return compare_losses(float(self.weight @ self.loss), float(self.weight @ self.baseline))


def score_unpermuted(forest: CensoredQuantileForest, most: int | None) -> ScoredRows:
    """Score the training rows out of bag, at most so many, evenly spaced."""
    model = forest.model_
    if not model.keeps_features:
        raise ValueError(
            "permutation_importance_oob permutes the features of the training rows, which a "
            "forest grown on Dask does not keep: use sklearn.inspection.permutation_importance "
            "with rows held out."
        )
    queries, weight = training_queries(model), model.training_weight
    rows = np.flatnonzero(has_tree(model, queries) & (weight > 0))
    if len(rows) == 0:
        raise ValueError(
            "no row is out of bag: every tree has drawn all of them. Fit with max_samples "
            "below 1, or with bootstrap=True."
        )
    if most is not None:
        rows = rows[evenly_spaced(len(rows), most)]
    evaluated = read_evaluation_rows(
        model.training_target,
        model.training_target.take(rows)._replace(entry=None),
        censoring=model.censoring,
        train_weight=weight,
        sample_weight=weight[rows],
    )
    levels = np.array(model.score_levels)
    of_all = np.tile(marginal_quantiles(model, levels), (len(rows), 1))
    known, baseline = compute_row_losses(evaluated, of_all, levels)
    predicted = predict_quantiles(forest, queries.take(rows))
    clusters = find_clusters(model.sampling.unit_of_row[model.ranks[rows]])
    return ScoredRows(
        queries=queries,
        rows=rows,
        evaluated=evaluated,
        weight=known,
        predicted=predicted,
        loss=compute_row_losses(evaluated, predicted, levels).loss.mean(axis=1),
        baseline=baseline.mean(axis=1),
        unit=np.unique(clusters, return_inverse=True)[1],
    )


def predict_quantiles(forest: CensoredQuantileForest, queries: Queries) -> NDArray[np.float64]:
    """Quantiles at ``score_levels``, clipped; shape (n, n_levels)."""
    model = forest.model_
    reader = Quantiles(read_solver(forest, model.censoring), np.array(model.score_levels))
    return read_one(model, queries, reader, forest.n_jobs).fill("clip")


def permute_features(
    forest: CensoredQuantileForest,
    scored: ScoredRows,
    columns: list[int],
    n_repeats: int,
    seed: int,
) -> PermutationImportance:
    """Importance of each column; 0 if predictions do not depend on it."""
    found = np.zeros((len(columns), 2))
    for k in np.flatnonzero(np.isin(columns, forest.model_.used_features)):
        found[k] = permute_feature(forest, scored, columns[k], n_repeats, seed)
    names = feature_names(forest)
    return PermutationImportance(
        names=[names[column] for column in columns],
        importances=found[:, 0],
        standard_errors=found[:, 1],
        skill=scored.skill,
        n_rows=len(scored.rows),
        n_repeats=n_repeats,
    )


def permute_feature(
    forest: CensoredQuantileForest, scored: ScoredRows, column: int, n_repeats: int, seed: int
) -> tuple[float, float]:
    """Importance of a feature, and its standard error."""
    model = forest.model_
    increase = np.zeros(len(scored.rows))
    for repeat in range(n_repeats):
        codes = permute_codes(model, scored.queries.codes[:, column], (seed, column, repeat))
        increase += permuted_loss(forest, scored, column, codes[scored.rows]) - scored.loss
    increase /= n_repeats
    total = scored.weight @ scored.baseline
    if total == 0:  # all times are equal: there is no skill to lose
        return 0.0, 0.0
    importance = scored.weight @ increase / total
    residual = scored.weight * (increase - importance * scored.baseline) / total
    by_unit = np.bincount(scored.unit, residual)
    n_units = len(by_unit)
    if n_units == 1:
        return float(importance), np.nan
    return float(importance), float(np.sqrt(n_units / (n_units - 1) * (by_unit @ by_unit)))


def permute_codes(
    model: Model, codes: NDArray[np.uint8], key: tuple[int, int, int]
) -> NDArray[np.uint8]:
    """Bins of a feature, permuted among the rows of positive weight by a keyed permutation."""
    weighted = np.flatnonzero(model.training_weight > 0)
    permuted = codes.copy()
    permuted[weighted] = np.random.default_rng(key).permutation(codes[weighted])
    return permuted


def permuted_loss(
    forest: CensoredQuantileForest, scored: ScoredRows, column: int, codes: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """Losses of the scored rows with other bins of a feature, averaged over levels.

    Only rows with another bin and a known loss are predicted anew.
    """
    is_other = codes != scored.queries.codes[scored.rows, column]
    changed = np.flatnonzero(is_other & (scored.weight > 0))
    if len(changed) == 0:
        return scored.loss
    unchanged = scored.queries.take(scored.rows[changed])
    queries = unchanged.replace_codes(forest.model_, column, codes[changed])
    predicted = scored.predicted.copy()
    predicted[changed] = predict_quantiles(forest, queries)
    levels = np.array(forest.model_.score_levels)
    return compute_row_losses(scored.evaluated, predicted, levels).loss.mean(axis=1)
