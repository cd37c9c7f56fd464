"""Effects after the follow-up of an arm: what is negligible, and what becomes of the rest."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from cqrf import BeyondFollowUpWarning, censored
from cqrf._effects.follow_up import NEGLIGIBLE, _warn_of_unknown, survival_at_ends
from cqrf._effects.predict import residual_responses
from cqrf._effects.targets import RestrictedMeans, SurvivalProbabilities
from support.treated import fit_small, make_data, make_forest

METHODS = {
    "effect": lambda forest, X, **at: forest.effect(X, **at),
    "effect_interval": lambda forest, X, **at: forest.effect_interval(X, **at),
    "effect_oob": lambda forest, X, **at: forest.effect_oob(**at),
    "scores": lambda forest, X, **at: forest.scores(**at),
    "ate": lambda forest, X, **at: forest.ate(**at).estimate,
    "projection": lambda forest, X, **at: forest.best_linear_projection(**at).coefficient,
    "rate": lambda forest, X, **at: forest.rate(**at).estimate,
    "toc": lambda forest, X, **at: forest.toc(**at).estimate,
}


@pytest.fixture(scope="module")
def data():
    return make_data()


def fit_cut(data, end, arm=0):
    """A forest whose rows of one arm are followed up to a time only."""
    time, event = data.y["time"].copy(), data.y["event"].copy()
    late = (data.treatment == arm) & (time > end)
    time[late], event[late] = end, False
    return make_forest().fit(data.X, censored(time, event), data.treatment)


@pytest.fixture(scope="module")
def short(data):
    """A forest whose controls are followed up to .8, where many are left."""
    return fit_cut(data, 0.8)


@pytest.fixture(scope="module")
def whole():
    """Whole times; the last control is censored at 6, with a few events there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 3))
    w = rng.integers(0, 2, 400)
    time = 1.0 + rng.binomial(5, 0.3 + 0.2 * X[:, 0])
    event = rng.uniform(size=400) < 0.9
    last = np.flatnonzero((w == 0) & (time == 6.0))
    if len(last) == 0:
        last = np.flatnonzero(w == 0)[:1]
    time[last[0]], event[last[0]] = 6.0, False
    treated_last = np.flatnonzero(w == 1)[0]
    time[treated_last], event[treated_last] = 9.0, True
    return X, make_forest().fit(X, censored(time, event), w)


@pytest.mark.parametrize("method", METHODS)
def test_restrict_takes_the_last_time_of_both_arms_for_the_horizon(data, short, method):
    call = METHODS[method]
    restricted = call(short, data.X[:5], horizon=1.5, beyond="restrict")
    assert np.array_equal(restricted, call(short, data.X[:5], horizon=0.8))
    early = call(short, data.X[:5], horizon=0.5, beyond="restrict")
    assert np.array_equal(early, call(short, data.X[:5], horizon=0.5))


@pytest.mark.parametrize("method", METHODS)
def test_extend_draws_the_curves_on(data, short, method):
    call = METHODS[method]
    extended = call(short, data.X[:5], horizon=1.5, beyond="extend")
    assert np.isfinite(extended).all()
    with pytest.warns(BeyondFollowUpWarning, match="beyond='restrict' gives the mean up to"):
        assert np.isnan(call(short, data.X[:5], horizon=1.5)).all()


def test_extend_of_survival_is_the_value_of_the_arm_at_its_end(data, short):
    # Responses of the short arm stay as they are after its end; those of the other arm do not.
    response, arm = short.model_.nuisances.response, short.model_.nuisances.arm
    short_arm = int(np.argmin(short.model_.ends))
    at_end, later = response.at(np.array([0.8, 1.5])).T
    assert np.array_equal(at_end[arm == short_arm], later[arm == short_arm])
    assert not np.array_equal(at_end[arm != short_arm], later[arm != short_arm])
    values = short.effect(data.X[:5], "survival", times=[0.8, 1.5], beyond="extend")
    assert np.isfinite(values).all()


