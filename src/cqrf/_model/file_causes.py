"""Competing risks in a model file: the names of the causes, and the cause of each row."""

from __future__ import annotations

import numpy as np

from cqrf._model.file_sections import Contents, check_lengths, invalid


def check_causes(contents: Contents) -> None:
    """Check the causes of the events: each row with an event has one, and each cause has a row."""
    names, cause = contents.header["causes"], contents.sections["cause"]
    if not names:
        check_lengths(contents.sections, {"cause": 0})
        return
    check_lengths(contents.sections, {"cause": contents.n_rows})
    is_right = np.array_equal(cause > 0, contents.sections["event"].astype(bool))
    if not is_right or (cause > len(names)).any() or contents.header["censoring"] == "left":
        raise invalid("cause")
    if contents.header["root_share"] is not None:
        raise invalid("root_share")
