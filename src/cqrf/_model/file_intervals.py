"""Interval censoring in a model file: the left end of each row."""

from __future__ import annotations

from cqrf._model.file_sections import Contents, invalid


def check_intervals(contents: Contents) -> None:
    """Check the left ends: before the right one or equal to it, and some row an interval."""
    header, sections = contents.header, contents.sections
    lower, time = sections["lower"], sections["time"]
    if not len(lower):
        return
    if len(lower) != contents.n_rows:
        raise invalid("length of lower")
    is_censored = sections["event"] == 0
    is_right = bool((lower <= time).all() and (lower[is_censored] == time[is_censored]).all())
    if not is_right or bool((lower == time).all()):
        raise invalid("lower")
    is_alone = not len(sections["entry"]) and not header["causes"]
    if not is_alone or header["censoring"] == "left":
        raise invalid("lower")
