"""Step curves: where they are known, what remains after a time survived, and how they look."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter, NelsonAalenFitter
from numpy.testing import assert_allclose, assert_array_equal

from cqrf import StepCurve, StepCurves
from cqrf._forest.weights import Weights
from cqrf._survival.curves import RankedTarget, step_curves
from cqrf._survival.step_curves import BeyondFollowUpWarning, warn_beyond

NAN = float("nan")


def curves_of(time, event, weights, censoring="right"):
    """Curves of rows in time order, one per row of weights; the zeros are left out."""
    weights = np.asarray(weights, dtype=float)
    ranks = [np.flatnonzero(row) for row in weights]
    made = Weights(
        np.concatenate([[0], np.cumsum([len(row) for row in ranks])]),
        np.concatenate(ranks).astype(np.int32),
        np.concatenate([w[r] for w, r in zip(weights, ranks, strict=True)]),
    )
    target = RankedTarget(np.asarray(time, dtype=float), np.asarray(event, dtype=bool))
    return step_curves(made, target, censoring=censoring)


def test_a_curve_is_known_up_to_the_last_row_with_weight_unless_it_reaches_0():
    time, event = [1, 2, 3, 4, 5], [1, 0, 1, 0, 1]
    curves = curves_of(time, event, [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [1, 0, 0, 0, 1]])
    assert curves.end.tolist() == [4.0, np.inf, np.inf]
    assert np.isneginf(curves.start).all()
    assert_array_equal(np.isnan(curves([4.0, 4.5, 99.0])[0]), [False, True, True])
    assert curves([99.0])[1:].ravel().tolist() == [0.0, 0.0]
    assert curves(99.0, beyond="extend")[0] == curves(4.0)[0]
    assert curves[0](4.5, beyond="extend") == curves[0](4.0)
    assert np.isnan(curves[0](4.5))
    assert curves[0].domain == (-np.inf, 4.0)


def test_a_left_censored_curve_is_known_from_the_first_row_on():
    # Times negated and ascending, as the forest holds them.
    curves = curves_of([-5, -4, -3], [1, 1, 0], [[1, 1, 1], [1, 1, 0]], censoring="left")
    assert curves.start.tolist() == [3.0, -np.inf]
    assert np.isposinf(curves.end).all()
    assert np.isnan(curves([2.9])[0, 0])
    assert not np.isnan(curves([3.0, 99.0])).any()
    assert curves([-99.0])[1, 0] == 1.0


def test_the_tail_is_that_of_r_survfit_without_extend():
    """summary(survfit(..), times=, extend=FALSE) has rows up to the last time, inclusive."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.integers(1, 40, 60)).astype(float)
    event = rng.random(60) < 0.5
    order = np.lexsort((~event, time))
    time, event = time[order], event[order]
    event[-1] = False
    curve = curves_of(time, event, np.ones((1, 60)))[0]
    fitted = KaplanMeierFitter().fit(time, event)
    at = np.arange(0.0, 60.0)
    expected = fitted.survival_function_at_times(at).to_numpy()
    inside = at <= time[-1]
    assert_allclose(curve(at[inside]), expected[inside], rtol=1e-12)
    assert np.isnan(curve(at[~inside])).all()
    assert_allclose(curve(at, beyond="extend"), expected, rtol=1e-12)


def test_the_remaining_time_is_the_curve_divided_by_its_value_at_the_time_survived():
    curves = curves_of([1, 2, 3, 4], [1, 1, 1, 0], np.ones((3, 4)))
    rest = curves.given([0.5, 2.0, 2.5])
    assert rest[0].times.tolist() == [0.5, 1.5, 2.5]
    assert_allclose(rest([0.0, 1.0, 2.0]), [[1, 0.75, 0.5], [1, 0.5, 0.5], [1, 0.5, NAN]])
    assert_allclose(rest.end, [3.5, 2.0, 1.5])
    assert_allclose(curves.given(0.0)([1.0, 2.5]), curves([1.0, 2.5]))


def test_nothing_is_known_of_rows_that_outlive_all_or_are_all_dead():
    curves = curves_of([1, 2, 3], [1, 1, 0], [[1, 1, 1], [1, 1, 0]])
    rest = curves.given(3.5)
    assert np.isnan(rest([-1.0, 0.0, 1.0])).all()
    assert np.isnan(rest.restricted_mean(1.0)).all()
    assert np.isnan(rest.restricted_mean(1.0, beyond="restrict")).all()


def test_the_first_time_at_most_a_value_is_found_for_one_value_or_several():
    curves = StepCurves(
        offsets=np.array([0, 2, 3]),
        times=np.array([1.0, 3.0, 2.0]),
        values=np.array([0.6, 0.2, 0.5]),
        initial=np.ones(2),
    )
    found = curves.first_at_most([[1.0, 0.6, 0.3, 0.1], [0.9, 0.5, 0.4, 1.0]])
    assert found.tolist() == [[-np.inf, 1, 3, np.inf], [2, 2, np.inf, -np.inf]]
    assert curves.first_at_most([0.3, 0.5]).tolist() == [3, 2]
    assert curves.first_at_most(0.5).tolist() == [3, 2]


