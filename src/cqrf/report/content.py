"""Content of the page: everything that it says and draws, as JSON has it.

Each section is a dict with its sentences in ``text`` and the numbers of its charts and tables.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from cqrf._input.causes import name_cause
from cqrf._runtime.arguments import read_count
from cqrf._views.curves import SHOWN_LEVELS, marginal_curve, time_range
from cqrf._views.numbers import (
    format_count,
    format_percent,
    round_number,
    round_numbers,
)
from cqrf.estimator import CensoredQuantileForest
from cqrf.report.calibration import describe_calibration
from cqrf.report.causes import describe_cause_scores, describe_incidence
from cqrf.report.data import describe_data, describe_kinds
from cqrf.report.evaluation import describe_evaluation, describe_skill, find_skill
from cqrf.report.features import describe_dependence, describe_importance
from cqrf.report.predictions import TablePredictions, predict_table
from cqrf.report.rows import describe_rows

MOST = 0.75  # share of rows for which the level that the page shows first is identifiable
PACKAGES = ("cqrf", "numpy", "numba", "scikit-learn")


def build_content(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    *,
    title: str,
    ids: Sequence[Any] | None = None,
    source: str | None = None,
    max_rows: int = 500,
) -> dict[str, Any]:
    """Content of every section, without NaN or infinity."""
    max_rows = read_count("max_rows", max_rows, 1)
    table = predict_table(forest, X, y, max_drawn=max_rows)
    if len(table.target.time) == 0:
        raise ValueError("the table has no rows: there is nothing to report.")
    times = [table.target.time, table.train.time]
    return {
        "title": str(title),
        "source": None if source is None else str(source),
        "summary": summarise(table),
        "levels": list(SHOWN_LEVELS),
        "first_level": choose_level(table),
        "censoring": table.censoring,
        "words": {
            "time": table.words.time_title,
            "unit": table.words.unit or "",
            "event": table.words.event,
            "survival": table.words.survival_title,
        },
        "time_range": round_numbers(time_range(np.concatenate(times)), 6),
        "data": describe_data(table) | {"incidence": describe_incidence(table)},
        "evaluation": describe_evaluation(table),
        "cause_scores": describe_cause_scores(table),
        "calibration": describe_calibration(table),
        "importance": describe_importance(table),
        "dependence": describe_dependence(table),
        "rows": describe_rows(table, ids),
        "causes": [name_cause(cause) for cause in table.model.causes],
        "limits": describe_limits(table),
        "about": describe_forest(table),
    }


def choose_level(table: TablePredictions) -> int:
    """Index of the level that the page shows first.

    The level nearest the median that is identifiable for MOST of the rows, or for as many as any
    level is. Under right censoring this is the largest such level up to the median.
    """
    unidentified = table.unidentified[table.has_prediction]
    if len(unidentified) == 0:
        return SHOWN_LEVELS.index(0.5)
    share = unidentified.mean(axis=0)
    candidates = np.flatnonzero(share <= max(1 - MOST, share.min()))
    return int(candidates[np.argmin(np.abs(np.array(SHOWN_LEVELS)[candidates] - 0.5))])


def summarise(table: TablePredictions) -> str:
    """The report in two sentences."""
    target = table.target
    skill, reason = find_skill(table)
    if skill is None:
        said = reason if str(reason).startswith("cannot") else f"is {reason}"
        result = f"The forest's skill {said}."
    else:
        sentence = describe_skill(skill)
        result = f"{describe_sample(table)}, {sentence[0].lower()}{sentence[1:]}"
    if target.lower is not None:
        return f"{describe_kinds(target)}. {result}"
    n, n_events = len(target.time), int(target.event.sum())
    return (
        f"{format_count(n, 'row')} with {format_count(n_events, 'event')}; "
        f"{format_percent(1 - n_events / n)} of the times are censored, and "
        f"{describe_follow_up(table)}. {result}"
    )


def describe_sample(table: TablePredictions) -> str:
    """Whether rows are predicted out of bag, are new, or may be training rows."""
    if table.out_of_bag:
        return "Out of bag"
    if table.n_training_rows == 0:
        return "On new rows"
    return "On these rows, some of which may be training rows"


def describe_follow_up(table: TablePredictions) -> str:
    """Median follow-up by the reverse Kaplan-Meier curve, or else the median observed time."""
    target = table.target
    words = table.words
    observed = f"the median observed time is {words.format_time(float(np.median(target.time)))}"
    if table.censoring == "left" or target.event.all():
        return observed
    curve = marginal_curve(target, "right", of_censoring=True)
    below = np.flatnonzero(curve.values <= 0.5)
    if len(below) == 0:
        return observed
    return f"the median follow-up is {words.format_time(curve.times[below[0]])}"


def describe_limits(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on what is not identifiable."""
    event_times, words = table.train.time[table.train.event], table.words
    if table.censoring == "right":
        came = "is at" if table.train.lower is None else "had come by"
        last = words.format_time(event_times.max())
        text = [
            f"The last event of the training rows {came} {last}: no predicted quantile is later.",
            "For a single row the limit is often lower. If the last of its neighbours are "
            "censored, its survival curve does not reach 0, and the levels beyond its end are not "
            "identifiable. The report then says “later than” the time of the last neighbour, and "
            "gives no number.",
        ]
    else:
        text = [
            f"The first event of the training rows is at {words.format_time(event_times.min())}: "
            "no predicted quantile is earlier.",
            "For a single row the limit is often higher. If the first of its neighbours are "
            "censored, its survival curve starts below 1, and the levels below that start are not "
            "identifiable. The report then says “earlier than” the time of the first neighbour, "
            "and gives no number.",
        ]
    if table.forest.solver == "argmin":
        text.append("This forest has solver='argmin', which gives a number for these levels, too.")
    has_prediction = table.has_prediction
    n_without = len(has_prediction) - int(has_prediction.sum())
    if n_without:
        rows = format_count(n_without, "row")
        text.append(f"{rows} of this table were drawn by every tree and have no prediction.")
    return {"text": text, "shares": count_unidentified(table)}


