"""``cqrf evaluate`` and ``cqrf info``: what a model file holds, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf.cli.console import number, print_json, say, size_in_words
from cqrf.cli.predicting import feature_names
from cqrf.cli.roles import Roles, read_target_columns
from cqrf.cli.tables import as_known, name_labels, read_whole

MEASURES = {
    "rows": "rows judged",
    "skill": "skill over Kaplan-Meier (1 is perfect, 0 no better)",
    "concordance": "concordance (Harrell's C)",
    "integrated_brier_score": "integrated Brier score",
    "crps": "CRPS, in units of time",
    "loss_0.25": "quantile loss at .25",
    "loss_0.5": "quantile loss at .5",
    "loss_0.75": "quantile loss at .75",
    "calibration_distance": "distance from calibration",
    "calibration_p_value": "p-value of calibration (small: not calibrated)",
}


def evaluate_file(
    model: str, path: str | None, given: dict[str, str | None], n_jobs: int, *, as_json: bool
) -> None:
    """Judge a model on the rows of a file, or out of bag."""
    from cqrf.evaluation import evaluate
    from cqrf.report.subject import is_training_table

    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    if path is None:
        measured = evaluate(forest)
    else:
        roles = Roles.from_notes(forest.notes_, **given)
        names, columns = feature_names(forest, model), forest.model_.columns
        table = read_whole(path, name_labels(names, columns))
        X = as_known(table, names, columns, path)
        y = read_target_columns(table, roles, path)
        if is_training_table(forest, read_target(y)):
            say(
                f"Note    {path} is what the model was fitted to, so these figures flatter it; "
                "leave it out to judge out of bag"
            )
        measured = evaluate(forest, X, y)
    if as_json:
        print_json(measured)
        return
    shown = Table(box=None, pad_edge=False, show_header=False)
    for name, value in measured.items():
        text = f"{value:.0f}" if name == "rows" else number(value)
        shown.add_row(MEASURES[name], "cannot be told" if np.isnan(value) else text)
    print(f"{model}, {'out of bag' if path is None else f'on {path}'}")
    Console().print(shown, highlight=False, markup=False)


def describe(model: str) -> dict[str, Any]:
    """What a model file holds."""
    forest = CensoredQuantileForest.load(model)
    held = forest.model_
    n = len(held.order)
    names = getattr(forest, "feature_names_in_", None)
    shares = forest.feature_importances_
    columns = [
        {
            "name": f"feature {j}" if names is None else str(names[j]),
            "kind": held.columns.kinds[j],
            "levels": None if levels is None else list(levels),
            "importance": float(shares[j]),
        }
        for j, levels in enumerate(held.columns.levels)
    ]
    train = held.training_target
    return {
        "model": model,
        "bytes": Path(model).stat().st_size,
        "rows": n,
        "events": int(held.rows.event.sum()),
        "first_time": float(train.time.min()),
        "last_time": float(train.time.max()),
        "trees": len(held.forest.roots),
        "leaves": len(held.forest.leaf_offsets) - 1,
        "columns": columns,
        "settings": forest.get_params(),
        "seed": held.seed,
        "notes": forest.notes_,
    }


def show_info(model: str, *, as_json: bool) -> None:
    """Print what a model file holds."""
    facts = describe(model)
    if as_json:
        print_json(facts)
        return
    default = CensoredQuantileForest().get_params()
    changed = {name: x for name, x in facts["settings"].items() if x != default[name]}
    censored = 1 - facts["events"] / facts["rows"]
    leaves = facts["leaves"] / facts["trees"]
    lines = {
        "File": f"{model}, {size_in_words(facts['bytes'])}",
        "Fitted": f"{facts['rows']} rows, {facts['events']} events, {censored:.0%} censored; "
        f"times from {number(facts['first_time'])} to {number(facts['last_time'])}",
        "Trees": f"{facts['trees']}, of {leaves:.0f} leaves on average",
        "Settings": ", ".join(f"{n}={x!r}" for n, x in changed.items()) or "the defaults",
        "Notes": ", ".join(f"{n}: {x}" for n, x in facts["notes"].items()) or "none",
    }
    for title, line in lines.items():
        print(f"{title:<9}{line}")
    shown = Table(box=None, pad_edge=False)
    for heading in ("column", "kind", "importance"):
        shown.add_column(heading, justify="right" if heading == "importance" else "left")
    for column in sorted(facts["columns"], key=lambda column: -column["importance"]):
        levels = column["levels"]
        kind = column["kind"] if levels is None else f"{column['kind']}, {len(levels)} levels"
        shown.add_row(column["name"], kind, f"{column['importance']:.1%}")
    print()
    Console().print(shown, highlight=False, markup=False)
