"""Facts: all that the page says and draws, as plain numbers and text."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from cqrf._runtime.arguments import read_count
from cqrf.estimator import CensoredQuantileForest
from cqrf.report.data import describe_data, marginal_curve, time_range
from cqrf.report.features import describe_dependence, describe_importance
from cqrf.report.numbers import count, plain, plain_list, say, say_share
from cqrf.report.quality import (
    describe_calibration,
    describe_quality,
    measure_skill,
    say_skill,
)
from cqrf.report.rows import describe_rows
from cqrf.report.subject import LEVELS, Subject, read_subject

PACKAGES = ("cqrf", "numpy", "numba", "scikit-learn")


def gather_facts(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    *,
    title: str,
    ids: Sequence[Any] | None = None,
    source: str | None = None,
    max_rows: int = 500,
) -> dict[str, Any]:
    """Facts of every section, ready for JSON: no NaN, no infinity."""
    max_rows = read_count("max_rows", max_rows, 1)
    subject = read_subject(forest, X, y)
    if len(subject.target.time) == 0:
        raise ValueError("the table has no rows: there is nothing to report.")
    times = [subject.target.time, subject.train.time]
    return {
        "title": str(title),
        "source": None if source is None else str(source),
        "summary": summarise(subject),
        "levels": list(LEVELS),
        "opening": choose_opening(subject),
        "censoring": subject.censoring,
        "range": plain_list(time_range(np.concatenate(times)), 6),
        "data": describe_data(subject),
        "quality": describe_quality(subject),
        "calibration": describe_calibration(subject),
        "importance": describe_importance(subject),
        "dependence": describe_dependence(subject),
        "rows": describe_rows(subject, ids, max_rows),
        "limits": describe_limits(subject),
        "made": describe_making(subject),
    }


def choose_opening(subject: Subject) -> int:
    """Number of the level that the page opens at: nearest the median, and told of most rows."""
    hidden = subject.hidden[subject.known]
    if len(hidden) == 0:
        return LEVELS.index(0.5)
    share = hidden.mean(axis=0)
    told = np.flatnonzero(share <= max(0.5, share.min()))
    return int(told[np.argmin(np.abs(np.array(LEVELS)[told] - 0.5))])


def summarise(subject: Subject) -> str:
    """The page in two sentences."""
    target = subject.target
    n, n_events = len(target.time), int(target.event.sum())
    skill, why = measure_skill(subject)
    where = (
        "Out of bag"
        if subject.out_of_bag
        else "On rows it has not seen"
        if subject.n_seen == 0
        else "On these rows, some of which it may have seen"
    )
    if skill is None:
        verdict = f"Its skill is {why}."
    else:
        sentence = say_skill(skill)
        verdict = f"{where}, {sentence[0].lower()}{sentence[1:]}"
    return (
        f"{count(n, 'row')} with {count(n_events, 'event')}; {say_share(1 - n_events / n)} of the "
        f"times are censored, and {say_follow_up(subject)}. {verdict}"
    )


def say_follow_up(subject: Subject) -> str:
    """Median follow-up in words: of the censoring times, if they show one."""
    observed = f"the median observed time is {say(float(np.median(subject.target.time)))}"
    if subject.censoring == "left" or subject.target.event.all():
        return observed
    curve = marginal_curve(subject.target, "right", of_censoring=True)
    below = np.flatnonzero(curve.values <= 0.5)
    if len(below) == 0:
        return observed
    return f"the median follow-up is {say(curve.times[below[0]])}"


def describe_limits(subject: Subject) -> dict[str, Any]:
    """Facts of the section on what cannot be estimated."""
    train = subject.train
    seen = train.time[train.event]
    if subject.censoring == "right":
        text = [
            f"The last event the forest has seen came at {say(seen.max())}: no quantile that it "
            "gives lies later.",
            "Around each row it is often less: where the last rows like it are censored, its "
            "survival curve does not come down to 0, and levels above where it ends are hidden. "
            "The page then says “later than” the last time seen, never a made-up number.",
        ]
    else:
        text = [
            f"The first event the forest has seen came at {say(seen.min())}: no quantile that it "
            "gives lies earlier.",
            "Around each row it is often less: where the first rows like it are censored, its "
            "survival curve starts below 1, and levels below that start are hidden. The page then "
            "says “earlier than” the first time seen, never a made-up number.",
        ]
    known, hidden = subject.known, subject.hidden
    n_known = int(known.sum())
    shares = []
    for k, level in enumerate(LEVELS):
        n_hidden = int(hidden[known, k].sum())
        share = n_hidden / n_known if n_known else 0.0
        said = f"{n_hidden:,} of {n_known:,} rows ({say_share(share)})" if n_hidden else "none"
        if n_known == 0:
            said = "not known: no row is out of bag"
        shares.append({"level": say_share(level), "share": plain(share), "said": said})
    if subject.forest.solver == "argmin":
        text.append("This forest's rule, argmin, gives a number for hidden levels all the same.")
    if n_known < len(known):
        never = count(len(known) - n_known, "row")
        text.append(f"{never} of this table were drawn by every tree: nothing is predicted there.")
    return {"text": text, "shares": shares}


def describe_making(subject: Subject) -> dict[str, Any]:
    """Facts of the section on how forest and page were made."""
    forest, model = subject.forest, subject.model
    settings = {name: say_setting(value) for name, value in forest.get_params().items()}
    now = datetime.datetime.now(datetime.UTC)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    items = [
        ["Written", f"{now:%Y-%m-%d %H:%M} UTC"],
        ["Software", f"{versions}, Python {platform.python_version()}"],
        [
            "Forest",
            f"{count(len(model.forest.roots), 'tree')} with "
            f"{count(len(model.forest.leaf_offsets) - 1, 'leaf', 'leaves')}, grown from "
            f"{count(len(model.order), 'row')} of {count(len(model.edges), 'column')}",
        ],
        ["Seed", f"{model.seed} (random_state: {settings['random_state']})"],
        [
            "Out of bag",
            f"Each tree draws {model.sampling.size:,} of {model.sampling.n_units:,} "
            "rows or groups; "
            + (
                "a row is out of bag in the trees that did not draw it, and what they say of it "
                "is a fair test."
                if model.keeps_features
                else "the forest was grown on Dask and keeps no features to tell which rows."
            ),
        ],
    ]
    return {"items": items, "settings": [list(pair) for pair in settings.items()]}


def say_setting(value: Any) -> str:
    """A setting of the forest as text."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "a generator"
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return str(value)
