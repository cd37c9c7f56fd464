"""Numbers: rounded for JSON, formatted for readers."""

import math

import pytest

from cqrf._views.numbers import format_count, format_number, format_percent, round_number


@pytest.mark.parametrize(
    ("value", "kept", "said"),
    [
        (0.0, 0, "0"),
        (1234.56, 1235, "1,235"),
        (98765.4, 98765, "98,765"),
        (0.0123456, 0.01235, "0.01235"),
        (-2.5, -2.5, "−2.5"),
        (1e-7, 1e-7, "1e−07"),
        (math.nan, None, "unknown"),
        (-math.inf, None, "unknown"),
    ],
)
def test_numbers_keep_four_digits(value, kept, said):
    assert round_number(value) == kept
    assert format_number(value) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0"), (0.0004, "under 0.1"), (0.012, "1.2"), (0.615, "62"), (0.985, "98.5"), (1, "100")],
)
def test_shares_are_percentages(share, said):
    assert format_percent(share) == f"{said}\u00a0%"


def test_a_count_has_its_noun():
    assert format_count(1, "row") == "1 row"
    assert format_count(1234, "row") == "1,234 rows"
    assert format_count(2, "leaf", "leaves") == "2 leaves"
