"""Features: which matter, and how quantiles move along those that matter most."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import CATEGORY, DATE, DURATION
from cqrf.report.numbers import plain, plain_list, say_share
from cqrf.report.subject import LEVELS, Subject

MOST_BARS = 15
N_PANELS = 4
SECOND = {DATE: np.timedelta64(1, "s"), DURATION: np.timedelta64(1, "s")}


def describe_importance(subject: Subject) -> dict[str, Any]:
    """Facts of the section on which features matter."""
    shares = subject.forest.feature_importances_
    order = np.argsort(-shares, kind="stable")
    if not shares.any():
        return {"text": ["No tree has found a split: no feature matters."], "bars": []}
    bars = [
        {"name": subject.names[i], "share": plain(shares[i]), "said": say_share(shares[i])}
        for i in order[:MOST_BARS]
    ]
    rest = order[MOST_BARS:]
    if len(rest):
        share = float(shares[rest].sum())
        name = "the one other" if len(rest) == 1 else f"the {len(rest):,} others together"
        bars.append({"name": name, "share": plain(share), "said": say_share(share), "rest": True})
    text = [
        "Share of each feature in the gain of all splits of all trees. It says what the forest "
        "looked at, not what causes what; a feature of many levels or values can look like more "
        "than it is."
    ]
    return {"text": text, "bars": bars}


def describe_dependence(subject: Subject) -> dict[str, Any]:
    """Facts of the section on how quantiles move along features."""
    shares = subject.forest.feature_importances_
    order = [int(i) for i in np.argsort(-shares, kind="stable")[:N_PANELS] if shares[i] > 0]
    panels = [panel for panel in (trace(subject, column) for column in order) if panel]
    text = [
        "The quantile if every row had the same value of one feature and kept its others: "
        "what the forest has learnt, averaged over rows."
        if panels
        else "There is no feature to move along."
    ]
    return {"text": text, "panels": panels}


def trace(subject: Subject, column: int) -> dict[str, Any] | None:
    """Quantiles along one feature; None if it has no values in this table."""
    from cqrf.inspection import partial_dependence

    if np.isnan(np.asarray(subject.matrix[:, column], dtype=np.float64)).all():
        return None
    with warnings.catch_warnings():  # of unknown levels the first reading has warned
        warnings.simplefilter("ignore")
        found = partial_dependence(subject.forest, subject.X, column, LEVELS)
    kind = subject.model.columns.kinds[column]
    return {
        "name": subject.names[column],
        "kind": kind,
        "grid": show_grid(found.grid, kind),
        "values": [plain_list(values) for values in found.values.T],
    }


def show_grid(grid: NDArray[Any], kind: str) -> list[Any]:
    """Values of a feature: labels, or numbers; dates and durations in seconds."""
    if kind == CATEGORY:
        return [str(label) for label in grid]
    if kind in SECOND:
        zero = np.datetime64(0, "s") if kind == DATE else np.timedelta64(0, "s")
        return plain_list((grid - zero) / SECOND[kind], 10)
    return plain_list(grid, 5)
