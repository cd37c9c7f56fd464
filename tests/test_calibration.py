"""Calibration: against plain loops and lifelines, and right where the truth is known."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from lifelines import KaplanMeierFitter
from scipy.stats import chi2

from cqrf import CensoredQuantileForest, StepCurves, censored
from cqrf._calibration.uniformity import LEVELS, estimate_share_below, join_bins, transform
from cqrf._input.target import Target
from cqrf.calibration import assess_calibration, compare
from cqrf.datasets import make_aft

GRID = np.linspace(0.002, 12, 3000)


def exponential_curves(scale, last=None):
    """True curves of exponential times, one for each scale."""
    grid = GRID if last is None else GRID[last >= GRID]
    values = np.exp(-grid / np.asarray(scale)[:, np.newaxis])
    if last is None:
        values[:, -1] = 0.0
    n = len(values)
    offsets = np.arange(n + 1) * len(grid)
    return StepCurves(offsets, np.tile(grid, n), values.ravel(), np.ones(n))


def simulate(rng, n, rate=0.5):
    scale = rng.uniform(0.5, 2.0, n)
    latent = scale * rng.exponential(size=n)
    c = rng.exponential(1 / rate, n)
    return scale, Target(np.minimum(latent, c), latent <= c)


def test_the_share_below_is_lifelines_kaplan_meier_of_the_transform():
    rng = np.random.default_rng(0)
    u, event = rng.uniform(size=200), rng.uniform(size=200) < 0.7
    below, lower, upper, _ = estimate_share_below(Target(u, event), np.ones(200), 0.9)
    theirs = KaplanMeierFitter(alpha=0.1).fit(u, event)
    seen = ~np.isnan(below)
    np.testing.assert_allclose(below[seen], 1 - theirs.predict(LEVELS[seen]), atol=1e-12)
    band = theirs.confidence_interval_survival_function_
    for ours, name in ((lower, "KM_estimate_upper_0.9"), (upper, "KM_estimate_lower_0.9")):
        column = band[name].to_numpy()
        at = np.searchsorted(band.index.to_numpy(), LEVELS[seen], side="right") - 1
        np.testing.assert_allclose(ours[seen], 1 - column[at], atol=1e-10)


def test_rows_that_enter_late_are_at_risk_after_their_entry_only():
    rng = np.random.default_rng(0)
    u = rng.uniform(size=200)
    entry = u * rng.uniform(size=200)
    event = rng.uniform(size=200) < 0.7
    below = estimate_share_below(Target(u, event, entry), np.ones(200), 0.95).below
    theirs = KaplanMeierFitter().fit(u, event, entry=entry)
    seen = ~np.isnan(below)
    np.testing.assert_allclose(below[seen], 1 - theirs.predict(LEVELS[seen]), atol=1e-10)


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    u, event = rng.uniform(size=60).round(2), rng.uniform(size=60) < 0.7
    copies = rng.integers(1, 4, 60)
    options = {"from_left": False, "confidence": 0.95, "n_bins": 5}
    weighted = compare(Target(u, event), copies.astype(float), **options)
    repeated = Target(np.repeat(u, copies), np.repeat(event, copies))
    plain = compare(repeated, np.ones(copies.sum()), **options)
    np.testing.assert_allclose(weighted.observed, plain.observed, atol=1e-12)
    np.testing.assert_allclose(weighted.events, plain.events, atol=1e-9)
    np.testing.assert_allclose(weighted.expected, plain.expected, atol=1e-9)
    assert weighted.known_to == plain.known_to
    assert weighted.distance == pytest.approx(plain.distance)
    assert weighted.p_value == pytest.approx(plain.p_value)


def simulate_levels(rng, n, censoring):
    """U of a calibrated forest, with U censored in one of several ways."""
    u = rng.uniform(size=n)
    c = {
        "none": np.full(n, 2.0),
        "end of study": np.full(n, 0.3),
        "end of study, by row": rng.uniform(0.05, 0.5, n),
        "random": rng.uniform(size=n),
        "heavy": 1 - rng.uniform(size=n) ** (1 / 3),  # three quarters
    }[censoring]
    return Target(np.minimum(u, c), u <= c)


CENSORINGS = ["none", "end of study", "end of study, by row", "random", "heavy"]
OPTIONS = {"from_left": False, "confidence": 0.95, "n_bins": 10}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("censoring", ["none", "random", "heavy"])
def test_events_and_expected_events_equal_loops(censoring, late):
    rng = np.random.default_rng(0)
    target = simulate_levels(rng, 150, censoring)
    entry = target.time * rng.choice([0, 0, 0.5, 0.9], 150) if late else None
    weight = rng.integers(1, 3, 150).astype(float)
    found = compare(target._replace(entry=entry), weight, **OPTIONS)
    start = np.zeros(150) if entry is None else entry
    events, expected = np.zeros(len(found.events)), np.zeros(len(found.events))
    for u, had_event, v, w in zip(target.time, target.event, start, weight, strict=True):
        for k, (a, b) in enumerate(zip(found.edges[:-1], found.edges[1:], strict=True)):
            low, high = max(a, v), min(b, u)
            if low < high:  # at risk in the bin
                expected[k] += w * np.log((1 - low) / (1 - high))
            events[k] += w * (had_event and a <= u < b)
    np.testing.assert_allclose(found.events, events, atol=1e-9)
    np.testing.assert_allclose(found.expected, expected, atol=1e-9)
    assert found.expected.min() >= 5
    assert found.edges[-1] == found.known_to
    statistic = (3 * (events - expected) ** 2 / (2 * expected + events)).sum()
    assert found.p_value == pytest.approx(chi2.sf(statistic, len(events)))


@pytest.mark.parametrize(
    ("expected", "edges"),
    [
        ([5.0, 5.0, 5.0], [0.0, 0.1, 0.2, 0.3]),
        ([4.5, 0.5, 5.0], [0.0, 0.2, 0.3]),
        ([5.0, 5.0, 4.5], [0.0, 0.1, 0.3]),  # what remains joins the last
        ([1.0, 1.0, 1.0], [0.0, 0.3]),
    ],
)
def test_bins_are_joined_until_five_events_are_expected(expected, edges):
    bins = np.array([0.0, 0.1, 0.2, 0.3])
    found = join_bins(bins, np.array([1.0, 2.0, 4.0]), np.array(expected))
    assert found[0].tolist() == edges
    inside = [(bins[:-1] >= a) & (bins[:-1] < b) for a, b in pairwise(edges)]
    assert found[1].tolist() == [np.array([1.0, 2.0, 4.0])[each].sum() for each in inside]
    assert found[2].tolist() == [np.array(expected)[each].sum() for each in inside]


def test_behind_an_estimate_of_0_no_row_tells_anything():
    """The only row at risk has its event at .2; the others enter later."""
    target = Target(np.array([0.2, 0.9, 0.9]), np.full(3, True), np.array([0.0, 0.5, 0.5]))
    found = estimate_share_below(target, np.ones(3), 0.95)
    assert found.n_rows.tolist() == [1.0] * 20 + [0.0] * 79
    assert (found.below[19:] == 1).all()


def test_few_rows_at_risk_judge_nothing():
    """Rows in [.3, 1] are few: what they show is drawn, but not judged."""
    rng = np.random.default_rng(0)
    u = rng.uniform(size=200)
    c = np.where(np.arange(200) < 6, 2.0, 0.3)
    target = Target(np.minimum(u, c), u <= c)
    found = compare(target, np.ones(200), **OPTIONS)
    assert found.known_to == 0.3
    assert found.known_from == 0
    assert np.isfinite(found.observed[60])
    judged = found.levels <= 0.3
    expected = np.abs(found.observed - found.levels)[judged].mean()
    assert found.distance == pytest.approx(expected)
    assert found.edges.tolist() == pytest.approx([0, 0.1, 0.2, 0.3])
    # The six rows move their events: neither distance nor p-value notices.
    moved = np.where(target.time > 0.3, 0.9 + target.time / 100, target.time)
    other = compare(target._replace(time=moved), np.ones(200), **OPTIONS)
    assert not np.array_equal(other.observed, found.observed)
    assert (other.distance, other.p_value) == (found.distance, found.p_value)


def test_rows_at_risk_by_loops():
    """Rows at risk over the survival before: lifelines' Kaplan-Meier, and a count."""
    target = simulate_levels(np.random.default_rng(0), 300, "heavy")
    found = estimate_share_below(target, np.ones(300), 0.95).n_rows
    theirs = KaplanMeierFitter().fit(target.time, target.event)
    for k in range(0, 60, 7):
        level = LEVELS[k]
        before = theirs.predict(np.nextafter(level, 0))
        assert found[k] == pytest.approx((target.time >= level).sum() / before)
    last = np.flatnonzero(found >= 30)[-1]
    assert compare(target, np.ones(300), **OPTIONS).known_to == LEVELS[last]


