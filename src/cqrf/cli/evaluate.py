"""``cqrf evaluate``: scores of a model on the rows of a table, or out of bag."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf._runtime.progress import printable
from cqrf.cli.console import format_plain, print_json, print_message
from cqrf.cli.roles import GivenRoles, read_labelled_table

CONFIDENCE = 0.95  # of the intervals of skill and concordance


def evaluate_file(
    model: str, path: str | None, given: GivenRoles, n_jobs: int, *, as_json: bool
) -> None:
    """Print the scores of a model on a table, or out of bag if there is none."""
    from cqrf._views.training_table import is_training_target
    from cqrf.evaluation import evaluate, list_labels
    from cqrf.metrics.metric import SCORE_QUANTILES, describe_levels

    forest = CensoredQuantileForest.load(model).set_params(n_jobs=n_jobs)
    if path is None:
        scores = evaluate(forest, confidence=CONFIDENCE)
    else:
        table = read_labelled_table(forest, model, path, given)
        if is_training_target(forest.model_, read_target(table.y)):
            print_message(
                f"Note    {path} is the training table, so these scores are optimistic; leave it "
                "out for out-of-bag scores"
            )
        scores = evaluate(forest, table.X, table.y, confidence=CONFIDENCE)
    if as_json:
        print_json(scores)
        return
    shown = Table(box=None, pad_edge=False, show_header=False)
    levels = forest.model_.score_levels
    labels = list_labels(levels, causes=forest.causes_)
    if levels != SCORE_QUANTILES:
        print_message(f"Note    {describe_levels(levels)}")
    for name, label in labels.items():
        value = scores[name]
        text = f"{value:.0f}" if name == "rows" else format_plain(value)
        text = "cannot be computed" if np.isnan(value) else text
        shown.add_row(printable(label), text + show_interval(scores, name))
    print(printable(f"{model}, {'out of bag' if path is None else f'on {path}'}"))
    Console().print(shown, highlight=False, markup=False)
    if any(show_interval(scores, name) for name in labels):
        print(
            f"In parentheses: {CONFIDENCE:.0%} confidence intervals, by the bootstrap over rows or "
            "groups"
        )


def show_interval(scores: dict[str, float], name: str) -> str:
    """The confidence interval of a score as text; empty if it has none."""
    lower, upper = (scores.get(f"{name}_{end}", np.nan) for end in ("lower", "upper"))
    return "" if np.isnan(lower) else f" ({lower:.3g} to {upper:.3g})"
