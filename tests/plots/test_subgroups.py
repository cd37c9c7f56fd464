"""The forest plot shows average effects, and writes them as they are."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf.plots import plot_subgroups
from cqrf.plots.effect_labels import count_decimals, write_interval, write_number
from support.effect_plots import MINUS, read_numbers


@pytest.mark.parametrize("target", [{"horizon": 1.0}, {"target": "survival", "times": 1.0}])
def test_subgroups_have_their_averages_and_all_rows_are_below(forest, data, target):
    low = data.X[:, 0] < 0.3
    subgroups = {"low": low, "high": np.flatnonzero(~low)}
    _, own = plt.subplots()
    more = {"population": "treated", "confidence": 0.9}
    ax = plot_subgroups(forest, subgroups, scale=2.0, ax=own, **more, **target)
    assert ax is own
    divisor = 2.0 if "horizon" in target else 1.0
    found = [
        forest.ate(subset=rows, **more, **target)
        for rows in (subgroups["low"], subgroups["high"], None)
    ]
    squares, diamond = [each for each in ax.collections if len(each.get_offsets()) < 3][-2:]
    marks = np.concatenate([squares.get_offsets(), diamond.get_offsets()])
    np.testing.assert_allclose(marks[:, 0], [each.estimate / divisor for each in found])
    assert (np.diff(marks[:, 1]) > 0).all()
    assert ax.yaxis_inverted()
    bars = max(ax.collections, key=lambda each: len(each.get_paths()))
    ends = [segment[:, 0] for segment in bars.get_segments()]
    np.testing.assert_allclose(
        ends, [[each.lower / divisor, each.upper / divisor] for each in found]
    )
    areas = np.concatenate([squares.get_sizes(), diamond.get_sizes()])
    treated = data.treatment == 1
    shares = [low[treated].mean(), 1 - low[treated].mean(), 1]
    np.testing.assert_allclose(areas / areas[-1], shares)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [
        "subgroup (rows)",
        f"low ({(low & treated).sum()})",
        f"high ({(~low & treated).sum()})",
        f"all ({treated.sum()})",
    ]
    (numbers,) = ax.child_axes
    texts = [text.get_text() for text in numbers.get_yticklabels()]
    assert texts[0] == "effect (90 % interval)"
    for text, each in zip(texts[1:], found, strict=True):
        shown = read_numbers(text)
        expected = np.array([each.estimate, each.lower, each.upper]) / divisor
        np.testing.assert_allclose(shown, expected, atol=each.standard_error / divisor / 10)


def test_subgroups_must_be_named(forest):
    for wrong in ([np.arange(100)], {}):
        with pytest.raises(ValueError, match="subgroups must be a mapping of names to masks"):
            plot_subgroups(forest, wrong)


def test_a_subgroup_of_one_arm_is_named_in_the_error(forest, data):
    treated = np.asarray(data.treatment) == 1
    with pytest.raises(ValueError, match=r"subgroup 'treated': subset has \d+ rows .* nothing to"):
        plot_subgroups(forest, {"treated": treated}, horizon=1.0)
    with pytest.raises(ValueError, match=r"^population='some' is unknown"):
        plot_subgroups(forest, {"treated": treated}, population="some")


def test_numbers_have_two_digits_of_the_smallest_error():
    decimals = count_decimals(np.array([0.25, 0.034, np.nan, 0.0]))
    assert decimals == 3
    assert count_decimals(np.array([120.0])) == 0
    assert count_decimals(np.array([np.nan])) == 2
    assert (
        write_interval(np.array([-0.12345, -1.0, 0.5]), 3)
        == f"{MINUS}0.123 ({MINUS}1.000 to 0.500)"
    )
    assert write_interval(np.array([-0.0001, -0.0002, 0.1]), 2) == "0.00 (0.00 to 0.10)"
    assert write_interval(np.array([np.inf, np.nan, np.nan]), 2) == "not identified"
    assert [write_number(each) for each in (10.0534, 3650.0, 12345.6)] == [
        "10.05",
        "3650",
        "12,346",
    ]
