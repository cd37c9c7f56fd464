"""Survival tables against R: summary(survfit(...), times=, extend=FALSE).

A forest of one tree with one leaf has Kaplan-Meier's weights. R has no row for a time beyond the
last one of a curve; the forest gives NaN there, but 0 for a curve that has fallen to 0.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import BeyondFollowUpWarning, CensoredQuantileForest, censored

FOLDER = Path(__file__).resolve().parents[1] / "data" / "survfit"
RTOL = 1e-7  # sample weights are in single precision
SURVIVED = 730
STAGES = (1, 2, 3, 4)  # the curve of stage 5 falls to 0


@pytest.fixture(scope="module")
def tables():
    """R's table of each (stage, kind)."""
    return dict(list(pd.read_csv(FOLDER / "tables.csv").groupby(["stage", "kind"])))


def fit_leaf(stage, kind):
    """A forest that is one leaf with all rows of the stage, and a query."""
    rows = pd.read_csv(FOLDER / "rows.csv").query(f"stage == {stage}")
    y = censored(rows["time"], rows["event"], entry=rows["entry"] if kind == "entry" else None)
    one_leaf = CensoredQuantileForest(
        n_estimators=1, honest=False, max_samples=None, min_samples_split=10_000
    )
    return one_leaf.fit(rows[["stage"]], y, rows["weight"]), rows[["stage"]][:1]


@pytest.mark.parametrize("kind", ["plain", "entry"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_survival_table_is_rs_with_nan_where_r_has_no_row(tables, stage, kind):
    forest, query = fit_leaf(stage, kind)
    table = tables[stage, kind]
    last = table["last"].iloc[0]
    with pytest.warns(BeyondFollowUpWarning, match=f"known up to {last:g}"):
        found = forest.predict_survival(query, table["time"])[0]
    assert 0 < np.isnan(found).sum() < len(found)
    assert_array_equal(np.isnan(found), table["survival"].isna())
    assert_allclose(found, table["survival"], rtol=RTOL)


@pytest.mark.parametrize("stage", STAGES)
def test_survival_given_the_time_survived_is_rs_with_a_start_time(tables, stage):
    forest, query = fit_leaf(stage, "plain")
    table = tables[stage, "plain"]
    with pytest.warns(BeyondFollowUpWarning):
        found = forest.predict_survival(query, table["time"], given=SURVIVED)[0]
    assert_array_equal(np.isnan(found), table["given"].isna())
    assert_allclose(found, table["given"], rtol=RTOL)


@pytest.mark.parametrize("stage", STAGES)
def test_the_mean_restricted_to_what_is_known_is_rs(tables, stage):
    forest, query = fit_leaf(stage, "plain")
    expected = tables[stage, "plain"]["mean"].iloc[0]
    assert_allclose(forest.predict_mean(query, 36_500, beyond="restrict"), expected, rtol=RTOL)


def test_a_curve_that_has_fallen_to_0_is_0_where_r_has_no_row(tables):
    forest, query = fit_leaf(5, "plain")
    table = tables[5, "plain"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = forest.predict_survival(query, table["time"])[0]
        mean = forest.predict_mean(query, 36_500)
    is_in_r = table["survival"].notna().to_numpy()
    assert 0 < is_in_r.sum() < len(is_in_r)
    assert_allclose(found[is_in_r], table["survival"][is_in_r], rtol=RTOL)
    assert_array_equal(found[~is_in_r], 0.0)
    assert_allclose(mean, table["mean"].iloc[0], rtol=RTOL)