def count_unidentified(table: TablePredictions) -> list[dict[str, Any]]:
    """Share of the rows for which each level is not identifiable."""
    has_prediction = table.has_prediction
    n = int(has_prediction.sum())
    counts = table.unidentified[has_prediction].sum(axis=0)
    shares = []
    for level, count in zip(SHOWN_LEVELS, counts.tolist(), strict=True):
        share = count / n if n else 0.0
        label = f"{count:,} of {n:,} rows ({format_percent(share)})" if count else "none"
        if n == 0:
            label = "unknown: no row is out of bag"
        shares.append(
            {"level": format_percent(level), "share": round_number(share), "label": label}
        )
    return shares


def describe_forest(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on the forest and on the software."""
    forest, model = table.forest, table.model
    settings = {name: format_setting(value) for name, value in forest.get_params().items()}
    now = datetime.datetime.now(datetime.UTC)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    out_of_bag = (
        "a row is out of bag in the trees that did not draw it."
        if model.keeps_features
        else "a forest grown on Dask does not keep the features of its training rows, so nothing "
        "can be predicted out of bag."
    )
    items = [
        ["Written", f"{now:%Y-%m-%d %H:%M} UTC"],
        ["Software", f"{versions}, Python {platform.python_version()}"],
        [
            "Forest",
            f"{format_count(len(model.forest.roots), 'tree')} with "
            f"{format_count(len(model.forest.leaf_offsets) - 1, 'leaf', 'leaves')}, grown from "
            f"{format_count(len(model.order), 'row')} of "
            f"{format_count(len(model.edges), 'column')}",
        ],
        ["Seed", f"{model.seed} (random_state: {settings['random_state']})"],
        [
            "Out of bag",
            f"Each tree draws {model.sampling.size:,} of {model.sampling.n_units:,} rows or "
            f"groups; {out_of_bag}",
        ],
    ]
    return {"items": items, "settings": [list(pair) for pair in settings.items()]}


def format_setting(value: Any) -> str:
    """A setting of the forest as text."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "a generator"
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return str(value)