@pytest.mark.parametrize("hundredths", [1, 18, 30, 57, 99])
def test_the_largest_level_is_known_and_the_next_one_is_not(hundredths):
    """Rows are censored at a level that is tested: of 50 events before it, half of the rows."""
    largest = hundredths / 100
    u = np.concatenate([np.linspace(0, largest, 50, endpoint=False), np.full(50, largest)])
    target = Target(u, np.arange(100) < 50)
    share = estimate_share_below(target, np.ones(100), 0.95)
    for values in (share.below, share.lower, share.upper):
        assert np.isfinite(values[:hundredths]).all()
        assert np.isnan(values[hundredths:]).all()
    assert share.below[hundredths - 1] == pytest.approx(0.5)
    ended = Target(u, np.full(100, True))  # the curve falls to 0: known to the end
    assert estimate_share_below(ended, np.ones(100), 0.95).below[hundredths - 1 :] == pytest.approx(
        1
    )


@pytest.mark.parametrize("hundredths", range(1, 100))
def test_levels_at_both_ends_are_judged_from_either_side(hundredths):
    largest = hundredths / 100
    rng = np.random.default_rng(hundredths)
    latent = rng.uniform(size=400)
    target = Target(np.minimum(latent, largest), latent < largest)
    right = compare(target, np.ones(400), **OPTIONS)
    left = compare(target, np.ones(400), **OPTIONS | {"from_left": True})
    last = right.known_to
    assert right.is_known.tolist() == (last >= LEVELS).tolist()
    assert left.is_known.tolist() == right.is_known[::-1].tolist()
    assert (left.known_from, left.known_to) == (pytest.approx(1 - last), 1.0)
    judged = np.abs(right.observed - LEVELS)[right.is_known & ~np.isnan(right.observed)]
    assert right.distance == pytest.approx(judged.mean())
    assert left.distance == pytest.approx(right.distance)
    # From the left U stands for 1 - U: a share below a level is the share above its mirror image.
    for found, mirrored in (
        (left.observed, right.observed),
        (left.lower, right.upper),
        (left.upper, right.lower),
        (left.edges, right.edges),
    ):
        np.testing.assert_allclose(found, 1 - mirrored[::-1], atol=1e-12)
    assert left.events.tolist() == right.events[::-1].tolist()
    assert left.expected.tolist() == right.expected[::-1].tolist()
    seen = ~np.isnan(left.observed)
    assert (left.lower <= left.observed + 1e-12)[seen].all()
    assert (left.observed <= left.upper + 1e-12)[seen].all()


