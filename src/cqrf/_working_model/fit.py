"""Fitting the working model: penalty, cross-fitted linear predictors, slope, baseline hazard.

1. Rows are split into FOLDS folds by sampling unit. A ridge model is fitted, its penalty chosen by
   cross-validation (:mod:`ridge`), and a second one that can leave columns out (:mod:`adaptive`);
   the second is taken if it is clearly better.
2. The linear predictor of a row comes from the model that was fitted without its fold, so that
   residuals do not contain the row's own noise.
3. A Cox fit on these cross-fitted predictors gives the calibration slope, cut to [0, 1]: a model
   without signal is shrunk to 0. So is one that explains less than LEAST_EXPLAINED.
4. The cumulative baseline hazard is Breslow's, on at most MOST_KNOTS of the event times.

A table of more than MOST_ROWS rows is represented by a random sample of so many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target, time_order
from cqrf._runtime.random import derive, draw_without_replacement
from cqrf._runtime.threads import one_blas_thread
from cqrf._working_model.adaptive import fit_adaptive
from cqrf._working_model.cox import CoxRows, baseline_hazard, evaluate, maximise
from cqrf._working_model.design import make_design, principal_components
from cqrf._working_model.ridge import FOLDS, Part, Ridge, fit_ridge, make_parts
from cqrf._working_model.transform import LARGEST, WorkingModel

MOST_ROWS = 20_000
MOST_KNOTS = 512
# With fewer rows or events no working model is fitted. 50 rows is also where max_samples="auto"
# begins to draw more than half of the rows.
FEWEST_ROWS, FEWEST_EVENTS = 50, 10
# A model whose likelihood-ratio statistic is below this share of the number of events is no help to
# a forest: in a large table noise alone can have so small an effect.
LEAST_EXPLAINED = 0.005
# Numbers of the seeds that the sample of rows and the folds derive theirs from: larger than that
# of any tree or bag.
SAMPLE_STREAM, FOLD_STREAM = 2**33, 2**34

Floats = NDArray[np.float64]


class WorkingRows(NamedTuple):
    """Rows of positive weight that a working model is fitted to, in the order of their table."""

    matrix: NDArray[Any]
    """Shape (n, n_features)."""
    codes: NDArray[np.uint8]
    """Shape (n_features, n)."""
    target: Target
    """Oriented to the right."""
    weight: Floats
    unit: NDArray[np.int32]


class CrossFit(NamedTuple):
    """A working model, and what the linear predictors of training rows are computed from."""

    model: WorkingModel
    """Without linear predictors of its own."""
    fold_scores: Floats
    """Scores of the models that leave a fold out, (FOLDS, n_features, N_BINS)."""
    seed: int

    def predict_training(self, codes: NDArray[np.uint8], unit: NDArray[np.integer[Any]]) -> Floats:
        """Linear predictor of training rows from the model that leaves out the fold of each.

        codes : (n, n_features), bins; unit : (n,), sampling unit of each row
        """
        fold = fold_of_unit(unit, self.seed)
        predicted = np.empty(len(codes))
        for number, scores in enumerate(self.fold_scores):
            its_rows = np.flatnonzero(fold == number)
            predicted[its_rows] = self.model._replace(scores=scores).predict(codes[its_rows])
        return predicted


def fold_of_unit(unit: NDArray[np.integer[Any]], seed: int) -> NDArray[np.uint64]:
    """Fold of each sampling unit: a function of the seed and its number alone."""
    return derive(derive(seed, FOLD_STREAM), unit.astype(np.uint64)) % np.uint64(FOLDS)


def sample_rows(n: int, seed: int) -> NDArray[np.int64] | None:
    """Which of n rows of positive weight represent a table, ascending; None for all."""
    if n <= MOST_ROWS:
        return None
    return np.sort(draw_without_replacement(derive(seed, SAMPLE_STREAM), n, MOST_ROWS))


def has_enough(n_rows: int, n_events: int) -> bool:
    """Whether a table of so many rows and events of positive weight gets a working model."""
    return n_rows >= FEWEST_ROWS and n_events >= FEWEST_EVENTS


def fit_working_model(rows: WorkingRows, n_levels: list[int], seed: int) -> CrossFit:
    """Fit the model; ``n_levels`` has the number of levels of each feature, 0 for a number.

    The sums of the linear algebra library depend on its number of threads: it gets one.
    """
    with one_blas_thread():
        return _fit(rows, n_levels, seed)


def _fit(rows: WorkingRows, n_levels: list[int], seed: int) -> CrossFit:
    design = make_design(rows.matrix, rows.codes, n_levels, rows.weight)
    order = time_order(rows.target.time, rows.target.event)
    target, codes = rows.target.take(order), rows.codes[:, order]
    fold = fold_of_unit(rows.unit[order], seed)
    parts = make_parts(target, rows.weight[order], fold)
    ridge = _fit_first(design.matrix(codes), parts)
    design, ridge = fit_adaptive(design, ridge, parts, codes, n_levels)
    whole = parts[FOLDS].rows
    crossed = np.einsum("ij,ij->i", design.matrix(codes), ridge.coefficients[fold.astype(np.intp)])
    slope = _calibration_slope(whole, crossed)

    def make_scores(coefficients: Floats) -> Floats:
        scores = design.scores(slope * coefficients, len(n_levels))
        return np.clip(scores, -LARGEST, LARGEST)

    knots, hazards = _cumulative_hazard(whole, target, slope * crossed)
    *of_folds, of_all = map(make_scores, ridge.coefficients)
    return CrossFit(WorkingModel(of_all, knots, hazards, np.empty(0)), np.array(of_folds), seed)


def _fit_first(matrix: Floats, parts: list[Part]) -> Ridge:
    """The ridge model of all columns; of their principal components if there are many."""
    components, directions = principal_components(matrix)
    ridge = fit_ridge(parts, components, np.ones((FOLDS + 1, components.shape[1])))
    if directions is None:
        return ridge
    return ridge._replace(coefficients=ridge.coefficients @ directions)


def _calibration_slope(whole: CoxRows, linear_predictor: Floats) -> float:
    """Slope of a Cox fit on the linear predictor alone, cut to [0, 1]; 0 if it explains little."""
    deviation = float(linear_predictor.std())
    if deviation < 1e-9:
        return 0.0
    column = (linear_predictor / deviation)[:, np.newaxis]
    slope = maximise(whole, column, 1e-6 * whole.weight.sum(), np.zeros(1))[0] / deviation
    slope = float(np.clip(slope, 0.0, 1.0))
    no_effect, effect = (evaluate(whole, each * linear_predictor) for each in (0.0, slope))
    statistic = 2.0 * (effect.log_likelihood - no_effect.log_likelihood)
    return slope if statistic >= LEAST_EXPLAINED * whole.weight[whole.events].sum() else 0.0


def _cumulative_hazard(
    whole: CoxRows, target: Target, linear_predictor: Floats
) -> tuple[Floats, Floats]:
    """Knots of the cumulative baseline hazard: the first time, and event times."""
    increase = baseline_hazard(whole, linear_predictor)
    times, place = np.unique(target.time[whole.events], return_inverse=True)
    hazards = np.cumsum(np.bincount(place, increase).astype(np.float64))
    if len(times) > MOST_KNOTS:
        kept = np.unique(np.linspace(0, len(times) - 1, MOST_KNOTS).round().astype(int))
        times, hazards = times[kept], hazards[kept]
    if target.time[0] < times[0]:
        times = np.concatenate([target.time[:1], times])
        hazards = np.concatenate([[0.0], hazards])
    return times, hazards
