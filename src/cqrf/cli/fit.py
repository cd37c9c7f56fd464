"""``cqrf fit`` and ``cqrf tune``: from a table to a model file."""

from __future__ import annotations

import ast
import json
import math
import shlex
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest, NegativeTimeWarning, TextColumnWarning
from cqrf._input.columns import MAX_LEVELS, PLURAL
from cqrf._input.features import read_features
from cqrf._input.target import Target, find_negative_times, read_target
from cqrf._views.intervals import is_left_censored
from cqrf.cli.cause_columns import count_causes, name_counts
from cqrf.cli.console import (
    count,
    format_plain,
    format_size,
    is_terminal,
    print_json,
    print_message,
)
from cqrf.cli.notation import Notation
from cqrf.cli.roles import Roles, TrainingTable, split_table
from cqrf.cli.tables import is_string, name_source, read_whole
from cqrf.cli.target_columns import Rows


class FitTask(NamedTuple):
    """What to fit, and where to write it; None: nowhere."""

    path: str
    roles: Roles
    out: Path | None
    settings: dict[str, Any]
    as_json: bool = False
    notation: Notation = Notation()
    drop_invalid: bool = False


def fit_file(task: FitTask) -> None:
    """Read a table, fit a forest, and save it."""
    table, task = read_training_table(task)
    forest = make_forest(task.settings)
    began = time.perf_counter()
    forest.fit(table.X, table.y, sample_weight=table.weight, groups=table.groups)
    seconds = time.perf_counter() - began
    if not task.as_json:
        print_message(f"Grew    {count(forest.n_estimators, 'tree')} in {seconds:.1f} s")
    save_forest(forest, table, task, {"seconds": seconds})


def tune_file(task: FitTask, n_trials: int, quantiles: list[float] | None) -> None:
    """Read a table, find the settings of least out-of-bag loss, and save that forest."""
    from cqrf import tune

    table, task = read_training_table(task)
    start = make_forest({**task.settings, "verbose": 0})
    began = time.perf_counter()
    tuned = tune(
        start,
        table.X,
        table.y,
        n_trials=n_trials,
        quantiles=quantiles,
        sample_weight=table.weight,
        groups=table.groups,
        random_state=task.settings["random_state"],
        verbose=int(is_terminal()),
    )
    seconds = time.perf_counter() - began
    if not task.as_json:
        before, after = start.get_params(), tuned.forest.get_params()
        changed = [f"{name}={after[name]}" for name in after if after[name] != before[name]]
        best = ", ".join(changed) or "those given"
        tried = count(n_trials, "setting")
        print_message(f"Tried   {tried} in {seconds:.1f} s, all fits included; best: {best}")
    save_forest(tuned.forest, table, task, {"seconds": seconds, "trials": tuned.trials})


def read_training_table(task: FitTask) -> tuple[TrainingTable, FitTask]:
    """Read the table and print a summary of it; the task receives the notation that was found."""
    roles = task.roles
    labels = (*roles.categories, *roles.ignore, roles.groups, roles.treatment)
    read = read_whole(task.path, labels, task.notation)
    for name in task.notation.dates:
        Rows(read.table, task.path, task.notation).column(name)
    for message in read.messages:
        print_message(message)
    rows = Rows(read.table, task.path, read.notation, task.drop_invalid)
    table = split_table(rows, roles)
    _refuse_many_levels(table.X, task.path)
    # The notes of the command name options instead.
    warnings.simplefilter("ignore", TextColumnWarning)
    warnings.simplefilter("ignore", NegativeTimeWarning)
    _note_negative_times(table, rows)
    settings = task.settings
    if pa.types.is_duration(rows.column(roles.time).type):
        print_message(f"Note    {roles.time} holds durations, which are read in days")
        settings = settings | {"time_unit": settings.get("time_unit") or "days"}
    if not task.as_json:
        print_summary(table, task.path)
    return table, task._replace(notation=read.notation, settings=settings)


def _refuse_many_levels(X: pa.Table, path: str) -> None:
    """Raise if columns of text have too many levels; the error names all of them."""
    n_levels = {
        name: pc.count_distinct(column).as_py()
        for name, column in zip(X.column_names, X.columns, strict=True)
        if is_string(column)
    }
    many = {name: n for name, n in n_levels.items() if n > MAX_LEVELS}
    if many:
        listed = ", ".join(f"{name!r} ({n})" for name, n in many.items())
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in many)
        raise ValueError(
            f"{path}: text with more than {MAX_LEVELS} different values cannot be a category: "
            f"{listed}. Leave it out with {options}, or group rare values."
        )


