"""Beyond the paper: heavy and dependent censoring, consistency in n, time per query."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cqrf.datasets import make_aft, make_dependent_censoring
from cqrf.study.experiment import Case, Claim, Experiment
from cqrf.study.figures import draw_lines
from cqrf.study.methods import (
    BOTH_RULES,
    DEFAULT,
    METHODS,
    ORACLES,
    Sample,
    Study,
    build_forest,
    predict_all,
)
from cqrf.study.node_sizes import ERROR, format_values, means, score_predictions
from cqrf.study.results import Results, Row

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
NODE_SIZE = 20
N_TEST = 500
# Rate of C in the AFT model that gives this share of censored rows.
RATE_OF_SHARE = {0.1: 0.03227, 0.3: 0.11547, 0.5: 0.24175, 0.7: 0.46896}
SLOPES = (0.0, 1.0, 2.0, 3.0)
CLAIM_SLOPE = 2.0
CORRECTED = (DEFAULT, "crf-generalized", "crf-quantile", "rsf")
RULES = {
    "root, Beran": {"solver": "root", "censoring_survival": "beran"},
    "argmin, Beran": {"solver": "argmin", "censoring_survival": "beran"},
    "argmin, neighbours": {"solver": "argmin", "censoring_survival": "knn"},
}


def list_cases(
    column: str, repeats: int, values: Sequence[Any], quick_values: Sequence[Any], study: Study
) -> list[Case]:
    """Every repeat at every value of a column."""
    return [
        {"repeat": repeat, column: value}
        for value in study.pick(values, quick_values)
        for repeat in range(study.pick(repeats, 1))
    ]


def run_simulation(
    column: str,
    methods: Sequence[str],
    train: Any,
    test: Any,
    study: Study,
    case: Case,
    *,
    trees: int = 1000,
) -> list[Row]:
    """Loss and error of each method for one simulated data set; ``column`` is the setting."""
    predicted = predict_all(
        methods,
        Sample.of(train),
        test.X,
        LEVELS,
        node_size=NODE_SIZE,
        n_estimators=study.pick(trees, 50),
        seed=case["repeat"],
        study=study,
    )
    truth = test.quantile(test.X, LEVELS)
    rows = score_predictions(
        {**case, "node_size": NODE_SIZE}, predicted, LEVELS, test.latent, truth
    )
    return [{column: case[column], **row} for row in rows]


def run_share(study: Study, case: Case) -> list[Row]:
    """AFT model with a given share of censored rows."""
    make = partial(make_aft, censoring_rate=RATE_OF_SHARE[case["censored"]])
    train = make(study.pick(1000, 300), random_state=case["repeat"])
    test = make(N_TEST, random_state=1000 + case["repeat"])
    methods = (*CORRECTED, *BOTH_RULES, "grf", *ORACLES)
    return run_simulation("censored", methods, train, test, study, case)


def run_dependent(study: Study, case: Case) -> list[Row]:
    """Censoring that depends on a covariate which does not affect T."""
    make = partial(make_dependent_censoring, slope=case["slope"])
    train = make(study.pick(2000, 300), random_state=case["repeat"])
    test = make(N_TEST, random_state=1000 + case["repeat"])
    return run_simulation("slope", (*CORRECTED, *ORACLES), train, test, study, case)


def run_consistency(study: Study, case: Case) -> list[Row]:
    """AFT model with n training rows."""
    train = make_aft(case["n"], random_state=case["repeat"])
    test = make_aft(N_TEST, random_state=1000 + case["repeat"])
    methods = (DEFAULT, "crf-generalized", "grf-oracle")
    return run_simulation("n", methods, train, test, study, case, trees=500)


def run_query_time(study: Study, case: Case) -> list[Row]:
    """Time per query at three levels in one thread: weights and solution."""
    train = make_aft(case["n"], random_state=case["repeat"])
    X = make_aft(200, random_state=1000 + case["repeat"]).X
    forest = build_forest(
        METHODS[DEFAULT].criterion,
        train.X.shape[1],
        node_size=NODE_SIZE,
        n_estimators=study.pick(500, 50),
        seed=case["repeat"],
        n_jobs=study.n_jobs,
    ).fit(train.X, train.y)
    neighbors = forest.weights(X).nnz / len(X)
    rows = []
    for rule, settings in RULES.items():
        forest.set_params(n_jobs=1, **settings)
        seconds = []
        for _ in range(4):
            began = time.perf_counter()
            forest.predict(X, LEVELS[::2], unidentified="clip")
            seconds.append(time.perf_counter() - began)
        rows.append(
            {
                "method": rule,
                "n": case["n"],
                "repeat": case["repeat"],
                "microseconds": 1e6 * min(seconds) / len(X),
                "neighbours": neighbors,
                "what": "one query, three levels",
            }
        )
    return rows


def check_share(results: Results) -> list[Claim]:
    """Default against the paper's methods at every share; root against argmin at the largest."""
    ratios, rules = {}, {}
    for share, subset in results.groups("censored"):
        error = means(subset, "error", (*CORRECTED, *BOTH_RULES))
        ratios[share] = error[DEFAULT] / min(error["crf-generalized"], error["crf-quantile"])
        rules[share] = error[DEFAULT] / error["censored-quantile, argmin"]
    heaviest = max(rules)
    return [
        Claim(
            "The default is more accurate than both crf at every share of censored rows.",
            "error over that of the better crf: "
            + ", ".join(f"{v:.2f} at {share:.0%}" for share, v in ratios.items()),
            max(ratios.values()) < 1,
            "With 10 % censored there is little to correct, and variance splits (crf-quantile) "
            "suit a model in which only the mean depends on x, as the paper says.",
        ),
        Claim(
            "The root rule is no worse than argmin under heavy censoring.",
            f"error by root over error by argmin at {heaviest:.0%}: {rules[heaviest]:.3f}",
            rules[heaviest] <= 1,
        ),
    ]


