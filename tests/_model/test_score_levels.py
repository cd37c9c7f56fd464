"""Follow-up, and the levels at which quantiles are scored, against plain loops."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored, solve_quantiles, tune
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate, list_labels
from cqrf.metrics import censored_quantile_loss, make_scorer
from cqrf.metrics.metric import choose_levels


def fit(y, X=None, **settings):
    weight = settings.pop("sample_weight", None)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) if X is None else X
    forest = CensoredQuantileForest(n_estimators=20, random_state=0, **settings)
    return forest.fit(X, y, sample_weight=weight)


def cut(n=300, end=1.0, seed=0):
    """Exponential times, censored at the end of the study."""
    time = np.random.default_rng(seed).exponential(size=n)
    return censored(np.minimum(time, end), time <= end)


def follow_up_by_loops(time, entry, weight):
    at_risk = {}
    for t in set(time[weight > 0]):
        at_risk[t] = sum(w for y, e, w in zip(time, entry, weight, strict=True) if y >= t and e < t)
    enough = 0.1 * max(at_risk.values()) - 1e-9
    return max(t for t, total in at_risk.items() if total >= enough)


def known_share_by_loops(time, event, entry, weight, end):
    survival = 1.0
    for t in sorted(set(time[event & (time <= end)])):
        at_risk = weight[(time >= t) & (entry < t)].sum()
        if at_risk > 0:
            survival *= 1 - weight[(time == t) & event].sum() / at_risk
    return 1 - survival


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_follow_up_and_levels_are_those_of_a_plain_loop(seed, late, weighted):
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.exponential(8, 80))  # with ties
    event = rng.random(80) < rng.uniform(0.2, 0.9)
    entry = np.where(rng.random(80) < 0.5, -np.inf, rng.uniform(-5, 1, 80) + time - 1)
    weight = rng.integers(0, 4, 80).astype(float) if weighted else np.ones(80)
    y = censored(time, event, entry if late else None)
    model = fit(y, sample_weight=weight if weighted else None).model_
    start = entry if late else np.full(80, -np.inf)
    end = follow_up_by_loops(time, start, weight)
    assert model.follow_up == end
    share = known_share_by_loops(time, event, start, weight, end)
    factors = [f for f in (1, 0.8, 0.6, 0.4, 0.2) if 0.75 * f <= share]
    expected = np.array([0.25, 0.5, 0.75]) * max(factors, default=0.1)
    np.testing.assert_allclose(model.score_levels, expected)


def test_nothing_changes_without_censoring():
    model = fit(cut(end=np.inf)).model_
    assert model.score_levels == (0.25, 0.5, 0.75)
    assert list(list_labels()) == list(list_labels(model.score_levels))


def test_levels_are_mirrored_under_left_censoring():
    y = cut(end=0.5)  # 1 - exp(-.5) = .39
    right = fit(y).model_
    left = fit(censored(-y["time"], y["event"]), censoring="left").model_
    assert right.score_levels == (0.1, 0.2, 0.3)
    assert left.score_levels == (0.7, 0.8, 0.9)
    assert left.follow_up == -right.follow_up == -0.5


@pytest.mark.parametrize(
    ("share", "levels"),
    [
        (1.0, (0.25, 0.5, 0.75)),
        (0.75, (0.25, 0.5, 0.75)),
        (0.74, (0.2, 0.4, 0.6)),
        (0.31, (0.1, 0.2, 0.3)),
        (0.29, (0.05, 0.1, 0.15)),
        (0.001, (0.025, 0.05, 0.075)),
    ],
)
def test_levels_are_round(share, levels):
    assert choose_levels(share, "right") == levels
    mirrored = [round(1 - level, 3) for level in levels[::-1]]
    assert list(choose_levels(share, "left")) == mirrored


def test_scores_use_these_levels():
    """Score, out-of-bag score, scorers, evaluate and tune; explicit levels stay possible."""
    X, y, _, _ = make_aft(300, random_state=0)
    end = np.quantile(y["time"], 0.6)
    y = censored(np.minimum(y["time"], end), y["event"] & (y["time"] <= end))
    forest = fit(y, X)
    levels = forest.model_.score_levels
    assert levels[2] < 0.75
    predicted = forest.predict(X, levels, unidentified="clip")
    losses = censored_quantile_loss(y, y, predicted, levels)
    marginal = solve_quantiles(
        np.ones((1, 300)), y["time"], y["event"], levels, unidentified="clip"
    )
    of_all = censored_quantile_loss(y, y, np.repeat(marginal, 300, axis=0), levels)
    assert forest.score(X, y) == pytest.approx(1 - losses.mean() / of_all.mean())
    found = evaluate(forest, X, y)
    assert [found[f"loss_{level}"] for level in levels] == pytest.approx(losses)
    assert list(found) == list(list_labels(levels))
    assert evaluate(forest)["skill"] == forest.score_oob()
    assert make_scorer("quantile_loss")(forest, X, y) == pytest.approx(-losses.mean())
    at_half = forest.predict(X, [0.5], unidentified="clip")
    explicit = make_scorer("quantile_loss", quantiles=[0.5])(forest, X, y)
    assert explicit == pytest.approx(-censored_quantile_loss(y, y, at_half, [0.5])[0])
    tuned = tune(forest, X, y, n_trials=2, random_state=0)
    assert tuned.trials[0]["skill"] == pytest.approx(forest.score_oob())
