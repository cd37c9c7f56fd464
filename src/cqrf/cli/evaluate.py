"""``cqrf evaluate``: scores of a model on the rows of a table, or out of bag."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf.cli.console import format_plain, print_json, print_message
from cqrf.cli.roles import GivenRoles, read_labelled_table


def evaluate_file(
    model: str, path: str | None, given: GivenRoles, n_jobs: int, *, as_json: bool
) -> None:
    """Print the scores of a model on a table, or out of bag if there is none."""
    from cqrf._views.training_table import is_training_target
    from cqrf.evaluation import evaluate, list_labels

    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    if path is None:
        scores = evaluate(forest)
    else:
        table = read_labelled_table(forest, model, path, given)
        if is_training_target(forest.model_, read_target(table.y)):
            print_message(
                f"Note    {path} is the training table, so these scores are optimistic; leave it "
                "out for out-of-bag scores"
            )
        scores = evaluate(forest, table.X, table.y)
    if as_json:
        print_json(scores)
        return
    shown = Table(box=None, pad_edge=False, show_header=False)
    labels = list_labels()
    for name, value in scores.items():
        text = f"{value:.0f}" if name == "rows" else format_plain(value)
        shown.add_row(labels[name], "cannot be computed" if np.isnan(value) else text)
    print(f"{model}, {'out of bag' if path is None else f'on {path}'}")
    Console().print(shown, highlight=False, markup=False)
