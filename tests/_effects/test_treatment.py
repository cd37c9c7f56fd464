"""Arms of rows and known propensities: what is read, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from cqrf import censored
from cqrf._effects.methods import read_arm
from cqrf._effects.treatment import (
    FEWEST_ROWS,
    OverlapWarning,
    check_arms,
    read_propensity,
    read_treatment,
    warn_of_other_arm,
    warn_of_overlap,
)
from cqrf._input.target import read_target

ARM = np.array([0, 1, 1, 0, 1])


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (ARM, (0, 1)),
        (ARM == 1, (False, True)),
        (ARM * 0.5 + 1.0, (1.0, 1.5)),
        (np.where(ARM == 1, "drug", "control"), ("control", "drug")),
        (np.where(ARM == 1, "drug", "control").astype(object), ("control", "drug")),
        (pd.Series(np.where(ARM == 1, "drug", "control"), dtype="category"), ("control", "drug")),
        (pd.Series(ARM, dtype="Int64"), (0, 1)),
        (ARM.tolist(), (0, 1)),
    ],
)
def test_two_values_of_any_kind_are_arms(values, levels):
    read = read_treatment(values, None, 5)
    assert read.levels == levels
    assert read.treated == 1
    assert read.arm.tolist() == (ARM == 1).tolist()


def test_arm_zero_is_that_of_the_first_row_whichever_is_the_treatment():
    named = np.where(ARM == 1, "a", "b")
    by_alphabet, chosen = read_treatment(named, None, 5), read_treatment(named, "b", 5)
    assert by_alphabet.arm.tolist() == chosen.arm.tolist() == (ARM == 1).tolist()
    assert (by_alphabet.levels, by_alphabet.treated) == (("a", "b"), 0)
    assert (chosen.levels, chosen.treated) == (("b", "a"), 1)


@pytest.mark.parametrize(
    ("values", "control", "message"),
    [
        ([0, 1, 1, 0], None, r"treatment has shape \(4,\); expected \(5,\), one value for each"),
        (np.ones((5, 1)), None, r"treatment has shape \(5, 1\); expected \(5,\)"),
        ([0, 1, None, 0, 1], None, r"treatment is missing in row 2 \(the first row is 0\): drop"),
        ([0.0, np.nan, 1, 0, 1], None, r"treatment is missing in row 1"),
        (pd.array([0, 1, 1, pd.NA, 0], dtype="Int64"), None, r"treatment is missing in row 3"),
        ([1, 1, 1, 1, 1], None, r"two values; found 1: 1\. There is nothing to compare"),
        ([0, 1, 2, 0, 1], None, r"two values; found 3: 0, 1, 2\. For several arms, fit one forest"),
        (list("abcde"), None, r"found 5: 'a', 'b', 'c', 'd', 'e'\. For several"),
        (ARM, 2, r"control=2 must be one of 0 and 1"),
        (ARM, "placebo", r"control='placebo' must be one of 0 and 1"),
    ],
)
def test_other_treatments_are_refused(values, control, message):
    with pytest.raises(ValueError, match=message):
        read_treatment(values, control, 5)


def test_many_values_are_not_all_listed():
    with pytest.raises(ValueError, match=r"found 9: 0, 1, 2, 3, 4 \.\.\.\. For several arms"):
        read_treatment(np.arange(9), None, 9)


def make_arms(n_control, n_treated, event=True):
    treatment = read_treatment(
        ["old"] * n_control + ["new"] * n_treated, "old", n_control + n_treated
    )
    n = n_control + n_treated
    return treatment, read_target(censored(np.arange(1.0, n + 1), np.broadcast_to(event, n)))


def test_each_arm_needs_rows_and_events_of_positive_weight():
    treatment, target = make_arms(FEWEST_ROWS, FEWEST_ROWS)
    n = 2 * FEWEST_ROWS
    check_arms(treatment, target, np.full(n, True))
    has_weight = np.arange(n) != n - 1
    with pytest.raises(ValueError, match=r"treatment: the arm 'new' has 19 rows; each arm needs"):
        check_arms(treatment, target, has_weight)
    with pytest.raises(ValueError, match=r"treatment: the arm 'old' has 19 rows; each arm needs"):
        check_arms(treatment, target, np.arange(n) != 0)
    treatment, target = make_arms(30, 30, np.arange(60) >= 30)
    message = r"treatment: no event was observed in the 30 rows of the arm 'old', so that"
    with pytest.raises(ValueError, match=message):
        check_arms(treatment, target, np.full(60, True))


def test_a_known_propensity_is_that_of_the_treatment():
    treatment = read_treatment(ARM, None, 5)
    assert read_propensity(None, treatment) is None
    assert read_propensity(0.3, treatment).tolist() == [0.3] * 5
    each = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert read_propensity(each, treatment).tolist() == each
    # Of arm 1, which is the control here.
    turned = read_treatment(ARM, 1, 5)
    assert read_propensity(0.25, turned).tolist() == [0.75] * 5


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        ([0.5] * 4, r"propensity has shape \(4,\); expected one number, or one for each of the 5"),
        (0.0, r"propensity is 0; it must lie strictly between 0 and 1, as a row that could"),
        (1, r"propensity is 1; it must lie strictly between 0 and 1"),
        ([0.5, 0.5, 1.0, 0.5, 0], r"propensity is 1 in row 2 \(the first row is 0\); it must lie"),
        ("half", r"propensity must be numbers; found"),
    ],
)
def test_other_propensities_are_refused(propensity, message):
    with pytest.raises(ValueError, match=message):
        read_propensity(propensity, read_treatment(ARM, None, 5))


def test_propensities_near_zero_or_one_are_warned_of():
    warn_of_overlap(np.array([0.05, 0.5, 0.95]))
    with pytest.warns(OverlapWarning, match=r"1 of 2 rows has a propensity below 0.05"):
        warn_of_overlap(np.array([0.04, 0.5]))
    message = r"2 of 4 rows have a propensity below 0.05 or above 0.95 \(from 0.040 to 0.980\)"
    with pytest.warns(OverlapWarning, match=message):
        warn_of_overlap(np.array([0.04, 0.5, 0.98, 0.6]))


def test_an_arm_has_a_number_or_a_name():
    names = ("placebo", "drug")
    for treated in (0, 1):
        for arm in (1, "drug", np.int64(1)):
            assert read_arm(arm, names, treated) == treated
        for arm in (0, "placebo"):
            assert read_arm(arm, names, treated) == 1 - treated
    # Names that are numbers: 0 and 1 are the control and the treatment all the same.
    assert read_arm(1, (1, 2), 1) == 1
    assert read_arm(2, (1, 2), 1) == 1
    assert read_arm(True, (False, True), 1) == 1
    for arm in ("new", 2, None, True):
        with pytest.raises(
            ValueError, match=r"must be 0 for the control 'placebo', 1 for the treat"
        ):
            read_arm(arm, names, 1)


def test_the_order_of_an_ordered_categorical_says_which_arm_is_the_control():
    values, order = ["placebo", "drug", "placebo", "drug"], ["placebo", "drug"]
    for ordered, levels in ((True, ("placebo", "drug")), (False, ("drug", "placebo"))):
        stated = pd.Categorical(values, categories=order, ordered=ordered)
        for treatment in (stated, pd.Series(stated)):
            assert read_treatment(treatment, None, 4).levels == levels
    three = pd.Categorical(values, categories=["none", "placebo", "drug"], ordered=True)
    assert read_treatment(three, None, 4).levels == ("placebo", "drug")
    assert read_treatment(three, "drug", 4).levels == ("drug", "placebo")


def warn_of(of_treatment, is_treated, groups=None, weight=None, control="old"):
    """Call warn_of_other_arm with these probabilities of "new"."""
    treatment = read_treatment(np.where(is_treated, "new", "old"), control, len(is_treated))
    known = read_propensity(of_treatment, treatment)
    unit = np.arange(len(is_treated)) if groups is None else groups
    unit = unit if weight is None else np.where(weight, unit, -1)
    warn_of_other_arm(known, treatment, unit.astype(np.int32))


def test_known_propensities_of_the_other_arm_are_warned_of():
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.2, 0.8, 400)
    is_treated = rng.uniform(size=400) < probability
    message = r"propensity is 0.4\d+ on average in the arm 'new', lower than in the arm 'old', "
    with pytest.warns(UserWarning, match=message + r"where it is 0.5\d+: chance does not explain"):
        warn_of(1.0 - probability, is_treated)
    with pytest.warns(
        UserWarning, match=r"must be the probability of the treatment, which is 'old"
    ):
        warn_of(probability, is_treated, control="new")
    mostly = rng.uniform(size=400) < 0.7
    message = r"propensity is 0.3 on average, but 69.5% of the rows are in the arm 'new': chance"
    with pytest.warns(UserWarning, match=message):
        warn_of(0.3, mostly)


def test_known_propensities_of_the_treatment_are_not_doubted():
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.2, 0.8, 400)
    is_treated = rng.uniform(size=400) < probability
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of(probability, is_treated)
        warn_of(1.0 - probability, is_treated, control="new")
        warn_of(0.5, np.arange(400) % 2 == 0)
        # Groups that were assigned as a whole: 3 of 12 are not far from a half.
        group = np.arange(400) % 12
        warn_of(0.5, group < 3, groups=group)
        # Rows without weight do not count.
        inside = np.arange(400) < 200
        warn_of(0.5, np.where(inside, np.arange(400) % 2 == 0, True), weight=inside)
    with pytest.warns(UserWarning, match="chance does not explain"):
        warn_of(0.5, group < 3)


@pytest.mark.parametrize(("values", "where"), [(np.nan, ""), ([0.5, 0.5, np.nan, 0.5, 0.5], " in")])
def test_a_missing_propensity_is_called_missing(values, where):
    with pytest.raises(ValueError, match=f"propensity is missing{where}.*leave propensity out"):
        read_propensity(values, read_treatment(ARM, None, 5))
