"""``cqrf conformal``: a forest whose lower bounds have guaranteed coverage."""

from __future__ import annotations

import time
from typing import NamedTuple

from cqrf.cli.cause_columns import count_causes, name_counts
from cqrf.cli.console import count, format_plain, format_size, print_json, print_message
from cqrf.cli.fit import FitTask, list_notes, make_forest, read_training_table
from cqrf.conformal import ConformalForest


class ConformalSettings(NamedTuple):
    """Parameters of a ConformalForest besides its forests."""

    coverage: float
    method: str
    cutoff: float | None
    calibration_share: float


def conformal_file(task: FitTask, chosen: ConformalSettings) -> None:
    """Read a table, fit and calibrate, and save."""
    table, task = read_training_table(task)
    forest = make_forest(task.settings)
    seed = task.settings["random_state"]
    model = ConformalForest(forest, random_state=seed, **chosen._asdict())
    began = time.perf_counter()
    model.fit(table.X, table.y, table.censoring_time, table.weight, table.groups)
    seconds = time.perf_counter() - began
    for each in (forest, model.forest_):
        each.set_params(verbose=0)
    assert task.out is not None
    model.save(task.out, notes=list_notes(task))
    size = task.out.stat().st_size
    if task.as_json:
        content = {
            "model": str(task.out),
            "bytes": size,
            "rows": len(table.y),
            "events": int(table.y["event"].sum()),
            "causes": name_counts(count_causes(table.y)),
            "columns": table.X.column_names,
            "seconds": seconds,
            "coverage": model.coverage_,
            "level": model.level_,
        }
        print_json(content)
        return
    if count_causes(table.y):
        print_message("Note    bounds are those of the time to any event; causes are not kept")
    n_fitted = len(model.forest_.model_.order)
    print_message(
        f"Fitted  {count(n_fitted, 'row')} and calibrated on {len(table.y) - n_fitted}, in "
        f"{seconds:.1f} s"
    )
    if model.level_ > 0:
        print_message(
            f"Bounds  of coverage {model.coverage_:g}: quantiles of the forest at the level "
            f"{format_plain(model.level_, 3)}"
        )
    else:
        print_message(
            f"Note    there are no bounds of coverage {model.coverage_:g} above the smallest "
            "possible time: more calibration rows or a lower --coverage are needed"
        )
    print_message(f"Saved   {task.out} ({format_size(size)})")
