"""``cqrf fit`` and ``cqrf tune``: from a file to a model file."""

from __future__ import annotations

import ast
import json
import math
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from cqrf import CensoredQuantileForest
from cqrf._input.features import PLURAL, read_features
from cqrf.cli.console import is_watched, number, print_json, say, size_in_words
from cqrf.cli.roles import Learning, Roles, split_table
from cqrf.cli.tables import read_whole


def fit_file(
    path: str, roles: Roles, out: Path, settings: dict[str, Any], *, as_json: bool
) -> None:
    """Read a table, grow a forest, say how good it is, and save it."""
    learning = read_learning(path, roles, as_json)
    forest = make_forest(settings)
    began = time.perf_counter()
    forest.fit(learning.X, learning.y, sample_weight=learning.weight, groups=learning.groups)
    finish(forest, learning, roles, path, out, time.perf_counter() - began, as_json)


def tune_file(
    path: str,
    roles: Roles,
    out: Path,
    settings: dict[str, Any],
    *,
    n_trials: int,
    quantiles: list[float],
    as_json: bool,
) -> None:
    """The same with the settings that do best out of bag."""
    from cqrf import tune

    learning = read_learning(path, roles, as_json)
    start = make_forest({**settings, "verbose": 0})
    began = time.perf_counter()
    tuned = tune(
        start,
        learning.X,
        learning.y,
        n_trials=n_trials,
        quantiles=quantiles,
        sample_weight=learning.weight,
        groups=learning.groups,
        random_state=settings["random_state"],
        verbose=int(is_watched()),
    )
    seconds = time.perf_counter() - began
    if not as_json:
        before, after = start.get_params(), tuned.forest.get_params()
        changed = [f"{name}={after[name]}" for name in after if after[name] != before[name]]
        say(f"Tried   {n_trials} settings; best: {', '.join(changed) or 'those given'}")
    finish(tuned.forest, learning, roles, path, out, seconds, as_json, trials=tuned.trials)


def read_learning(path: str, roles: Roles, as_json: bool) -> Learning:
    """The table, and what is understood of it, said."""
    learning = split_table(read_whole(path, (*roles.categories, roles.groups)), roles, path)
    if not as_json:
        say_understood(learning, path)
    return learning


def make_forest(settings: dict[str, Any]) -> CensoredQuantileForest:
    """A forest with these settings; an unknown one is named."""
    known = CensoredQuantileForest().get_params()
    for name in settings:
        if name not in known:
            raise ValueError(
                f"--set {name}: there is no such setting; there are {', '.join(known)}."
            )
    return CensoredQuantileForest(**{"verbose": int(is_watched()), **settings})


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Settings from NAME=VALUE; a value is a number, true, false, null, a list, or text."""
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: write NAME=VALUE, as in --set min_samples_leaf=10.")
        settings[name.strip()] = _read_value(text.strip())
    return settings


def _read_value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def say_understood(learning: Learning, path: str) -> None:
    """Rows, events, columns and gaps, as they were read."""
    y = learning.y
    n = len(y)
    events = int(y["event"].sum())
    say(
        f"Read    {path}: {n} rows, {events} events, {1 - events / n:.0%} censored; times from "
        f"{number(y['time'].min())} to {number(y['time'].max())}"
    )
    if y["time"].min() < 0:
        say(f"Note    {int((y['time'] < 0).sum())} times are below 0: is that meant?")
    if learning.has_nameless:
        say("Note    a column without a name is left out")
    matrix, columns = read_features(CensoredQuantileForest(), learning.X)
    named = list(zip(learning.X.column_names, columns.kinds, columns.levels, strict=True))
    for kind in dict.fromkeys(columns.kinds):
        names = [
            f"{name} ({len(levels)} levels)" if levels is not None else name
            for name, of, levels in named
            if of == kind
        ]
        noun = kind if len(names) == 1 else PLURAL[kind]
        say(f"Columns {len(names)} {noun}: {', '.join(names)}")
    for name, values in zip(learning.X.column_names, matrix.T, strict=True):
        if n > 2 and (np.diff(values) == 1).all():
            say(f"Note    {name} counts the rows: leave it out with --ignore {shlex.quote(name)}")
    shares = dict(zip(learning.X.column_names, np.isnan(matrix).mean(axis=0), strict=True))
    gaps = [
        f"{name} {share:.0%}" if share >= 0.005 else f"{name} below 1%"
        for name, share in shares.items()
        if share > 0
    ]
    say("Missing " + (", ".join(gaps) or "nothing"))


def finish(
    forest: CensoredQuantileForest,
    learning: Learning,
    roles: Roles,
    path: str,
    out: Path,
    seconds: float,
    as_json: bool,
    **more: Any,
) -> None:
    """Save the forest and tell how good it is."""
    try:
        skill = forest.score_oob()
    except ValueError as error:
        say(f"Note    {error}")
        skill = math.nan
    source = "standard input" if path == "-" else Path(path).name
    forest.set_params(verbose=0).save(out, notes={**roles.as_notes(), "source": source})
    size = out.stat().st_size
    if as_json:
        y = learning.y
        print_json(
            {
                "model": str(out),
                "bytes": size,
                "rows": len(y),
                "events": int(y["event"].sum()),
                "columns": learning.X.column_names,
                "seconds": seconds,
                "skill_oob": skill,
                **more,
            }
        )
        return
    say(f"Grew    {forest.n_estimators} trees in {seconds:.1f} s")
    if not math.isnan(skill):
        side = "below" if skill >= 0 else "above"
        say(
            f"Skill   {skill:.3f} out of bag: quantile loss {abs(skill):.0%} {side} that of one "
            "Kaplan-Meier curve"
        )
    say(f"Saved   {out} ({size_in_words(size)})")