def check_dependent(results: Results) -> list[Claim]:
    """Default against crf-generalized and against the oracle."""
    at = results.where(slope=CLAIM_SLOPE)
    if not len(at):
        return []
    error = means(at, "error", (*CORRECTED, *ORACLES))
    over = error[DEFAULT] / error["crf-generalized"], error[DEFAULT] / error["grf-oracle"]
    return [
        Claim(
            "If censoring depends strongly on a covariate that does not affect T, the default's "
            "error is at most half of crf-generalized's.",
            f"ratio {over[0]:.3f}; errors {format_values(error)}",
            over[0] <= 0.5,
        ),
        Claim(
            "In that case it is at most 1.15 times that of grf-oracle, which is fitted to the "
            "latent times.",
            f"ratio {over[1]:.3f}",
            over[1] <= 1.15,
        ),
    ]


def fit_rate(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Exponent a of values ~ n^a, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def check_consistency(results: Results) -> list[Claim]:
    """Whether the error falls with n, and at which rate."""
    rates, ends = {}, {}
    for method, subset in results.groups("method"):
        errors = [group.mean("error") for _, group in subset.groups("n")]
        rates[method] = fit_rate(subset.distinct("n"), errors)
        ends[method] = errors[0], errors[-1]
    falls = all(
        later.mean("error") < earlier.mean("error")
        for _, subset in results.where(method=DEFAULT).groups("method")
        for (_, earlier), (_, later) in zip(
            list(subset.groups("n"))[:-1], list(subset.groups("n"))[1:]
        )
    )
    return [
        Claim(
            "The estimates are consistent: the error to the true quantile falls as n grows.",
            "fitted rate n^a: "
            + ", ".join(
                f"{m} a = {rates[m]:.2f} ({ends[m][0]:.3f} to {ends[m][1]:.3f})" for m in rates
            ),
            falls and rates[DEFAULT] < -0.25,
        )
    ]


def check_query_time(results: Results) -> list[Claim]:
    """How the time per query grows with n."""
    rates = {}
    for method, subset in results.groups("method"):
        rates[method] = fit_rate(
            subset.distinct("n"), [group.mean("microseconds") for _, group in subset.groups("n")]
        )
    ours = results.where(method="root, Beran")
    per_neighbor = {
        n: 1000 * group.mean("microseconds") / group.mean("neighbours")
        for n, group in ours.groups("n")
    }
    few, many = min(per_neighbor), max(per_neighbor)
    return [
        Claim(
            "In the paper a query takes O(n max(k, log n)) with k neighbours and "
            "O(n m log(n)^(p - 1)) with Beran's estimate (appendix A.1). Here its time is "
            "proportional to the number of rows with positive weight.",
            "time per query ~ n^a: "
            + ", ".join(f"{m} a = {v:.2f}" for m, v in rates.items())
            + "; root, nanoseconds per row with positive weight: "
            f"{per_neighbor[few]:.0f} at n = {few}, {per_neighbor[many]:.0f} at n = {many}",
            rates["root, Beran"] < 1,
        )
    ]


def tabulate_query_times(results: Results) -> str:
    """Microseconds per query and rows with positive weight, by n."""
    lines = ["| n | µs per query, root | argmin | argmin, neighbours | rows with positive weight |"]
    lines += ["|---|---|---|---|---|"]
    for n, subset in results.groups("n"):
        cells = [f"{subset.where(method=rule).mean('microseconds'):.0f}" for rule in RULES]
        lines.append(f"| {n} | " + " | ".join(cells) + f" | {subset.mean('neighbours'):.0f} |")
    return "\n".join(lines)


EXPERIMENTS = (
    Experiment(
        name="censoring-share",
        list_cases=partial(list_cases, "censored", 5, tuple(RATE_OF_SHARE), (0.1, 0.7)),
        run_case=run_share,
        draw=partial(draw_lines, x="censored", panel="tau", measures=(ERROR,), log="y"),
        check_claims=check_share,
    ),
    Experiment(
        name="dependent-censoring",
        list_cases=partial(list_cases, "slope", 5, SLOPES, (0.0, 2.0)),
        run_case=run_dependent,
        draw=partial(draw_lines, x="slope", panel="tau", measures=(ERROR,), log="y"),
        check_claims=check_dependent,
    ),
    Experiment(
        name="consistency",
        list_cases=partial(
            list_cases, "n", 3, (250, 500, 1000, 2000, 4000, 8000, 16000), (250, 500, 1000)
        ),
        run_case=run_consistency,
        draw=partial(draw_lines, x="n", panel="tau", measures=(ERROR,), log="xy"),
        check_claims=check_consistency,
    ),
    Experiment(
        name="query-time",
        list_cases=partial(list_cases, "n", 3, (1000, 4000, 16000, 64000), (500, 1000)),
        run_case=run_query_time,
        draw=partial(
            draw_lines,
            x="n",
            panel="what",
            measures=(("microseconds", "microseconds"), ("neighbours", "rows with weight")),
            log="xy",
        ),
        check_claims=check_query_time,
        tabulate=tabulate_query_times,
    ),
)
