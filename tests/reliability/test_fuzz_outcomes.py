"""Fuzzing of the other kinds of outcome: competing risks and intervals against plain loops.

``make test`` runs a sample of the cases, ``make fuzz`` tens of thousands.
"""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cqrf import CensoredQuantileForest, censored, interval
from oracles.causes import curves_by_definition
from oracles.forest import Walker
from oracles.intervals import em, violation
from support.fuzzing import LEVELS, SETTINGS, raw_values, tables, units_drawn

CASES = int(os.environ.get("CQRF_FUZZ_CASES", "200"))
SHARDS = 4  # side by side in worker processes
# The first shard is a sample of the cases; the others are slow.
SHARD = pytest.mark.parametrize(
    "shard", [0, *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(1, SHARDS))]
)
ASKED = 3  # of the rows that a table brings to ask for
FUZZ = settings(
    max_examples=CASES // SHARDS,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    database=None,
    derandomize=False,
)


def fit(X, y, options, weight, groups, path):
    """The forest, and the same one from its file."""
    forest = CensoredQuantileForest(**options).fit(X, y, sample_weight=weight, groups=groups)
    forest.save(path)
    return forest, CensoredQuantileForest.load(path).set_params(n_jobs=2)


def check_weights(forest, X, asked):
    """Weights of new rows, and out of bag, are those of walks down the trees."""
    walker, columns = Walker(forest.model_), forest.model_.columns
    found = forest.weights(asked).toarray()
    for row, values in enumerate(raw_values(asked, columns)):
        np.testing.assert_allclose(found[row], walker.weights(values), rtol=1e-12, atol=1e-15)
    drawn, out_of_bag = units_drawn(forest), forest.weights_oob().toarray()
    for row, values in enumerate(raw_values(X, columns)):
        trees = np.flatnonzero(~drawn[row]).tolist()
        expected = walker.weights(values, trees) if trees else np.zeros(len(X))
        np.testing.assert_allclose(out_of_bag[row], expected, rtol=1e-12, atol=1e-15)
    return found


def some_weight(weight, event):
    """Whether a row with an event counts."""
    return bool((event if weight is None else event[weight > 0]).any())


def check_incidences(forest, weights, asked, y, levels):
    """Incidences and their quantiles are those of the Aalen-Johansen curves of the weights."""
    times, n_causes = np.unique(y["time"]), len(forest.causes_)
    names = y.dtype.names
    entry = y["entry"] if "entry" in names else np.full(len(y), -np.inf)
    number = np.searchsorted(forest.causes_, y["cause"]) + 1
    number[y["cause"] == 0] = 0
    found = forest.predict_incidence(asked, times, beyond="extend")
    survival = forest.predict_survival(asked, times, beyond="extend")
    for row, weight in enumerate(weights):
        steps = curves_by_definition(y["time"], number, weight, entry, n_causes)
        at = np.zeros((n_causes, len(times)))
        for t, _, incidence in steps:
            at[:, times >= t] = np.array(incidence, float)[:, np.newaxis]
        np.testing.assert_allclose(found[row], at, atol=1e-9)
        np.testing.assert_allclose(survival[row], 1 - at.sum(axis=0), atol=1e-9)
    for k, cause in enumerate(forest.causes_):
        values = forest.predict(asked, levels, cause=cause, unidentified="nan")
        for row in range(len(asked)):
            for level, value in zip(levels, values[row], strict=True):
                at = found[row, k]
                early = times[at >= level + 1e-9]  # reached beyond doubt
                late = times[at >= level - 1e-9]  # perhaps not
                low = late[0] if len(late) else np.inf
                high = early[0] if len(early) else np.inf
                assert low <= (np.inf if np.isnan(value) else value) <= high


@pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
@SHARD
def test_random_tables_with_competing_risks(shard, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.cqrf"
    counts = {"fitted": 0, "others": 0}

    @FUZZ
    @given(tables(2, 30), SETTINGS, LEVELS, st.integers(0, 10**6))
    def check(table, options, levels, seed):
        X, asked, (time, event, entry), weight, groups = table
        cause = np.where(event, np.random.default_rng(seed).choice([1, 2, 7], len(time)), 0)
        options = options | {"censoring": "right"}
        if shard == 0:
            options = options | {"criterion": "censored_quantile"}  # fewer kernels to compile
        if len(np.unique(cause[cause > 0])) < 2 or not some_weight(weight, event):
            counts["others"] += 1
            return
        y, asked = censored(time, cause, entry, censored=0), asked.head(ASKED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forest, loaded = fit(X, y, options, weight, groups, path)
            weights = check_weights(forest, X, asked)
            check_incidences(forest, weights, asked, y, levels)
            again = [each.predict_incidence_oob(np.unique(time)) for each in (forest, loaded)]
        np.testing.assert_array_equal(*again)
        counts["fitted"] += 1

    check()
    print(f"shard {shard}: {counts['fitted']} forests of causes checked")
    assert counts["fitted"] > CASES // SHARDS // 3


def check_curves(forest, weights, asked, ends):
    """Curves fulfil the optimality conditions of the likelihood of the weights."""
    curves = forest.predict_survival(asked)
    for row, weight in enumerate(weights):
        used = np.flatnonzero(weight)
        rows = list(zip(ends[0][used], ends[1][used], strict=True))
        intervals, _ = em(rows, weight[used], 0)
        rights = np.array([right for _, right in intervals])
        after = np.where(np.isinf(rights), 0.0, curves[row](rights, "extend"))
        masses = -np.diff(after, prepend=1.0)
        assert (masses > -1e-12).all()
        assert violation(rows, weight[used], intervals, masses) < 1e-6


@pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
@SHARD
def test_random_tables_of_intervals(shard, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.cqrf"
    counts = {"fitted": 0, "others": 0}

    @FUZZ
    @given(tables(2, 30), SETTINGS, LEVELS, st.integers(0, 10**6))
    def check(table, options, levels, seed):
        X, asked, (time, event, _), weight, groups = table
        rng = np.random.default_rng(seed)
        time = rng.integers(0, 9, len(time)).astype(float)
        lower = np.where(event, time - rng.choice([0.0, 1.0, 2.0, np.inf], len(time)), time)
        upper = np.where(event, time, np.inf)
        options = options | {"censoring": "right", "criterion": "censored_quantile"}
        counted = np.ones(len(time), bool) if weight is None else weight > 0
        is_interval = (lower < upper) & event
        if not (is_interval & counted).any() or not some_weight(weight, event):
            counts["others"] += 1
            return
        if np.isneginf(lower[counted]).all():
            with pytest.raises(ValueError, match="every row is left-censored"):
                fit(X, interval(lower, upper), options, weight, groups, path)
            counts["others"] += 1
            return
        options = options | {"working_model": None}
        y, asked = interval(lower, upper), asked.head(ASKED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forest, loaded = fit(X, y, options, weight, groups, path)
            weights = check_weights(forest, X, asked)
            check_curves(forest, weights, asked, (lower, upper))
            bounds, again = (
                each.predict_quantile_bounds(asked, levels, unidentified="nan")
                for each in (forest, loaded)
            )
        np.testing.assert_array_equal(bounds, again)
        known = ~np.isnan(bounds[..., 1])
        assert (bounds[..., 0] <= bounds[..., 1])[known].all()
        counts["fitted"] += 1

    check()
    print(f"shard {shard}: {counts['fitted']} forests of intervals checked")
    assert counts["fitted"] > CASES // SHARDS // 3