def _note_negative_times(table: TrainingTable, rows: Rows) -> None:
    below = np.flatnonzero(find_negative_times(read_target(table.y)))
    if len(below):
        times = "1 time is" if len(below) == 1 else f"{len(below)} times are"
        place = rows._replace(numbers=table.numbers).place(int(below[0]))
        where = place if len(below) == 1 else f"the first is {place}"
        print_message(f"Note    {times} below 0 ({where}): does an end lie before its start?")


def make_forest(settings: dict[str, Any]) -> CensoredQuantileForest:
    """A forest with these settings; raises an error that names an unknown one."""
    known = CensoredQuantileForest().get_params()
    for name in settings:
        if name not in known:
            raise ValueError(
                f"--set {name}: there is no such setting; there are {', '.join(known)}."
            )
    return CensoredQuantileForest(**{"verbose": int(is_terminal()), **settings})


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Settings from NAME=VALUE; a value is a number, true, false, null, a list, or text."""
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: write NAME=VALUE, as in --set min_samples_leaf=10.")
        settings[name.strip()] = _parse_value(text.strip())
    return settings


def _parse_value(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError):
            continue
    return text


def _count_intervals(target: Target) -> str:
    """How many rows are intervals, in brackets; empty if y has no intervals."""
    if target.lower is None:
        return ""
    intervals = count(int((target.event & (target.lower < target.time)).sum()), "interval")
    n_open = int(is_left_censored(target).sum())
    return f" ({intervals}, {n_open} of them left-censored)" if n_open else f" ({intervals})"


def print_summary(table: TrainingTable, path: str) -> None:
    """Print rows, events, columns and missing values, as they were read."""
    target = read_target(table.y)
    n, n_events = len(target.time), int(target.event.sum())
    print_message(
        f"Read    {path}: {count(n, 'row')}, {count(n_events, 'event')}"
        f"{list_causes(table.y)}{_count_intervals(target)}, {1 - n_events / n:.0%} censored; times "
        f"from {format_plain(target.time.min())} to {format_plain(target.time.max())}"
    )
    if table.has_nameless:
        print_message("Note    a column without a name is left out")
    matrix, columns = read_features(CensoredQuantileForest(), table.X)
    names = table.X.column_names
    for kind in dict.fromkeys(columns.kinds):
        listed = [
            f"{name} ({count(len(levels), 'level')})" if levels is not None else name
            for name, of, levels in zip(names, columns.kinds, columns.levels, strict=True)
            if of == kind
        ]
        noun = kind if len(listed) == 1 else PLURAL[kind]
        print_message(f"Columns {len(listed)} {noun}: {', '.join(listed)}")
    for name, values in zip(names, matrix.T, strict=True):
        if n > 2 and (np.diff(values) == 1).all():
            option = f"--ignore {shlex.quote(name)}"
            print_message(f"Note    {name} counts the rows: leave it out with {option}")
    shares = zip(names, np.isnan(matrix).mean(axis=0), strict=True)
    missing = [
        f"{name} {share:.0%}" if share >= 0.005 else f"{name} below 1%"
        for name, share in shares
        if share > 0
    ]
    print_message("Missing " + (", ".join(missing) or "nothing"))


def list_causes(y: NDArray[Any]) -> str:
    """Events of each cause, in parentheses; empty if there is one kind of event."""
    counts = count_causes(y)
    listed = ", ".join(f"{n} of cause {cause}" for cause, n in counts.items())
    return f" ({listed})" if counts else ""


def save_forest(
    forest: CensoredQuantileForest, table: TrainingTable, task: FitTask, results: dict[str, Any]
) -> None:
    """Save the forest, and print its out-of-bag skill.

    ``results`` has the seconds of the fit and, after tuning, its trials.
    """
    try:
        skill = forest.score_oob()
    except ValueError as error:
        print_message(f"Note    {error}")
        skill = math.nan
    assert task.out is not None
    forest.set_params(verbose=0).save(task.out, notes=list_notes(task))
    size = task.out.stat().st_size
    if task.as_json:
        content = {
            "model": str(task.out),
            "bytes": size,
            "rows": len(table.y),
            "events": int(read_target(table.y).event.sum()),
            "causes": name_counts(count_causes(table.y)),
            "columns": table.X.column_names,
            "seconds": results["seconds"],
            "skill_oob": skill,
        }
        print_json(content | results)
        return
    if not math.isnan(skill):
        side = "below" if skill >= 0 else "above"
        print_message(
            f"Skill   {skill:.3f} out of bag: quantile loss {abs(skill):.0%} {side} that of one "
            "Kaplan-Meier curve"
        )
    print_message(f"Saved   {task.out} ({format_size(size)})")


def list_notes(task: FitTask) -> dict[str, str]:
    """What a model file keeps of the options, so that later commands need not repeat them."""
    source = {"source": name_source(task.path)}
    return {**task.roles.as_notes(), **task.notation.as_notes(), **source}