@pytest.mark.parametrize("n", [1, 5, 40, 200])
def test_without_censoring_every_level_is_judged(n):
    u = np.random.default_rng(n).uniform(size=n)
    found = compare(Target(u, np.full(n, True)), np.ones(n), **OPTIONS)
    assert found.known_to == 0.99
    shares = (u <= LEVELS[:, np.newaxis]).mean(axis=1)
    assert found.distance == pytest.approx(np.abs(shares - LEVELS).mean())


@pytest.mark.slow
@pytest.mark.parametrize("censoring", CENSORINGS)
@pytest.mark.parametrize("n", [60, 200])
def test_calibrated_levels_are_rejected_as_often_as_the_test_says(n, censoring):
    """5 % of 2000 tests, up to three standard errors; and one that is wrong more often."""
    rng = np.random.default_rng(0)
    draws = [simulate_levels(rng, n, censoring) for _ in range(2000)]
    p_values = [compare(target, np.ones(n), **OPTIONS).p_value for target in draws]
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    early = [target._replace(time=target.time**1.5) for target in draws[:200]]
    wrong = [compare(target, np.ones(n), **OPTIONS).p_value for target in early]
    assert np.mean(np.array(wrong) < 0.05) > (0.15 if n == 60 else 0.6)


def test_the_result_prints_in_one_line_and_as_a_picture():
    rng = np.random.default_rng(0)
    found = compare(simulate_levels(rng, 200, "end of study"), np.ones(200), **OPTIONS)
    text = repr(found)
    assert text.startswith(f"Calibration(distance={found.distance:.3f} at levels 0.01 to 0.3, p=")
    assert text.endswith(", 200 rows)")
    page = ElementTree.fromstring(found._repr_html_())
    svg = "{http://www.w3.org/2000/svg}"
    assert page.find("figcaption").text == text
    pale, solid = (line.get("points").split() for line in page.iter(f"{svg}polyline"))
    assert (len(pale), len(solid)) == (30, 30)
    place = [f"{180 * x:.1f},{180 - 180 * y:.1f}" for x, y in zip(LEVELS, found.observed)]
    assert pale == solid == place[:30]
    picture = page.find(f"{svg}svg")
    assert [picture.get(name) for name in ("width", "height")] == ["182", "182"]
    assert picture.get("viewBox") == "-1 -1 182 182"  # the frame of 180, and a line around it
    hidden = compare(Target(np.full(9, 0.004), np.full(9, False)), np.ones(9), **OPTIONS)
    assert repr(hidden) == "Calibration(9 rows: too many are censored to judge any level)"
    ElementTree.fromstring(hidden._repr_html_())
    assert np.isnan([hidden.distance, hidden.p_value, hidden.known_from, hidden.known_to]).all()


