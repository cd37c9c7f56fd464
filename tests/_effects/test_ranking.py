"""Rankings: TOC, AUTOC and QINI against plain loops and R's grf."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._effects.ranking import (
    REPEATS,
    half_samples,
    rank_average,
    targeting_curve,
    toc_at,
    with_error,
)
from oracles import effects as oracle
from support.treated import read_golden

KINDS = ("simple1", "type1")
PRIORITIES = ("x1", "oob")


def golden_ranking(kind, priority):
    columns = read_golden(f"scores_{kind}.csv.gz")
    priorities = columns["x1"] if priority == "x1" else np.round(columns["oob_rmst"], 2)
    return columns["dr_rmst"], priorities


def golden_rates(kind, priority):
    rates = read_golden("rate.csv")
    chosen = (rates["dgp"] == kind) & (rates["priority"] == priority)
    return {name: column[chosen] for name, column in rates.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("priority", PRIORITIES)
def test_rank_averages_equal_those_of_grf(kind, priority):
    scores, priorities = golden_ranking(kind, priority)
    rates = golden_rates(kind, priority)
    assert rates["metric"].tolist() == ["AUTOC", "QINI"]
    for metric, expected in zip(("autoc", "qini"), rates["estimate"], strict=True):
        found = rank_average(scores, priorities, np.ones(len(scores)), metric)
        assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("priority", PRIORITIES)
def test_the_targeting_curve_equals_that_of_grf(kind, priority):
    scores, priorities = golden_ranking(kind, priority)
    rates = golden_rates(kind, priority)
    shares = np.arange(1, 11) / 10
    expected = [rates[f"toc{share:g}"][0] for share in shares]
    found = toc_at(scores, priorities, np.ones(len(scores)), shares)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("metric", ["AUTOC", "QINI"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_near_those_of_grf(kind, metric):
    # Two bootstraps of 200 half-samples differ by 5 % of the error in the mean each.
    scores, priorities = golden_ranking(kind, "x1")
    rates = golden_rates(kind, "x1")
    expected = rates["std_err"][rates["metric"].tolist().index(metric)]
    n = len(scores)
    _, error = with_error(
        lambda *rows: np.array([rank_average(*rows, metric.lower())]),
        scores,
        priorities,
        np.ones(n),
        np.arange(n, dtype=np.int32),
        0,
    )
    assert error[0] == pytest.approx(expected, rel=4 * np.sqrt(2) * 0.05)


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 5)), min_size=1, max_size=25))
def test_rankings_equal_plain_loops(rows):
    scores, priorities = (np.array(column, float) / 4 for column in zip(*rows, strict=True))
    n = len(scores)
    toc = oracle.toc_values(scores, priorities)
    shares = np.arange(1, n + 1) / n
    np.testing.assert_allclose(toc_at(scores, priorities, np.ones(n), shares), toc, atol=1e-12)
    for metric in ("autoc", "qini"):
        found = rank_average(scores, priorities, np.ones(n), metric)
        assert found == pytest.approx(oracle.rank_average(scores, priorities, metric), abs=1e-12)


def test_shares_are_rounded_down_to_whole_rows_but_for_the_first():
    scores, n = np.array([9.0, 5.0, 1.0, 1.0]), 4
    toc = oracle.toc_values(scores, -np.arange(4))
    found = toc_at(scores, -np.arange(4.0), np.ones(n), np.array([0.01, 0.25, 0.49, 0.5, 0.99, 1]))
    assert found == pytest.approx([toc[0], toc[0], toc[0], toc[1], toc[2], toc[3]])
    assert toc[3] == 0.0


@given(st.integers(0, 10**6))
def test_a_weight_counts_as_so_many_rows_at_the_ends_of_rows(seed):
    rng = np.random.default_rng(seed)
    scores, times = rng.normal(size=8), rng.integers(1, 4, 8)
    priorities = rng.permutation(8).astype(float)
    order = np.argsort(-priorities)
    share, toc = targeting_curve(scores[order], times[order].astype(float))
    many = oracle.toc_values(np.repeat(scores, times), np.repeat(priorities, times))
    # Copies of a row are tied, so that only the value after the last of them is the same.
    ends = np.cumsum(times[order])
    np.testing.assert_allclose(toc, np.array(many)[ends - 1], atol=1e-12)
    np.testing.assert_allclose(share, ends / times.sum(), atol=1e-12)


def test_a_constant_ranking_finds_nobody():
    scores = np.random.default_rng(0).normal(size=50)
    for metric in ("autoc", "qini"):
        assert rank_average(scores, np.zeros(50), np.ones(50), metric) == pytest.approx(
            0.0, abs=1e-14
        )


def test_half_samples_keep_clusters_together():
    unit = np.repeat(np.arange(9, dtype=np.int32), [1, 2, 3, 4, 5, 1, 2, 3, 4])
    samples = half_samples(unit, seed=3)
    assert len(samples) == REPEATS
    inside = np.array([[sample[unit == u].mean() for u in range(9)] for sample in samples])
    assert set(np.unique(inside)) == {0.0, 1.0}
    assert (inside.sum(axis=1) == 4).all()
    assert inside.mean(axis=0) == pytest.approx(4 / 9, abs=0.15)
    again = half_samples(unit, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip(samples, again, strict=True))