def test_other_words_are_refused(data, short):
    with pytest.raises(ValueError, match=r"beyond='zero' is unknown; choose one of nan, extend, r"):
        short.ate(horizon=0.5, beyond="zero")
    with pytest.raises(ValueError, match=r"beyond='restrict' is unknown; choose one of nan, ext"):
        short.effect(data.X[:2], "survival", times=0.5, beyond="restrict")
    for call in (short.ate, lambda *a, **k: short.effect(data.X[:2], *a, **k)):
        with pytest.raises(ValueError, match=r'beyond=.extend. does not go with target="quantile"'):
            call("quantile", beyond="extend")


def test_whole_times_count_up_to_the_next_one(whole):
    X, forest = whole
    model = forest.model_
    control = 1 - model.treated
    assert model.ends[control] == 6.0
    assert model.mean_ends[control] == 7.0
    assert np.isfinite(forest.effect(X[:3], horizon=7)).all()
    # Nothing happens to the control between 6 and 7: the mean gains its survival at 6.
    gained = forest.ate(horizon=7).estimate - forest.ate(horizon=6).estimate
    at_six = forest.ate("survival", times=6.0).estimate
    assert gained == pytest.approx(at_six, abs=1e-12)
    assert not (model.forests.pooled.rows.time % 1).any()


def test_times_that_are_not_whole_end_at_the_last_one(short):
    assert np.array_equal(short.model_.mean_ends, short.model_.ends)


def test_a_negligible_rest_is_taken_by_half_and_extends_the_interval(data, short):
    model = short.model_
    number = int(np.argmin(model.ends))
    left = survival_at_ends(model, None, None)
    assert (left[1 - number] == 0).all() or np.isfinite(model.ends[1 - number])
    share = left[number].mean()
    assert share > 0.05
    horizon = 0.8 + 0.5 * NEGLIGIBLE * 0.8 / share
    half = share * (horizon - 0.8) / 2
    with pytest.warns(BeyondFollowUpWarning, match=rf"not known after 0.8, where {share:.2%} are"):
        middle = short.ate(horizon=horizon)
    flat = short.ate(horizon=horizon, beyond="extend")
    # The flat line gives all of the rest to the control; the middle gives half of it.
    assert middle.estimate > flat.estimate
    assert middle.estimate - flat.estimate == pytest.approx(half, rel=0.25)
    reach = 1.959963984540054 * middle.standard_error
    assert middle.upper - middle.estimate - reach == pytest.approx(half, rel=1e-9)
    assert middle.estimate - middle.lower - reach == pytest.approx(half, rel=1e-9)
    with pytest.warns(BeyondFollowUpWarning):
        ends = short.effect_interval(data.X, horizon=horizon)
    with pytest.warns(BeyondFollowUpWarning):
        narrow = short.effect_interval(data.X, horizon=horizon, confidence=1e-12)
    added = (narrow[:, 1] - narrow[:, 0]) / 2
    assert added == pytest.approx(left[number] * (horizon - 0.8) / 2, abs=1e-9)
    assert np.isfinite(ends).all()
    beyond = 0.8 + 1.5 * NEGLIGIBLE * 0.8 / share
    with pytest.warns(BeyondFollowUpWarning, match="NaN"):
        assert np.isnan(short.ate(horizon=beyond).estimate)


def test_survival_is_known_where_hardly_anyone_is_left():
    rng = np.random.default_rng(1)
    X, w = rng.uniform(size=(600, 2)), np.arange(600) % 2
    time = np.minimum(rng.exponential(size=600), 4.0)
    event = np.full(600, True)
    last = np.flatnonzero(w == 0)[np.argmax(time[w == 0])]
    event[last] = False
    forest = make_forest().fit(X, censored(time, event), w)
    end = time[last]
    left = survival_at_ends(forest.model_, None, None).mean(axis=1)
    assert 0 < left.max() <= NEGLIGIBLE
    with pytest.warns(BeyondFollowUpWarning, match="changes by at most"):
        found = forest.ate("survival", times=[1.0, end + 1.0])
    assert np.isfinite(found.estimate).all()
    reach = 1.959963984540054 * found.standard_error
    half = (found.upper - found.lower) / 2 - reach
    assert half == pytest.approx([0.0, left.max() / 2], abs=1e-12)


