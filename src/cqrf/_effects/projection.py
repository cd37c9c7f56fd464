"""The best linear projection of effects on covariates, by least squares on doubly robust scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cqrf._effects.magnitude import magnitude
from cqrf._effects.response import Floats


@dataclass(frozen=True)
class LinearProjection:
    """Coefficients of the best linear projection, with HC3 standard errors.

    The first is the intercept. Arrays have one entry for each of ``names``.

    Examples
    --------
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> forest.best_linear_projection(data.X[:, 0], target="survival", times=1.0).coefficient.shape
    (2,)
    """

    names: list[str]
    coefficient: Floats
    standard_error: Floats

    @property
    def p_value(self) -> Floats:
        """Two-sided p-value of each coefficient being 0."""
        return 2.0 * ndtr(-np.abs(self.coefficient / self.standard_error))

    def to_frame(self) -> Any:
        """The coefficients as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            A row for each coefficient; columns ``coefficient``, ``standard_error``, ``p_value``.

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.best_linear_projection(target="survival", times=1.0).to_frame().shape
        (1, 3)
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "coefficient": self.coefficient,
                "standard_error": self.standard_error,
                "p_value": self.p_value,
            },
            index=self.names,
        )


def project(
    scores: Floats, covariates: Floats, names: list[str], weight: Floats, unit: NDArray[np.int32]
) -> LinearProjection:
    """Weighted least squares of scores, (n,), on covariates, (n, p), and an intercept.

    Errors are HC3; with clusters, scaled residuals are summed within each.
    """
    design = np.hstack([np.ones((len(scores), 1)), covariates])
    weighted = design * weight[:, np.newaxis]
    gram = weighted.T @ design
    if np.linalg.matrix_rank(gram) < len(gram):
        raise ValueError(
            "A: a column is constant or a linear combination of others, so that its coefficient is "
            "not determined: leave it out."
        )
    inverse = np.linalg.inv(gram)
    size = magnitude(scores)
    scores = scores / size
    coefficient = inverse @ (weighted.T @ scores)
    leverage = np.einsum("ij,jk,ik->i", weighted, inverse, design)
    left = (scores - design @ coefficient) / np.maximum(1.0 - leverage, 1e-8)
    moves = weighted * left[:, np.newaxis]
    _, number = np.unique(unit, return_inverse=True)
    sums = np.zeros((int(number.max()) + 1, design.shape[1]))
    np.add.at(sums, number, moves)
    variance = inverse @ (sums.T @ sums) @ inverse
    error = np.sqrt(np.diag(variance))
    return LinearProjection(["intercept", *names], size * coefficient, size * error)