def same_steps(n, times, values):
    offsets = np.arange(n + 1) * len(times)
    return StepCurves(offsets, np.tile(times, n), np.tile(values, n), np.ones(n))


def test_at_a_step_levels_are_drawn_between_its_ends():
    """S falls from .8 to .3 at 2; a censored row has had the step, from the left it has not."""
    curves = same_steps(400, [1.0, 2.0, 3.0], [0.8, 0.3, 0.0])
    event = np.arange(400) < 300
    for censoring, ends, at_censoring in (("right", (0.2, 0.7), 0.7), ("left", (0.3, 0.8), 0.8)):
        moved = transform(curves, Target(np.full(400, 2.0), event), censoring)
        np.testing.assert_array_equal(moved.event, event)
        drawn = moved.time[event]
        assert (drawn.min(), drawn.max()) == pytest.approx(ends, abs=0.01)
        assert drawn.mean() == pytest.approx(sum(ends) / 2, abs=0.03)
        assert moved.time[~event] == pytest.approx(at_censoring)


def test_an_event_at_the_last_step_or_behind_a_curve_that_ends_at_0_stays_one():
    time, event = np.array([2.0, 2.5]), np.array([True, True])
    open_end, ended = (same_steps(2, [1.0, 2.0], [0.5, last]) for last in (0.25, 0.0))
    assert transform(open_end, Target(time, event)).event.tolist() == [True, False]
    assert transform(ended, Target(time, event)).event.tolist() == [True, True]
    first = Target(np.array([1.0, 0.5]), event)
    assert transform(ended, first, "left").event.tolist() == [True, True]
    begins = StepCurves(np.array([0, 1, 2]), np.ones(2), np.zeros(2), np.full(2, 0.5))
    assert transform(begins, first, "left").event.tolist() == [True, False]


def test_an_event_beyond_the_end_of_a_curve_is_censored_there():
    curves = exponential_curves([1.0, 1.0, 1.0], last=2.0)
    target = Target(np.array([1.0, 2.5, 3.0]), np.array([True, True, False]))
    moved = transform(curves, target)
    assert moved.event.tolist() == [True, False, False]
    assert moved.time[1] == moved.time[2] == pytest.approx(1 - np.exp(-2.0), abs=1e-2)


