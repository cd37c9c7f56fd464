"""Intervals: how often 95 % out-of-bag prediction intervals cover the latent time."""

from __future__ import annotations

from functools import partial

import numpy as np

from cqrf.datasets import make_sine
from cqrf.study.experiment import Case, Claim, Experiment
from cqrf.study.figures import draw_lines
from cqrf.study.methods import DEFAULT, Sample, Study, predict_all
from cqrf.study.results import Results, Row

COVERAGE = 0.95
METHODS = (DEFAULT, "crf-generalized", "crf-quantile", "grf", "qrf", "grf-oracle", "qrf-oracle")


def list_cases(study: Study) -> list[Case]:
    """Every repeat at every node size."""
    return [
        {"repeat": repeat, "node_size": node_size}
        for repeat in range(study.pick(20, 2))
        for node_size in study.pick((5, 10, 20, 30, 40), (10, 40))
    ]


def run_case(study: Study, case: Case) -> list[Row]:
    """Coverage and width of the intervals of each method."""
    data = make_sine(300, random_state=case["repeat"])
    tail = (1 - COVERAGE) / 2
    predicted = predict_all(
        METHODS,
        Sample.of(data),
        None,
        (tail, 1 - tail),
        node_size=case["node_size"],
        n_estimators=study.pick(500, 50),
        seed=case["repeat"],
        study=study,
    )
    true_width = np.diff(data.quantile(data.X, [tail, 1 - tail])).mean()
    return [
        {
            "method": method,
            "node_size": case["node_size"],
            "level": COVERAGE,
            "repeat": case["repeat"],
            "coverage": float(((ends[:, 0] <= data.latent) & (data.latent <= ends[:, 1])).mean()),
            "below": float((data.latent < ends[:, 0]).mean()),
            "width": float(np.diff(ends).mean() / true_width),
        }
        for method, ends in predicted.items()
    ]


def check_claims(results: Results) -> list[Claim]:
    """Claims on coverage and width."""
    coverage = {m: subset.mean("coverage") for m, subset in results.groups("method")}
    width = {m: subset.mean("width") for m, subset in results.groups("method")}
    below = {m: subset.mean("below") for m, subset in results.groups("method")}
    miss = {m: abs(value - COVERAGE) for m, value in coverage.items()}
    others = ("grf", "qrf", "grf-oracle")
    nearest = min(miss["crf-generalized"], miss["crf-quantile"])
    return [
        Claim(
            "crf and qrf-oracle have coverage closest to 95 %.",
            "mean coverage: " + ", ".join(f"{m} {100 * v:.1f} %" for m, v in coverage.items()),
            max(nearest, miss["qrf-oracle"]) < min(miss[m] for m in others),
        ),
        Claim(
            "The lower quantile of qrf and grf is too low, and their intervals are too wide.",
            "share of T below the interval (nominal: 2.5 %): "
            + ", ".join(f"{m} {100 * v:.1f} %" for m, v in below.items())
            + "; width over the true width: "
            + ", ".join(f"{m} {v:.2f}" for m, v in width.items()),
            max(below["grf"], below["qrf"]) < 0.0125 and min(width["grf"], width["qrf"]) > 1.2,
        ),
    ]


EXPERIMENTS = (
    Experiment(
        name="interval-coverage",
        list_cases=list_cases,
        run_case=run_case,
        draw=partial(
            draw_lines,
            x="node_size",
            panel="level",
            measures=(
                ("coverage", "share of T inside"),
                ("below", "share of T below"),
                ("width", "width over the true width"),
            ),
        ),
        check_claims=check_claims,
    ),
)