def test_a_mean_beyond_the_end_is_nan_restricted_or_extended():
    curves = curves_of([1, 2, 4], [1, 1, 0], [[1, 1, 1], [1, 1, 0]])
    assert_allclose(curves.restricted_mean(4.0), [(1 + 2 + 4) / 3, 1.5])
    assert_allclose(curves.restricted_mean(10.0), [NAN, 1.5])
    assert_allclose(curves.restricted_mean(10.0, beyond="restrict"), [(1 + 2 + 4) / 3, 1.5])
    assert_allclose(curves.restricted_mean(10.0, beyond="extend"), [(1 + 2 + 10) / 3, 1.5])
    with pytest.raises(ValueError, match="beyond='no'"):
        curves.restricted_mean(10.0, beyond="no")
    with pytest.raises(ValueError, match="beyond='restrict'"):
        curves([10.0], beyond="restrict")


def test_the_cumulative_hazard_is_nelson_aalens():
    time, event = np.array([1.0, 2, 2, 3, 5, 6]), np.array([1, 1, 1, 0, 1, 1], dtype=bool)
    curves = curves_of(time, event, np.ones((2, 6)))
    fitted = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(time, event)
    at = [0.5, 1.0, 2.0, 4.0, 5.0, 6.0]
    expected = fitted.cumulative_hazard_at_times(at).to_numpy()
    assert_allclose(curves.cumulative_hazard()(at), [expected, expected], rtol=1e-12)


def test_curves_are_printed_in_a_line_and_drawn_in_a_notebook():
    curves = curves_of([1, 2, 4], [1, 1, 0], np.ones((20, 3)))
    assert repr(curves) == "StepCurves(20 curves, known up to 4)"
    assert repr(curves[0]) == "StepCurve(2 steps, known up to 4)"
    html = curves._repr_html_()
    page = ElementTree.fromstring(html.replace("<br>", "<br/>"))
    assert len(page.findall(".//path[@stroke-width]")) == 12
    assert [text.text for text in page.iter("text")] == ["1", "0", "0", "4"]  # ends of the axes
    assert "The first 12 are drawn" in html
    assert "nan" not in html
    nothing = StepCurves(np.zeros(1, np.int64), np.empty(0), np.empty(0), np.empty(0))
    assert repr(nothing) == "StepCurves(0 curves, known at all times)"
    assert "<svg" in nothing._repr_html_()


def test_a_frame_has_a_row_per_step_or_a_column_per_time():
    curves = curves_of([1, 2, 4], [1, 1, 0], np.ones((2, 3)))
    object.__setattr__(curves, "index", pd.Index(["a", "b"]))
    frame = curves.to_frame()
    assert frame.columns.tolist() == ["row", "time", "value"]
    assert frame["row"].tolist() == ["a", "a", "b", "b"]
    assert frame["time"].tolist() == [1.0, 2.0, 1.0, 2.0]
    at = curves.to_frame([1.5, 9.0])
    assert at.index.tolist() == ["a", "b"]
    assert_allclose(at[1.5], 2 / 3)
    assert at[9.0].isna().all()


@pytest.mark.parametrize("taken", [slice(1, 3), slice(None, None, -1), slice(0, 0), slice(2)])
def test_a_slice_of_curves_is_these_curves(taken):
    weights = [[1, 1, 1, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]
    curves = curves_of([1, 2, 3, 4, 5], [1, 0, 1, 0, 1], weights)
    object.__setattr__(curves, "index", pd.Index(["a", "b", "c"]))
    found, wanted = curves[taken], list(curves)[taken]
    assert len(found) == len(wanted)
    assert list(found.index) == ["a", "b", "c"][taken]
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one.times, other.times)
        assert_array_equal(one.values, other.values)
        assert (one.initial, one.domain) == (other.initial, other.domain)


def test_a_step_curve_made_by_hand_is_known_everywhere():
    curve = StepCurve(times=[1.0], values=[0.5])
    assert curve([-1e9, 1e9]).tolist() == [1.0, 0.5]


def test_a_curve_that_begins_at_a_value_has_had_it_for_ever():
    """As under left censoring, where a curve may begin below 1."""
    curves = StepCurves(
        np.array([0, 2, 4]),
        np.array([1.0, 2.0, 1.0, 2.0]),
        np.array([0.3, 0.1, 0.8, 0.2]),
        np.array([0.4, 1.0]),
        np.full(2, -np.inf),
        np.full(2, np.inf),
    )
    found = curves.first_at_most(np.array([[0.5, 0.4, 0.35, 0.1, 0.05], [0.5, 1.0, 0.8, 0.2, 0.0]]))
    inf = np.inf
    assert found.tolist() == [[-inf, -inf, 1.0, 2.0, inf], [2.0, -inf, 1.0, 2.0, inf]]


@pytest.mark.parametrize(
    ("of_mean", "said", "unsaid"),
    [
        (False, "not known at some of these times", "beyond='restrict'"),
        (True, "not known up to this horizon.* beyond='restrict' gives the mean", "these times"),
    ],
)
def test_the_warning_says_what_is_not_known_and_where_it_is(of_mean, said, unsaid):
    start, end = np.array([-np.inf, -np.inf]), np.array([2.0, 5.0])
    with pytest.warns(BeyondFollowUpWarning, match=said) as caught:
        warn_beyond(start, end, of_mean=of_mean)
    text = str(caught[0].message)
    assert unsaid not in text
    assert "it is known up to 2 to 5." in text
    assert "known from" not in text
    with pytest.warns(BeyondFollowUpWarning) as caught:
        warn_beyond(-end, -start, of_mean=of_mean)
    assert "it is known from -5 to -2." in str(caught[0].message)
    with pytest.warns(BeyondFollowUpWarning) as caught:
        warn_beyond(start, -start, of_mean=of_mean)
    assert "it is known" not in str(caught[0].message)
