"""Sampling units: rows or groups, and rows that are never drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._input.units import (
    NO_UNIT,
    Units,
    are_unit_codes,
    code_undrawn,
    find_clusters,
    list_by_appearance,
    number_units,
    read_groups,
)


def test_without_groups_every_row_with_weight_is_a_unit():
    units = number_units(np.array([True, False, True, True]), None)
    assert units.of_row.tolist() == [0, NO_UNIT, 1, 2]
    assert units.of_row.dtype == np.int32
    assert (units.n_units, units.noun) == (3, "rows")


def test_groups_are_numbered_by_first_appearance():
    units = number_units(np.full(5, True), ["b", "a", "b", "c", "a"])
    assert units.of_row.tolist() == [0, 1, 0, 2, 1]
    assert (units.n_units, units.noun) == (3, "groups")


def test_a_row_without_weight_belongs_to_its_group_but_is_never_drawn():
    has_weight = np.array([False, True, False, True, False])
    units = number_units(has_weight, ["x", "b", "b", "a", "a"])
    assert units.of_row[has_weight].tolist() == [0, 1]
    assert (units.of_row[~has_weight] < 0).all()
    # No row of group x has weight: it is no unit.
    assert find_clusters(units.of_row).tolist() == [NO_UNIT, 0, 0, 1, 1]
    assert units.n_units == 2


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30).filter(
        lambda rows: any(weighted for _, weighted in rows)
    )
)
def test_units_equal_loops_whatever_the_groups_are_called(rows):
    has_weight = np.array([weighted for _, weighted in rows])
    unit_of = {}
    for group, weighted in rows:
        if weighted:
            unit_of.setdefault(group, len(unit_of))
    expected = [unit_of.get(group, NO_UNIT) for group, _ in rows]
    for names in ("zyxwv", ["1", "2", "3", "4", "5"], [9.5, -1.0, 3.0, 2.0, 7.0]):
        units = number_units(has_weight, [names[group] for group, _ in rows])
        assert find_clusters(units.of_row).tolist() == expected
        assert ((units.of_row >= 0) == has_weight).all()
        assert units.n_units == len(unit_of)
        assert are_unit_codes(units.of_row, units.n_units)


def test_codes_of_undrawn_rows_are_negative_and_read_back():
    units = np.array([NO_UNIT, 0, 1, 5, 2**31 - 3], dtype=np.int32)
    codes = code_undrawn(units).astype(np.int32)
    assert (codes < 0).all()
    assert find_clusters(codes).tolist() == units.tolist()
    assert find_clusters(units).tolist() == units.tolist()


@pytest.mark.parametrize(
    ("codes", "n_units", "valid"),
    [
        ([], 3, True),
        ([0, 1, 2], 3, True),
        ([0, 1, 3], 3, False),
        ([0, -1, -2, -3, -4], 3, True),  # -4 is an undrawn row of unit 2
        ([0, -5], 3, False),
    ],
)
def test_codes_name_units_that_there_are(codes, n_units, valid):
    assert are_unit_codes(np.array(codes, dtype=np.int32), n_units) is valid


def test_units_of_some_rows_keep_their_number():
    units = Units(np.array([4, 0, 2], dtype=np.int32), 5, "groups")
    taken = units.take(np.array([2, 0]))
    assert taken.of_row.tolist() == [2, 4]
    assert (taken.n_units, taken.noun) == (5, "groups")


def test_a_list_by_appearance_has_first_rows_and_numbers():
    first, number = list_by_appearance(np.array(["c", "a", "c", "b", "a"]))
    assert first.tolist() == [0, 1, 3]
    assert number.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups has shape \(2,\); expected \(3,\)"),
        ([[1, 2, 3]], r"groups has shape \(1, 3\); expected \(3,\)"),
        ([1.0, np.nan, 2.0], "groups contains None or NaN"),
        (np.array(["a", None, "b"], dtype=object), "groups contains None or NaN"),
    ],
)
def test_every_row_has_a_group(groups, message):
    with pytest.raises(ValueError, match=message):
        read_groups(groups, 3)