def test_swapping_the_arms_turns_the_sign_of_a_negligible_rest(data):
    one = fit_cut(data, 0.8)
    swapped_time, swapped_event = one.model_.forests.pooled.training_target[:2]
    other = make_forest().fit(data.X, censored(swapped_time, swapped_event), 1 - data.treatment)
    for at in ({"horizon": 0.805}, {"horizon": 1.5, "beyond": "extend"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BeyondFollowUpWarning)
            first, second = one.effect(data.X[:9], **at), other.effect(data.X[:9], **at)
        assert np.isfinite(first).all()
        assert np.array_equal(first, -second)


def test_effects_of_type3_are_known_up_to_their_horizon():
    found = 0
    for seed in range(30):
        data = make_data(200, "type3", seed)
        time = np.minimum(data.y["time"], 15.0)
        event = data.y["event"] | (data.y["time"] >= 15.0)
        ends = [(time[data.treatment == a].max()) for a in (0, 1)]
        last = [event[(data.treatment == a) & (time == end)].all() for a, end in enumerate(ends)]
        if all(last) or min(ends) != 14.0:
            continue
        forest = fit_small(data, forest=make_forest(20)).fit(
            data.X, censored(time, event), data.treatment
        )
        assert np.isfinite(forest.effect(data.X[:4], horizon=15)).all()
        found += 1
        if found == 2:
            return
    raise AssertionError("no such data")


@pytest.mark.parametrize(
    ("of_mean", "ends", "message"),
    [
        (True, [53.0, 53.0], r"up to 53 only, the whole number after the last time of its"),
        (False, [52.0, 52.0], r"up to 52 only, the last time of its"),
    ],
)
def test_the_end_of_a_mean_of_whole_numbers_is_no_training_time(of_mean, ends, message):
    model = SimpleNamespace(ends=np.array([52.0, 52.0]))
    with pytest.warns(BeyondFollowUpWarning, match=message):
        _warn_of_unknown(model, np.array(ends), np.array([400.0]), of_mean, 2)


@pytest.fixture(scope="module")
def falling():
    """A forest with censoring whose last row is an event in both arms, at 3 and 4."""
    data = make_data(kind="confounded")
    time, event = np.minimum(data.y["time"], 2.5), data.y["event"].copy()
    for arm in (0, 1):
        first = np.flatnonzero(data.treatment == arm)[0]
        time[first], event[first] = 3.0 + arm, True
    return make_forest().fit(data.X, censored(time, event), data.treatment)


def test_the_curve_of_an_arm_is_zero_from_its_last_event_on(falling):
    X = make_data(kind="confounded").X[:20]
    assert sorted(falling.model_.falls.tolist()) == [3.0, 4.0]
    assert falling.model_.ends.tolist() == [np.inf, np.inf]
    for arm in (0, 1):
        curves = falling.predict_survival(X, [2.9 + arm, 3.0 + arm, 50.0], arm=arm)
        assert (curves[:, 0] > 0).any()
        assert (curves[:, 1:] == 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_after_the_last_event_of_both_arms_nothing_is_gained(falling, method):
    call, X = METHODS[method], make_data(kind="confounded").X[:20]
    at_end = call(falling, X, horizon=4.0)
    assert np.abs(at_end).max() > 0
    assert np.array_equal(call(falling, X, horizon=4e5), at_end)
    for time in (4.0, 4e5):
        assert np.all(call(falling, X, target="survival", times=time) == 0)
    assert np.any(call(falling, X, target="survival", times=3.9) != 0)


def test_after_the_last_event_of_one_arm_the_other_one_gains(falling):
    model = falling.model_
    first = int(np.argmin(model.falls))
    rows = model.nuisances.arm == bool(first)
    response, pooled = model.nuisances.response, model.nuisances.pooled
    mean = residual_responses(model, RestrictedMeans(3.5))[:, 0] + model.grid.means(pooled, 3.5)
    assert mean[rows] == pytest.approx(response.means(3.0)[rows], abs=1e-12)
    assert mean[~rows] == pytest.approx(response.means(3.5)[~rows], abs=1e-12)
    times = np.array([2.0, 3.5])
    target = SurvivalProbabilities(times, False)
    values = residual_responses(model, target) + target.of_curves(model.nuisances, pooled)
    assert values[:, 0] == pytest.approx(response.at(times)[:, 0], abs=1e-12)
    assert np.abs(values[rows, 1]).max() < 1e-12
    assert values[~rows, 1] == pytest.approx(response.at(times)[~rows, 1], abs=1e-12)
