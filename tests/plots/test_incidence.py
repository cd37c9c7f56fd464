"""Pictures of several causes: areas that add up to 1, and curves of one cause."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection

from cqrf import CensoredQuantileForest, censored
from cqrf.plots import plot_incidence


@pytest.fixture(scope="module")
def grown():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    time = rng.exponential(5 + 5 * X[:, 0])
    status = np.array(["", "death", "re$lapse"])[rng.integers(0, 3, 150)]
    y = censored(np.minimum(time, 12), np.where(time < 12, status, ""), censored="")
    forest = CensoredQuantileForest(n_estimators=20, random_state=0, time_unit="weeks")
    return forest.fit(X, y), X


def read_steps(area):
    """Top and bottom of an area just after each of its times: {time: (low, high)}."""
    vertices = area.get_paths()[0].vertices
    found = {}
    for time, height in vertices:
        found.setdefault(round(float(time), 9), []).append(float(height))
    return {time: (min(heights), max(heights)) for time, heights in found.items()}


def test_areas_of_all_causes_and_of_no_event_fill_the_axis(grown):
    forest, X = grown
    ax = plot_incidence(forest, X[:1])
    areas = [each for each in ax.collections if isinstance(each, PolyCollection)]
    assert len(areas) == 3
    curves = forest.predict_incidence(X[:1])
    end = curves.survival.end[0]
    assert np.isfinite(end)
    assert max(read_steps(areas[0])) == pytest.approx(end)
    low = 0.0
    for area, values in zip(areas, [*curves([end])[0, :, 0], curves.survival([end])[0, 0]]):
        steps = read_steps(area)[round(float(end), 9)]
        assert steps == pytest.approx((low, low + values))
        low += values
    assert low == pytest.approx(1)


def test_labels_name_causes_with_their_share_at_the_end(grown):
    forest, X = grown
    ax = plot_incidence(forest, X[:1])
    shares = forest.predict_incidence(X[:1], [forest.predict_incidence(X[:1]).survival.end[0]])
    death, relapse = shares[0, :, 0]
    texts = [text.get_text() for text in ax.texts]
    expected = [f"death {death:.0%}", f"re\\$lapse {relapse:.0%}"]
    assert texts == [*expected, f"no event {1 - death - relapse:.0%}"]
    assert ax.get_xlabel() == "time (weeks)"
    plt.gcf().canvas.draw()


def test_labels_do_not_overlap(grown):
    forest, X = grown
    for row in range(4):
        ax = plot_incidence(forest, X[[row]])
        figure = ax.figure
        figure.canvas.draw()
        boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
        assert all(one.y1 <= two.y0 + 1 for one, two in pairwise(boxes))
        assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_curves_of_one_cause_end_where_they_are_known(grown):
    forest, X = grown
    ax = plot_incidence(forest, X[:3], cause="death", labels=["a", "b", "c"], scale=2)
    curves = forest.predict_incidence(X[:3], cause="death")
    lines = {line.get_label(): line for line in ax.lines}
    for i, label in enumerate("abc"):
        times, heights = lines[label].get_data()
        assert times[-1] == pytest.approx(curves.end[i] / 2)
        assert heights[-1] == pytest.approx(curves[i].values[-1])
        assert heights[0] == 0
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    assert ax.get_ylabel() == "cumulative incidence of death"


def test_what_cannot_be_drawn_is_said(grown):
    forest, X = grown
    with pytest.raises(ValueError, match="all causes of one row; X has 2"):
        plot_incidence(forest, X[:2])
    with pytest.raises(ValueError, match="up to 6 rows; X has 7"):
        plot_incidence(forest, X[:7], cause="death")
    with pytest.raises(ValueError, match="labels has 1 texts for 2 causes"):
        plot_incidence(forest, X[:1], labels=["x"])
    with pytest.raises(ValueError, match="no cause of this forest"):
        plot_incidence(forest, X[:1], cause=1)
    plain = CensoredQuantileForest(n_estimators=5, random_state=0)
    plain.fit(X, censored(np.ones(150), np.ones(150)))
    with pytest.raises(ValueError, match="knows one kind of event"):
        plot_incidence(plain, X[:1])


def test_causes_that_are_numbers_are_called_causes(grown):
    _, X = grown
    rng = np.random.default_rng(1)
    y = censored(rng.exponential(size=150), rng.integers(0, 3, 150))
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, y)
    ax = plot_incidence(forest, X[:1])
    names = [each.get_text().rsplit(" ", 1)[0] for each in ax.texts]
    assert names == ["cause 1", "cause 2", "no event"]
    assert plot_incidence(forest, X[:1], cause=2).get_ylabel() == "cumulative incidence of cause 2"
