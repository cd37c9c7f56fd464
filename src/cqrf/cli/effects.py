"""``cqrf effects``: from a table to average effects of a treatment, in subgroups and by row."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cqrf._effects.targets import read_target
from cqrf._model.fitted import Model
from cqrf._runtime.arguments import exactly
from cqrf._survival.quantiles import read_levels
from cqrf._views.effects import describe_assumptions, list_arms
from cqrf.cli.cause_columns import canonical, count_causes
from cqrf.cli.console import count, format_size, print_json, print_message
from cqrf.cli.effect_words import print_results
from cqrf.cli.fit import FitTask, list_notes, read_training_table
from cqrf.cli.roles import TrainingTable
from cqrf.cli.subgroups import Subgroup, parse_columns, split_column
from cqrf.cli.text_files import list_names
from cqrf.cli.writers import open_writer
from cqrf.effects import AverageEffect, CensoredTreatmentForest, OverlapWarning

CONFIDENCE = 0.95
SHOWN_FEATURES = 3  # columns of subgroups if none are named


class EffectsTask(NamedTuple):
    """What to compare, and where to write it."""

    fitting: FitTask
    control: str | None
    propensity: float | None
    """Of all rows; None: a column has it, or it is estimated."""
    horizon: float | None
    times: list[float]
    quantiles: list[float]
    subgroups: str
    output: Path | None


def effects_file(task: EffectsTask) -> None:
    """Read a table, fit a treatment forest, print effects, and write what is asked for."""
    check_targets(task)
    table, fitting = read_training_table(task.fitting)
    refuse_causes(table, fitting)
    treatment, control = read_arms(table, fitting, task.control)
    named = parse_columns(task.subgroups, table.X)
    forest = make_forest(fitting.settings)
    # A line of the summary says it.
    warnings.simplefilter("ignore", OverlapWarning)
    began = time.perf_counter()
    forest.fit(
        table.X,
        table.y,
        treatment,
        control=control,
        propensity=task.propensity if table.propensity is None else table.propensity,
        sample_weight=table.weight,
        groups=table.groups,
    )
    seconds = time.perf_counter() - began
    if not fitting.as_json:
        print_message(f"Grew    {count(forest.n_estimators, 'tree')} in {seconds:.1f} s")
    task = task._replace(fitting=fitting, horizon=read_horizon(forest, task.horizon))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = describe_effects(forest, table, task, named) | {"seconds": seconds}
        columns = None if task.output is None else list_rows(forest, table, task)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print_message(f"Note    {message}")
    results |= write_files(forest, task, columns)
    if fitting.as_json:
        print_json(results)
    else:
        print_results(results, fitting.settings.get("time_unit"))


def refuse_causes(table: TrainingTable, task: FitTask) -> None:
    """Raise if events have several causes: effects are those on one kind of event."""
    causes = [str(cause) for cause in count_causes(table.y)]
    if causes:
        raise ValueError(
            f"{task.path}: column {task.roles.event!r} has the causes {list_names(causes)}, and "
            "effects are those on one kind of event: choose it, as in --event-value "
            f"{causes[0]}; rows of other causes then count as censored."
        )


def check_targets(task: EffectsTask) -> None:
    """Raise, before any work is done, if a time or a level cannot be asked for."""
    for option, numbers in (("--horizon", [task.horizon or 0.0]), ("--times", task.times)):
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"{option}: a time must be a finite number.")
    if task.quantiles:
        read_levels(task.quantiles)


def read_propensity(text: str | None) -> tuple[str | None, float | None]:
    """The column with propensities, or the propensity of all rows; None for what is not given."""
    if text is None:
        return None, None
    try:
        return None, float(text)
    except ValueError:
        return text, None


def read_arms(table: TrainingTable, task: FitTask, control: str | None) -> tuple[list[Any], Any]:
    """Value of the treatment of each row, and the one that is the control, None if not named.

    Values are numbers if both are.
    """
    labels, name = table.treatment or [], task.roles.treatment
    levels = sorted(set(labels))
    if len(levels) != 2:
        say = (
            "there is nothing to compare"
            if len(levels) == 1
            else "keep the rows of one treatment and of the control"
        )
        raise ValueError(
            f"{task.path}: column {name!r} has {count(len(levels), 'value')}, "
            f"{list_names(levels)}; a treatment has two: {say}."
        )
    values = dict(zip(levels, map(_as_number, levels), strict=True))
    if any(isinstance(value, str) for value in values.values()):
        values = {level: level for level in levels}
    chosen = [level for level in levels if canonical(level) == canonical(control or "")]
    if control is not None and not chosen:
        raise ValueError(
            f"--control {control}: column {name!r} has the values {list_names(levels)}."
        )
    return [values[label] for label in labels], values[chosen[0]] if chosen else None


def _as_number(label: str) -> int | float | str:
    try:
        number = float(label)
    except ValueError:
        return label
    if not math.isfinite(number):
        return label
    return int(number) if number.is_integer() else number


def make_forest(settings: dict[str, Any]) -> CensoredTreatmentForest:
    """A forest with these settings; raises an error that names an unknown one."""
    known = [name for name in CensoredTreatmentForest().get_params() if name != "nuisance_forest"]
    for name in settings:
        if name not in known:
            raise ValueError(
                f"--set {name}: there is no such setting; there are {', '.join(known)}."
            )
    return CensoredTreatmentForest(**settings)


def read_horizon(forest: CensoredTreatmentForest, horizon: float | None) -> float:
    """The horizon, or its default; raises an error if an arm is not known up to it."""
    model, end = forest.model_, float(forest.model_.mean_ends.min())
    if horizon is None:
        return model.follow_up
    if horizon <= model.grid.start or horizon > end:
        raise ValueError(
            f"--horizon {exactly(horizon)}: both arms are known from {exactly(model.grid.start)} "
            f"to {exactly(end)}; give a time between."
        )
    return horizon


def describe_effects(
    forest: CensoredTreatmentForest, table: TrainingTable, task: EffectsTask, named: list[str]
) -> dict[str, Any]:
    """All that is printed about the effects."""
    overlap = forest.overlap()
    rate = forest.rate(horizon=task.horizon, confidence=CONFIDENCE)
    model = forest.model_
    importance = share_importance(forest, model.effect)
    names = named or sorted(importance, key=lambda name: -importance[name])[:SHOWN_FEATURES]
    groups = [group for name in names for group in split_column(table.X, name)]
    fitting = task.fitting
    return {
        "rows": len(table.y),
        "events": int(table.y["event"].sum()),
        "columns": table.X.column_names,
        "treatment": fitting.roles.treatment,
        "control": forest.arms_[0],
        "treated": forest.arms_[1],
        "arms": [
            {"name": name, "rows": arm.rows, "events": arm.events}
            for name, arm in zip(forest.arms_, list_arms(forest), strict=True)
        ],
        "propensity": {
            "known": model.known_propensity is not None,
            "least": float(overlap.propensity.min()),
            "largest": float(overlap.propensity.max()),
            "rows_outside": overlap.n_outside,
            "importance": share_importance(forest, model.forests.propensity),
        },
        "censoring_floored": overlap.censoring_floored,
        "assumes": describe_assumptions(forest),
        "confidence": CONFIDENCE,
        "horizon": task.horizon,
        "average_effects": list_averages(forest, task, overlap.n_outside > 0),
        "rate": asdict(rate),
        "subgroups_named": bool(named),
        "importance": importance,
        "subgroups": [describe_subgroup(forest, group, task.horizon) for group in groups],
    }


def list_averages(
    forest: CensoredTreatmentForest, task: EffectsTask, with_overlap: bool
) -> list[dict[str, Any]]:
    """Average effects for each target that is asked for."""
    found = [_describe_average("rmst", task.horizon, forest.ate(horizon=task.horizon))]
    if with_overlap:
        weighted = forest.ate(horizon=task.horizon, population="overlap")
        found.append(_describe_average("rmst", task.horizon, weighted, "overlap"))
    for at in task.times:
        found.append(_describe_average("survival", at, forest.ate("survival", times=at)))
    for level in task.quantiles:
        average = forest.ate("quantile", quantiles=level)
        found.append(_describe_average("quantile", level, average))
    return found


def _describe_average(
    target: str, at: float | None, average: AverageEffect, population: str = "all"
) -> dict[str, Any]:
    return {"target": target, "at": at, "population": population, **_numbers(average)}


def _numbers(average: AverageEffect) -> dict[str, Any]:
    names = ("estimate", "standard_error", "lower", "upper")
    return {name: getattr(average, name) for name in names}


def describe_subgroup(
    forest: CensoredTreatmentForest, group: Subgroup, horizon: float | None
) -> dict[str, Any]:
    """Rows and average effect of a subgroup; no effect if only one arm has rows of weight in it."""
    model = forest.model_
    weighs = model.weight[model.effect.ranks] > 0
    is_treated = model.arm == bool(model.treated)
    described: dict[str, Any] = {
        "column": group.column,
        "level": group.level,
        "rows": int(group.rows.sum()),
        "treated": int((group.rows & is_treated).sum()),
    }
    if len(set(is_treated[group.rows & weighs])) < 2:
        return described | dict.fromkeys(("estimate", "standard_error", "lower", "upper"))
    return described | _numbers(forest.ate(horizon=horizon, subset=group.rows))


def share_importance(forest: CensoredTreatmentForest, model: Model | None) -> dict[str, float]:
    """Importance of each feature for the splits of one of the forests, as shares."""
    if model is None:
        return {}
    importance = model.forest.importance
    total = importance.sum()
    shares = importance / total if total > 0 else importance
    return dict(zip(map(str, forest.feature_names_in_), shares.tolist(), strict=True))


def list_rows(
    forest: CensoredTreatmentForest, table: TrainingTable, task: EffectsTask
) -> dict[str, NDArray[np.float64]]:
    """Propensity, effects and intervals of each row, by name; NaN for rows that are left out.

    Effects are out of bag, but for those on quantiles.
    """
    columns = {"propensity": forest.overlap().propensity}
    asked: list[tuple[str, dict[str, Any]]] = [("rmst", {"horizon": task.horizon})]
    asked += [("survival", {"times": at}) for at in task.times]
    asked += [("quantile", {"quantiles": level}) for level in task.quantiles]
    for target, argument in asked:
        name = read_target(forest.model_, target, **argument).names[0]
        if target == "quantile":
            columns[name] = forest.effect(table.X, target, **argument)
        else:
            columns[name] = forest.effect_oob(target, **argument)
        ends = forest.effect_interval(table.X, target, confidence=CONFIDENCE, **argument)
        for end, values in zip(("lower", "upper"), ends.T, strict=True):
            columns[f"{name}_{end}{exactly(CONFIDENCE)}"] = values
    if table.numbers is None:
        return columns
    whole = {name: np.full(table.n_read, np.nan) for name in columns}
    for name, values in columns.items():
        whole[name][table.numbers] = values
    return whole


def write_files(
    forest: CensoredTreatmentForest,
    task: EffectsTask,
    columns: dict[str, NDArray[np.float64]] | None,
) -> dict[str, Any]:
    """Write the model file and the table of rows, if asked for; their names."""
    out = task.fitting.out
    if out is not None:
        forest.save(out, notes=list_notes(task.fitting))
        print_message(f"Saved   {out} ({format_size(out.stat().st_size)})")
    if columns is not None and task.output is not None:
        written = pa.table({name: pa.array(x, from_pandas=True) for name, x in columns.items()})
        with open_writer(task.output) as write:
            write(written)
        print_message(f"Wrote   {task.output}: {count(written.num_rows, 'row')}")
    names = {"model": out, "output": task.output}
    return {name: None if path is None else str(path) for name, path in names.items()}
