"""Priorities that are independent of the outcomes by which they are evaluated.

The rows are split into two halves, and a forest grown on each ranks the rows of the other. An
effect out of bag is a mean that leaves the row out, and so is negatively correlated with the row's
own score: a ranking by it would be evaluated as worse than it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.fit import EffectSettings
from cqrf._effects.fitted import EffectModel
from cqrf._effects.forest import grow_effect_forest
from cqrf._effects.predict import estimate_effects
from cqrf._effects.response import Floats
from cqrf._input.units import NO_UNIT
from cqrf._model.queries import Queries, training_codes
from cqrf._runtime.random import derive

# Number of the seed that halves derive theirs from: larger than that of any tree, bag or fold.
HALF_STREAM = 2**35


class RankedHalf(NamedTuple):
    """Rows of a half, as row numbers, with priorities from the other half."""

    rows: NDArray[np.intp]
    priorities: Floats


def halves_with_priorities(
    model: EffectModel, responses: Floats, settings: EffectSettings, n_jobs: int | None
) -> Iterator[RankedHalf]:
    """Both halves; ``responses`` are Y* - m of one target, (n, 1) by rank."""
    n_units = model.effect.sampling.n_units
    order = np.argsort(derive(derive(model.effect.seed, HALF_STREAM), np.arange(n_units)))
    in_first = np.zeros(n_units + 1, dtype=bool)  # the last entry is of rows without a unit
    in_first[order[: n_units // 2]] = True
    has_unit = model.unit >= 0
    codes, row_of_rank = training_codes(model.effect), model.effect.order
    for inside in (in_first[model.unit] & has_unit, ~in_first[model.unit] & has_unit):
        fitted = fit_half(model, inside, settings, n_jobs)
        ranked = np.sort(row_of_rank[~inside & has_unit]).astype(np.intp)
        effect = estimate_effects(fitted, responses, Queries(codes[ranked]), n_jobs).effect
        yield RankedHalf(ranked, model.sign * effect[:, 0])


def fit_half(
    model: EffectModel, inside: NDArray[np.bool_], settings: EffectSettings, n_jobs: int | None
) -> EffectModel:
    """The model with an effect forest grown on some rows only, by rank; others weigh nothing."""
    pooled = model.forests.pooled
    unit_of_row = np.where(inside, pooled.sampling.unit_of_row, NO_UNIT)
    drawn, renumbered = np.unique(unit_of_row[unit_of_row >= 0], return_inverse=True)
    unit_of_row[unit_of_row >= 0] = renumbered
    part = replace(
        pooled,
        rows=pooled.rows._replace(weight=(model.weight * inside).astype(np.float32)),
        sampling=pooled.sampling._replace(unit_of_row=unit_of_row, n_units=len(drawn)),
    )
    effect = grow_effect_forest(
        part, model.nuisances, settings.limits, settings.n_trees, settings.bag_size, n_jobs
    )
    return replace(model, effect=effect)
