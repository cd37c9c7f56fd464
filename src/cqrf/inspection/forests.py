"""The forest and the feature that an inspection is about, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cqrf._runtime.arguments import is_count
from cqrf.estimator import CensoredQuantileForest


def check_forest(forest: Any) -> None:
    """Raise unless it is a fitted CensoredQuantileForest."""
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"forest must be a CensoredQuantileForest; found {type(forest).__name__}.")
    check_is_fitted(forest)


def find_feature(forest: Any, feature: Any) -> int:
    """Index of the column of a fitted forest with this name or index.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    feature : str or int
        Name or index of a column.

    Returns
    -------
    int
        Index of the column.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import load_pbc
    >>> from cqrf.inspection.forests import find_feature
    >>> pbc = load_pbc(as_frame=True)
    >>> find_feature(CensoredQuantileForest(n_estimators=2).fit(pbc.X, pbc.y), "age")
    1
    """
    names = getattr(forest, "feature_names_in_", None)
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"feature={feature!r}: the forest was fitted without feature names; give a "
                f"number from 0 to {forest.n_features_in_ - 1}."
            )
        found = np.flatnonzero(names == feature)
        if len(found) == 0:
            some = ", ".join(map(repr, names[:10].tolist())) + ", ..." * (len(names) > 10)
            raise ValueError(f"feature={feature!r} is unknown; the forest has {some}.")
        return int(found[0])
    if not is_count(feature) or not 0 <= feature < forest.n_features_in_:
        raise ValueError(
            f"feature={feature!r} must be a name or a number from 0 to {forest.n_features_in_ - 1}."
        )
    return int(feature)