def test_true_curves_are_calibrated_and_wrong_ones_are_not():
    """Rejected no more often than the test's level; the band holds the diagonal."""
    rejected, inside, far = 0, [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scale, target = simulate(rng, 200)
        options = {"from_left": False, "confidence": 0.95, "n_bins": 10}
        right = compare(transform(exponential_curves(scale), target), np.ones(200), **options)
        wrong = compare(transform(exponential_curves(2.0 * scale), target), np.ones(200), **options)
        rejected += right.p_value < 0.05
        at = slice(19, 80, 20)
        inside.append((right.lower[at] <= LEVELS[at]) & (LEVELS[at] <= right.upper[at]))
        far.append(wrong.p_value < 0.05 and wrong.distance > 2 * right.distance)
    assert rejected <= 7
    assert np.mean(inside) == pytest.approx(0.95, abs=0.035)
    assert np.mean(far) > 0.95


def test_true_curves_of_rows_that_enter_late_are_calibrated():
    rejected, wrong = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scale, entry = rng.uniform(0.5, 2.0, 2000), rng.uniform(0, 1.5, 2000)
        latent, c = scale * rng.exponential(size=2000), entry + rng.exponential(2.0, 2000)
        there = np.flatnonzero(latent > entry)[:300]
        time = np.minimum(latent, c)[there]
        target = Target(time, (latent <= c)[there], entry[there])
        options = {"from_left": False, "confidence": 0.95, "n_bins": 10}
        curves = exponential_curves(scale[there])
        rejected += compare(transform(curves, target), np.ones(300), **options).p_value < 0.05
        curves = exponential_curves(2.0 * scale[there])
        wrong += compare(transform(curves, target), np.ones(300), **options).p_value < 0.05
    assert rejected <= 7
    assert wrong > 55


def test_where_all_neighbours_are_censored_nothing_is_known_of_an_event():
    empty = StepCurves(np.zeros(3, np.int64), np.empty(0), np.empty(0), np.ones(2))
    moved = transform(empty, Target(np.array([1.0, 2.0]), np.array([True, False])))
    assert moved.time.tolist() == [0.0, 0.0]
    assert not moved.event.any()
    half = np.repeat([0.0, 1.0], 100)
    y = censored(np.random.default_rng(0).uniform(1, 2, 200), half > 0)
    forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(half[:, np.newaxis], y)
    assert assess_calibration(forest).n_rows == pytest.approx(200)
    forest.set_params(working_model=None).fit(half[:, np.newaxis], y)
    assert (np.diff(forest.predict_survival_oob().offsets) == 0).sum() >= 50
    assert assess_calibration(forest).n_rows == pytest.approx(200)


def test_out_of_bag_a_forest_is_calibrated_in_bag_it_is_not():
    data = make_aft(600, 5, random_state=0)
    forest = CensoredQuantileForest(
        n_estimators=100, random_state=0, honest=False, min_samples_leaf=1, min_samples_split=2
    ).fit(data.X, data.y)
    honest = CensoredQuantileForest(n_estimators=100, random_state=0).fit(data.X, data.y)
    assert assess_calibration(honest).distance < 0.03
    assert assess_calibration(honest).p_value > 0.01
    in_bag = assess_calibration(forest, data.X, data.y)
    assert in_bag.distance > 2 * assess_calibration(honest).distance
    fresh = make_aft(600, 5, random_state=1)
    assert assess_calibration(honest, fresh.X, fresh.y).distance < 0.05


def die(rng, n, n_faces, censoring):
    """Throws of a die, seen up to (from, under left censoring) an independent throw."""
    latent = rng.integers(1, n_faces + 1, n).astype(float)
    c = rng.integers(-n_faces, 2 * n_faces, n).astype(float)
    if censoring == "right":
        return censored(np.minimum(latent, np.abs(c) + 1), latent <= np.abs(c) + 1)
    return censored(np.maximum(latent, c), latent >= c)


@pytest.mark.slow
@pytest.mark.parametrize("censoring", ["right", "left"])
@pytest.mark.parametrize("n_faces", [3, 10])
def test_a_right_model_of_shared_times_is_calibrated(n_faces, censoring):
    """The curve of all rows is right for a die, whose F jumps at every face."""
    rng = np.random.default_rng(0)
    everyone = {"n_estimators": 1, "min_samples_split": 10**6, "honest": False}
    forest = CensoredQuantileForest(**everyone, max_samples=None, censoring=censoring)
    forest.fit(np.zeros((10_000, 1)), die(rng, 10_000, n_faces, censoring))
    found = [
        assess_calibration(forest, np.zeros((1000, 1)), die(rng, 1000, n_faces, censoring))
        for _ in range(20)
    ]
    assert np.mean([each.distance for each in found]) < 0.02
    assert np.mean([each.p_value < 0.05 for each in found]) < 0.2
    wrong = die(rng, 1000, n_faces, censoring)
    wrong["time"] = np.ceil(wrong["time"] / 2)
    assert assess_calibration(forest, np.zeros((1000, 1)), wrong).p_value < 1e-6


@pytest.mark.slow
def test_unequal_weights_count_as_their_effective_number():
    """Of tests at 5 % as many reject, of 95 % bands as many cover, as with equal weights."""
    rng = np.random.default_rng(0)
    everyone = {"n_estimators": 1, "min_samples_split": 10**6, "honest": False}
    forest = CensoredQuantileForest(**everyone, max_samples=None)
    forest.fit(np.zeros((5000, 1)), rng.exponential(size=5000))
    rejected, covered, n_repeats = 0, 0, 150
    for _ in range(n_repeats):
        weight = np.exp(rng.normal(size=300))
        found = assess_calibration(
            forest, np.zeros((300, 1)), rng.exponential(size=300), sample_weight=weight
        )
        assert found.n_rows == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
        rejected += found.p_value < 0.05
        covered += found.lower[49] <= 0.5 <= found.upper[49]
    assert rejected / n_repeats < 0.12
    assert 0.89 < covered / n_repeats < 0.995


def test_left_censoring_is_the_mirrored_problem():
    data, test = make_aft(300, 3, random_state=0), make_aft(300, 3, random_state=1)
    right = CensoredQuantileForest(n_estimators=50, random_state=0).fit(data.X, data.y)
    left = CensoredQuantileForest(n_estimators=50, random_state=0, censoring="left")
    left.fit(data.X, censored(-data.y["time"], data.y["event"]))
    expected = assess_calibration(right, test.X, test.y)
    found = assess_calibration(left, test.X, censored(-test.y["time"], test.y["event"]))
    seen = ~np.isnan(found.observed)
    assert found.distance == pytest.approx(expected.distance, abs=0.005)
    np.testing.assert_allclose(found.observed[seen], 1 - expected.observed[::-1][seen], atol=0.02)
    assert found.known_to == 1
    assert found.known_from == pytest.approx(1 - expected.known_to, abs=0.011)
    np.testing.assert_allclose(found.events, expected.events[::-1], atol=5)
    assert found.edges[[0, -1]].tolist() == [found.known_from, 1.0]


def test_weights_of_the_fit_and_rows_in_every_tree():
    data = make_aft(200, 3, random_state=0)
    forest = CensoredQuantileForest(n_estimators=3, random_state=0)
    weight = np.where(np.arange(200) < 20, 0.0, 1.0)
    forest.fit(data.X, data.y, weight)
    has_tree = ~np.isnan(forest.predict_oob(0.5, unidentified="clip"))
    assert has_tree.sum() < 200
    assert assess_calibration(forest).n_rows == pytest.approx((has_tree & (weight > 0)).sum())


def test_only_ratios_of_weights_matter_and_mistakes_are_named():
    data = make_aft(100, 2, random_state=0)
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(data.X, data.y)
    test = make_aft(100, 2, random_state=1)
    expected = assess_calibration(forest, test.X, test.y)
    scaled = assess_calibration(forest, test.X, test.y, sample_weight=np.full(100, 10.0))
    assert scaled.p_value == pytest.approx(expected.p_value)
    with pytest.raises(ValueError, match="must be a CensoredQuantileForest"):
        assess_calibration(object())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        assess_calibration(forest, test.X, test.y[:5])
    whole = CensoredQuantileForest(n_estimators=5, max_samples=None).fit(data.X, data.y)
    with pytest.raises(ValueError, match="none is out of bag"):
        assess_calibration(whole)
    with pytest.raises(ValueError, match="both X and y"):
        assess_calibration(forest, data.X)
    with pytest.raises(ValueError, match="out of bag, the fit's"):
        assess_calibration(forest, sample_weight=np.ones(100))
    with pytest.raises(ValueError, match="n_bins"):
        assess_calibration(forest, n_bins=1)
    with pytest.raises(ValueError, match="confidence"):
        assess_calibration(forest, confidence=2)
