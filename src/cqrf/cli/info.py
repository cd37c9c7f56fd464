"""``cqrf info``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cqrf import CensoredQuantileForest
from cqrf._input.features import feature_names
from cqrf.cli.console import format_plain, format_size, print_json


def describe_file(path: str) -> dict[str, Any]:
    """Rows, trees, columns and settings of a model file."""
    forest = CensoredQuantileForest.load(path)
    model = forest.model_
    names, shares = feature_names(forest), forest.feature_importances_
    columns = [
        {
            "name": names[j],
            "kind": model.columns.kinds[j],
            "levels": None if levels is None else list(levels),
            "importance": float(shares[j]),
        }
        for j, levels in enumerate(model.columns.levels)
    ]
    train = model.training_target
    return {
        "model": path,
        "bytes": Path(path).stat().st_size,
        "rows": len(model.order),
        "events": int(model.rows.event.sum()),
        "first_time": float(train.time.min()),
        "last_time": float(train.time.max()),
        "trees": len(model.forest.roots),
        "leaves": len(model.forest.leaf_offsets) - 1,
        "columns": columns,
        "settings": forest.get_params(),
        "seed": model.seed,
        "notes": forest.notes_,
    }


def print_info(path: str, *, as_json: bool) -> None:
    """Print what a model file holds."""
    info = describe_file(path)
    if as_json:
        print_json(info)
        return
    default = CensoredQuantileForest().get_params()
    changed = {name: x for name, x in info["settings"].items() if x != default[name]}
    censored = 1 - info["events"] / info["rows"]
    leaves = info["leaves"] / info["trees"]
    lines = {
        "File": f"{path}, {format_size(info['bytes'])}",
        "Fitted": f"{info['rows']} rows, {info['events']} events, {censored:.0%} censored; "
        f"times from {format_plain(info['first_time'])} to {format_plain(info['last_time'])}",
        "Trees": f"{info['trees']}, of {leaves:.0f} leaves on average",
        "Settings": ", ".join(f"{n}={x!r}" for n, x in changed.items()) or "the defaults",
        "Notes": ", ".join(f"{n}: {x}" for n, x in info["notes"].items()) or "none",
    }
    for title, line in lines.items():
        print(f"{title:<9}{line}")
    shown = Table(box=None, pad_edge=False)
    for heading in ("column", "kind", "importance"):
        shown.add_column(heading, justify="right" if heading == "importance" else "left")
    for column in sorted(info["columns"], key=lambda column: -column["importance"]):
        levels = column["levels"]
        kind = column["kind"] if levels is None else f"{column['kind']}, {len(levels)} levels"
        shown.add_row(column["name"], kind, f"{column['importance']:.1%}")
    print()
    Console().print(shown, highlight=False, markup=False)
