"""Digests of what one tree of the package computes; the worker of ``compare_revisions.py``.

Reads from standard input, as JSON, which forests to fit to which tables, and prints
{case: {result: digest}}. Uses only public names of the package, which both revisions have. A digest
is the SHA-256 of type, shape and bytes of an array; of what is refused, the type of the error.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

import cqrf
from cqrf import CensoredQuantileForest, censored, datasets, metrics, solve_quantiles, tune
from cqrf.calibration import assess_calibration
from cqrf.conformal import ConformalForest
from cqrf.evaluation import evaluate
from cqrf.inspection import partial_dependence

# Values of curves beyond their ends, which earlier revisions always gave.
EXTEND = {"beyond": "extend"} if hasattr(cqrf, "BeyondFollowUpWarning") else {}
# Earlier revisions have no working model: all forests are grown without one.
PLAIN: dict[str, Any] = (
    {"working_model": None} if "working_model" in CensoredQuantileForest().get_params() else {}
)
N_TEST = 25
LEVELS = [0.5, 0.1, 0.9, 0.25, 0.75]  # not in order, which must not matter
UNIDENTIFIED = ("inf", "clip", "nan")
# Attributes of what is not an array.
STEP_CURVES = ("offsets", "times", "values", "initial")
SPARSE = ("data", "indices", "indptr")
CALIBRATION = ("levels", "observed", "lower", "upper", "distance", "p_value")
PARTIAL_DEPENDENCE = ("grid", "quantiles", "values")
MEMORY = ("fit", "model")
SIMULATION = ("X", "y", "latent")


class Table(NamedTuple):
    """Training rows and test rows."""

    X: Any
    y: Any
    sample_weight: np.ndarray | None
    groups: np.ndarray | None
    X_test: Any
    y_test: np.ndarray
    times: np.ndarray
    """Times at which curves are asked."""


class Case:
    """Digests of the results of one case."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}

    def add(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Add what the function gives, or the type of its error."""
        try:
            value = function(*arguments, **options)
        except Exception as error:
            self.add_error(name, error)
        else:
            self.add_value(name, value)

    def add_value(self, name: str, value: Any) -> None:
        self.digests[name] = digest(value)

    def add_parts(
        self,
        name: str,
        attributes: tuple[str, ...],
        function: Callable[..., Any],
        *arguments: Any,
        **options: Any,
    ) -> None:
        """Add some attributes of what the function gives."""
        try:
            value = function(*arguments, **options)
        except Exception as error:
            self.add_error(name, error)
        else:
            for attribute in attributes:
                self.add_value(f"{name} {attribute}", getattr(value, attribute))

    def add_error(self, name: str, error: Exception) -> None:
        if not isinstance(error, ValueError):
            traceback.print_exception(error)
        kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        self.digests[name] = f"error {kind}"


def digest(value: Any) -> str:
    """SHA-256 of bytes, or of the type, shape and bytes of an array or a number."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    array = np.asarray(value)
    content = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
    return hashlib.sha256(f"{array.dtype.descr} {array.shape} ".encode() + content).hexdigest()


def make_table(table: dict[str, Any], censoring: str) -> Table:
    """The table of these properties, always the same."""
    n = table["n_rows"]
    rng = np.random.default_rng([n, table["n_features"]])
    columns, effect = make_columns(table, n + N_TEST, rng)
    time, event = make_times(table, effect, censoring, rng)
    groups = rng.integers(0, n // 3, n) if table["groups"] != "none" else None
    sample_weight = make_weights(table["weights"], groups, n, rng)
    if table["groups"] == "texts":
        groups = np.array([f"group {number}" for number in groups])
    entry = None
    if table["entry"]:
        entry = time - 0.01 - rng.exponential(np.ptp(time) / 4, len(time))
        entry = np.where(rng.random(len(time)) < 0.2, np.nan, entry)[:n]
    X, X_test = (
        make_features(table["form"], {name: values[rows] for name, values in columns.items()})
        for rows in (slice(n), slice(n, None))
    )
    return Table(
        X,
        make_target(table["target"], time[:n], event[:n], entry),
        sample_weight,
        groups,
        X_test,
        censored(time[n:], event[n:]),
        np.concatenate([np.quantile(time[:n], [0.7, 0, 0.1, 0.5, 1]), [time.min() - 1, np.inf]]),
    )


def make_columns(
    table: dict[str, Any], n: int, rng: np.random.Generator
) -> tuple[dict[str, Any], np.ndarray]:
    """Columns by name, half of the numbers rounded, and their effect on the logarithm of T."""
    x = rng.normal(size=(n, table["n_features"]))
    half = table["n_features"] // 2
    x[:, half:] = x[:, half:].round(1)
    effect = 0.8 * x[:, 0]
    if table["missing"]:
        x[rng.random(x.shape) < 0.1] = np.nan
    columns: dict[str, Any] = {f"x{j}": x[:, j] for j in range(x.shape[1])}
    if table["categories"]:
        kinds = rng.choice(["first", "second", "third", "fourth"], n)
        effect = effect + 1.0 * (kinds == "first")
        known = rng.random(n) > 0.1 if table["missing"] else np.full(n, True)
        columns["kind"] = [kind if is_known else None for kind, is_known in zip(kinds, known)]
        columns["kind"][-1] = "not in training"
        columns["grade"] = [f"grade {grade}" for grade in rng.integers(0, 20, n)]
        columns["day"] = (
            np.datetime64("2020-01-01", "us") + rng.integers(0, 500, n) * 86_400_000_000
        )
        columns["flag"] = rng.random(n) < 0.5
    return columns, effect


def make_times(
    table: dict[str, Any], effect: np.ndarray, censoring: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Observed times and events, of about the share of censored rows that is asked for."""
    n, share = len(effect), table["censored"]
    latent, limit = effect + 0.4 * rng.normal(size=n), rng.normal(size=n)
    if censoring == "right":
        limit += np.quantile(latent - limit, 1 - share) if share else np.inf
        time, event = np.minimum(latent, limit), latent <= limit
    else:
        limit += np.quantile(latent - limit, share) if share else -np.inf
        time, event = np.maximum(latent, limit), latent >= limit
    if table["times"] == "logarithms":
        return time, event
    time = np.exp(time)
    return (np.ceil(2 * time) / 2 if table["times"] == "tied" else time), event


def make_weights(
    kind: str, groups: np.ndarray | None, n: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Sample weights; where some are zero, also those of all rows of one group."""
    if kind == "none":
        return None
    if kind == "counts":
        return rng.integers(1, 4, n).astype(float)
    weight = 0.1 + rng.random(n)
    if kind == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        if groups is not None:
            weight[groups == groups[0]] = 0.0
    return weight


def make_features(form: str, columns: dict[str, Any]) -> Any:
    """The columns as an array or a frame."""
    if form == "pandas":
        frame = pd.DataFrame(columns)
        return frame.astype({"grade": "category"}) if "grade" in columns else frame
    if form == "polars":
        frame = pl.DataFrame(columns)
        categories = [pl.col("grade").cast(pl.Categorical)] if "grade" in columns else []
        return frame.with_columns(categories)
    if form == "pyarrow":
        return pa.table(columns)
    return np.column_stack(list(columns.values())).astype(
        np.float32 if form == "float32" else np.float64
    )


def make_target(
    form: str, time: np.ndarray, event: np.ndarray, entry: np.ndarray | None = None
) -> Any:
    """The target as a structured array, two columns, or a frame."""
    if form == "columns":
        return np.column_stack([time, event])
    if form == "frame":
        columns = {"time": time, "event": event}
        return pd.DataFrame(columns if entry is None else columns | {"entry": entry})
    return censored(time, event, entry)


def make_both(order: dict[str, Any]) -> tuple[CensoredQuantileForest, Table]:
    """A forest that is not fitted, and its table."""
    settings = order["settings"]
    forest = CensoredQuantileForest(**settings, **PLAIN)
    return forest, make_table(order["table"], settings["censoring"])


def fit_example(order: dict[str, Any]) -> tuple[CensoredQuantileForest, Table]:
    forest, table = make_both(order)
    return forest.fit(table.X, table.y, table.sample_weight, table.groups), table


def saved_bytes(forest: CensoredQuantileForest) -> bytes:
    """The model file of a forest."""
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "model.cqrf", notes={"table": "of compare_revisions.py"})
        return (Path(folder) / "model.cqrf").read_bytes()


def load_bytes(content: bytes) -> CensoredQuantileForest:
    """The forest of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.cqrf").write_bytes(content)
        return CensoredQuantileForest.load(Path(folder) / "model.cqrf")


def add_forest(order: dict[str, Any], case: Case) -> None:
    """All that a forest of these settings gives."""
    forest, table = make_both(order)
    try:
        forest.fit(table.X, table.y, table.sample_weight, table.groups)
    except Exception as error:
        case.add_error("fit", error)
        return
    add_quantiles(forest, table.X_test, case)
    add_out_of_bag(forest, table.times, case)
    add_curves(forest, table, case)
    case.add_parts("weights", SPARSE, forest.weights, table.X_test)
    case.add("feature_importances_", getattr, forest, "feature_importances_")
    case.add("score", forest.score, table.X_test, table.y_test)
    weight = np.linspace(0, 2, N_TEST)
    case.add("score weighted", forest.score, table.X_test, table.y_test, weight)
    case.add_parts("estimate_memory", MEMORY, forest.estimate_memory, 1000, forest.n_features_in_)
    if forest.bag_size > 1:
        add_uncertainty(forest, table, case)
    add_file(forest, table, case)


def add_quantiles(forest: CensoredQuantileForest, X: Any, case: Case, prefix: str = "") -> None:
    for unidentified in UNIDENTIFIED:
        name = f"{prefix}predict {unidentified}"
        case.add(name, forest.predict, X, LEVELS, unidentified=unidentified)
    case.add(f"{prefix}predict one level", forest.predict, X)
    case.add(f"{prefix}predict_interval", forest.predict_interval, X, 0.8)
    case.add(f"{prefix}max_quantile", forest.max_quantile, X)


def add_out_of_bag(forest: CensoredQuantileForest, times: np.ndarray, case: Case) -> None:
    for unidentified in UNIDENTIFIED:
        name = f"predict_oob {unidentified}"
        case.add(name, forest.predict_oob, LEVELS, unidentified=unidentified)
    case.add("predict_survival_oob at times", forest.predict_survival_oob, times, **EXTEND)
    case.add_parts("predict_survival_oob", STEP_CURVES, forest.predict_survival_oob)
    case.add_parts("weights_oob", SPARSE, forest.weights_oob)
    case.add("score_oob", forest.score_oob)


def add_curves(forest: CensoredQuantileForest, table: Table, case: Case) -> None:
    X, times = table.X_test, table.times
    case.add("predict_survival at times", forest.predict_survival, X, times, **EXTEND)
    case.add_parts("predict_survival", STEP_CURVES, forest.predict_survival, X)
    case.add("predict_censoring at times", forest.predict_censoring, X, times, **EXTEND)
    case.add_parts("predict_censoring", STEP_CURVES, forest.predict_censoring, X)
    for k in (0, -1):
        case.add(f"predict_mean {k}", forest.predict_mean, X, float(times[k]), **EXTEND)
    curves = forest.predict_survival(X)
    case.add("curves each", curves.each, table.y_test["time"])
    case.add("curves first_at_most", curves.first_at_most, np.linspace(0, 1, N_TEST))


def add_uncertainty(forest: CensoredQuantileForest, table: Table, case: Case) -> None:
    X, times = table.X_test, table.times
    case.add("survival_standard_error", forest.survival_standard_error, X, times, **EXTEND)
    interval = forest.survival_confidence_interval
    case.add("survival_confidence_interval", interval, X, times, **EXTEND)
    case.add("quantile_confidence_interval", forest.quantile_confidence_interval, X, LEVELS, 0.8)


def add_file(forest: CensoredQuantileForest, table: Table, case: Case) -> None:
    """The model file, and what the forest that is read from it gives."""
    content = saved_bytes(forest)
    case.add_value("model file", content)
    loaded = load_bytes(content)
    case.add_value("loaded settings", repr(sorted(loaded.get_params().items())))
    case.add_value("loaded names", repr(list(getattr(loaded, "feature_names_in_", []))))
    case.add_value("loaded notes", repr(loaded.notes_))
    case.add_value("loaded model file", saved_bytes(loaded))
    add_quantiles(loaded, table.X_test, case, "loaded ")
    case.add("loaded predict_oob", loaded.predict_oob, LEVELS)
    case.add_parts("loaded predict_survival", STEP_CURVES, loaded.predict_survival, table.X_test)


def add_many_rows(case: Case) -> None:
    """A table with more rows than edges are found from, in which a leaf touches few."""
    n = 210_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    latent, limit = np.exp(X[:, 0] + rng.normal(size=n)), rng.exponential(3, n)
    y = censored(np.minimum(latent, limit), latent <= limit)
    settings = {"n_estimators": 6, "max_samples": 3000, "random_state": 0, "n_jobs": 2}
    for name, weight in (("", None), ("weighted ", rng.random(n))):
        forest = CensoredQuantileForest(**settings, **PLAIN).fit(X, y, weight)
        add_quantiles(forest, X[:100], case, name)
        case.add_parts(f"{name}weights", SPARSE, forest.weights, X[:100])
        case.add_value(f"{name}feature_importances_", forest.feature_importances_)
        case.add_value(f"{name}model file", saved_bytes(forest))


def add_saved_model(path: Path, case: Case) -> None:
    """A file of an earlier version."""
    forest = CensoredQuantileForest.load(path)
    table = datasets.load_pbc(as_frame=True)
    X = table.X.iloc[:60]
    times = np.linspace(0, 5000, 12)
    add_quantiles(forest, X, case)
    add_out_of_bag(forest, times, case)
    case.add_parts("predict_survival", STEP_CURVES, forest.predict_survival, X)
    case.add_parts("predict_censoring", STEP_CURVES, forest.predict_censoring, X)
    case.add("predict_mean", forest.predict_mean, X, float(times[-1]), **EXTEND)
    case.add_parts("weights", SPARSE, forest.weights, X)
    case.add("score", forest.score, table.X, table.y)
    case.add("model file", saved_bytes, forest)


def add_solve_quantiles(case: Case) -> None:
    """Quantiles from weights that no forest has made."""
    n = 60
    rng = np.random.default_rng(0)
    time, event = rng.exponential(2, n).round(1) + 0.1, rng.random(n) < 0.6
    entry = np.where(rng.random(n) < 0.5, -np.inf, time * rng.random(n) * 0.9)
    dense = rng.random((20, n)) * (rng.random((20, n)) < 0.3)
    rows = {
        "": {},
        "left ": {"censoring": "left"},
        "entry ": {"entry": entry},
        "weighted ": {"sample_weight": rng.integers(0, 3, n)},
    }
    methods = [("beran", None), ("km", None), ("knn", None), ("knn", 7), ("knn", 0.3)]
    for prefix, options in rows.items():
        for method, n_neighbors in methods:
            for solver in ("root", "argmin"):
                given = dense, time, event, LEVELS, method, n_neighbors, solver
                for unidentified in UNIDENTIFIED:
                    name = f"{prefix}{method} {n_neighbors} {solver} {unidentified}"
                    options = options | {"unidentified": unidentified}
                    case.add(name, solve_quantiles, *given, **options)
    case.add("sparse", solve_quantiles, sparse.csr_array(dense), time, event, 0.5)


def add_metrics(order: dict[str, Any], case: Case) -> None:
    """Every public metric, by Kaplan-Meier's G and by the forest's own."""
    forest, table = fit_example(order)
    side, X, y, y_test = forest.censoring, table.X_test, table.y, table.y_test
    predicted = forest.predict(X, LEVELS, unidentified="clip")
    horizon = float(table.times[-1])
    curves, mean = forest.predict_survival(X), forest.predict_mean(X, horizon, **EXTEND)
    weight = np.linspace(0, 2, N_TEST)
    given = {
        "": {},
        "own G ": {"censoring_survival": forest.predict_censoring(X)},
        "weighted ": {"sample_weight": weight, "train_weight": np.linspace(0, 1, len(y))},
    }
    times = np.unique(np.quantile(y_test["time"], [0.1, 0.3, 0.5, 0.7]))
    for prefix, options in given.items():
        options = options | {"censoring": side}
        loss = metrics.censored_quantile_loss
        case.add(f"{prefix}censored_quantile_loss", loss, y, y_test, predicted, LEVELS, **options)
        case.add(f"{prefix}brier_score", metrics.brier_score, y, y_test, curves, times, **options)
        integrated = metrics.integrated_brier_score
        case.add(f"{prefix}integrated_brier_score", integrated, y, y_test, curves, **options)
        name = f"{prefix}integrated_brier_score at times"
        case.add(name, integrated, y, y_test, curves(times, **EXTEND), times, **options)
        case.add(f"{prefix}crps", metrics.crps, y, y_test, curves, **options)
    concordance = partial(metrics.concordance_index, y_test, mean, censoring=side)
    case.add("Harrell's concordance", concordance)
    case.add("Harrell's concordance weighted", concordance, sample_weight=weight)
    case.add("Harrell's concordance to a horizon", concordance, horizon=float(times[-1]))
    case.add("Uno's concordance", concordance, y_train=y)
    loss = partial(metrics.quantile_loss, y_test["time"])
    case.add("quantile_loss", loss, predicted, LEVELS)
    case.add("quantile_loss weighted", loss, mean, 0.5, sample_weight=weight)
    case.add("censoring_target", metrics.censoring_target, y, side)
    case.add_value("FLOOR", metrics.FLOOR)
    add_scorers(forest, table, case)


def add_scorers(forest: CensoredQuantileForest, table: Table, case: Case) -> None:
    options: dict[str, list[dict[str, Any]]] = {
        "quantile_loss": [{"quantiles": [0.3, 0.6]}, {"forest_censoring": True}],
        "concordance": [{"quantile": 0.4}],
        "uno_concordance": [{"quantile": 0.4}],
        "brier": [{"times": np.unique(table.times[:4])}, {"forest_censoring": True}],
        "crps": [{"forest_censoring": True}],
    }
    weight = np.linspace(0, 2, N_TEST)
    case.add_value("SCORERS", sorted(metrics.SCORERS))
    for metric in sorted(metrics.SCORERS):
        for number, chosen in enumerate([{}, *options.get(metric, [])]):
            scorer = metrics.make_scorer(metric, **chosen)
            name = f"scorer {metric} {number}"
            case.add(name, scorer, forest, table.X_test, table.y_test)
            case.add(f"{name} weighted", scorer, forest, table.X_test, table.y_test, weight)


def add_judgement(order: dict[str, Any], case: Case) -> None:
    """Calibration and evaluation, out of bag and on test rows."""
    forest, table = fit_example(order)
    test = table.X_test, table.y_test
    case.add_parts("out of bag", CALIBRATION, assess_calibration, forest)
    case.add_parts("test rows", CALIBRATION, assess_calibration, forest, *test)
    options = {"sample_weight": np.linspace(0, 2, N_TEST), "confidence": 0.8, "n_bins": 5}
    case.add_parts("test rows weighted", CALIBRATION, assess_calibration, forest, *test, **options)
    if isinstance(table.y, np.ndarray):
        case.add_parts("training rows", CALIBRATION, assess_calibration, forest, table.X, table.y)
    for name, rows in (("out of bag", ()), ("test rows", test)):
        for measure, value in evaluate(forest, *rows).items():
            case.add_value(f"evaluate {name} {measure}", value)


def add_partial_dependence(order: dict[str, Any], case: Case) -> None:
    """Partial dependence on a few columns of every kind."""
    forest, table = fit_example(order)
    features: list[str | int] = [0, 1]
    if hasattr(forest, "feature_names_in_"):
        features = ["x0", "x4", "kind", "grade", "day", "flag", 1]
    for feature in features:
        name = f"feature {feature}"
        case.add_parts(name, PARTIAL_DEPENDENCE, partial_dependence, forest, table.X, feature)
    given = forest, table.X, 0, [0.4, 0.1]
    options = {"grid": [-1.0, 0.0, 2.0], "n_rows": 20}
    case.add_parts("grid", PARTIAL_DEPENDENCE, partial_dependence, *given, **options)


def add_conformal(case: Case) -> None:
    """Bounds by both methods, with the censoring times known and not."""
    n = 300
    simulated = datasets.make_aft(n, 5, random_state=0)
    limit = np.random.default_rng(1).exponential(8, n)
    y = censored(np.minimum(simulated.latent, limit), simulated.latent <= limit)
    test = datasets.make_aft(40, 5, random_state=2).X
    forest = CensoredQuantileForest(n_estimators=20, random_state=0, **PLAIN)
    for_censoring = CensoredQuantileForest(n_estimators=10, honest=False, random_state=1, **PLAIN)
    chosen: list[dict[str, Any]] = [
        {"method": "adaptive"},
        {"method": "adaptive", "coverage": 0.6, "calibration_share": 0.3},
        {"method": "fixed"},
        {"method": "fixed", "cutoff": 4.0},
        {"censoring_forest": for_censoring},
    ]
    for number, options in enumerate(chosen):
        for known in (None, limit):
            conformal = ConformalForest(forest, random_state=3, **options)
            conformal.fit(simulated.X, y, censoring_time=known)
            name = f"{number} {'C not known' if known is None else 'C known'}"
            case.add(f"{name} predict_lower", conformal.predict_lower, test)
            case.add(f"{name} predict_interval", conformal.predict_interval, test)
            case.add_value(f"{name} level_", conformal.level_)
            case.add_value(f"{name} cutoff_", conformal.cutoff_)


def add_tuning(case: Case) -> None:
    """Trials and the best forest of a small search, over our space and a given one."""
    X, y, _, _ = datasets.make_aft(120, 5, random_state=0)
    start = CensoredQuantileForest(n_estimators=90, random_state=0, n_jobs=2, **PLAIN)
    space = {"min_samples_leaf": [3, 5, 10], "honest": [True, False], "max_samples": [0.4, 0.7]}
    rows = {
        "sample_weight": np.linspace(0, 2, 120),
        "groups": np.arange(120) // 3,
        "quantiles": [0.3, 0.6],
        "space": space,
    }
    for name, options in (("", {}), ("weighted ", rows)):
        forest, trials = tune(start, X, y, n_trials=6, random_state=1, **options)
        for number, trial in enumerate(trials):
            skill, _ = trial.pop("skill"), trial.pop("seconds")
            case.add_value(f"{name}trial {number} skill", skill)
            case.add_value(f"{name}trial {number} settings", repr(sorted(trial.items())))
        case.add_value(f"{name}best settings", repr(sorted(forest.get_params().items())))
        case.add(f"{name}best predict", forest.predict, X, LEVELS, unidentified="clip")


def add_datasets(case: Case) -> None:
    """The simulations and the real tables."""
    for name in ("make_aft", "make_heteroscedastic", "make_sine", "make_dependent_censoring"):
        simulated = getattr(datasets, name)(50, random_state=0)
        for attribute in SIMULATION:
            case.add_value(f"{name} {attribute}", getattr(simulated, attribute))
        case.add(f"{name} quantile", simulated.quantile, simulated.X, [0.1, 0.5])
    loaded = {
        "pbc": datasets.load_pbc(),
        "pbc complete": datasets.load_pbc(complete_cases=True),
        "pbc frame": datasets.load_pbc(as_frame=True),
        "boston": datasets.load_boston_housing(),
        "boston censored": datasets.load_boston_housing(censored=True, random_state=0),
    }
    for name, table in loaded.items():
        case.add_value(f"{name} X", np.asarray(table.X))
        case.add_value(f"{name} y", table.y)
        case.add_value(f"{name} names", list(table.feature_names))


def add_dask(order: dict[str, Any], case: Case) -> None:
    """A forest that is fitted to, and asked about, tables in partitions."""
    from distributed import Client

    from cqrf.dask import DaskCensoredQuantileForest

    _, table = make_both(order)
    with Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=2):
        forest = DaskCensoredQuantileForest(**order["settings"], **PLAIN)
        frame = isinstance(table.X, pd.DataFrame)
        rows = table.X, table.y, table.sample_weight, table.groups
        forest.fit(*(in_partitions(each, frame) for each in rows))
        X = in_partitions(table.X_test, frame)
        asked = {
            "predict": forest.predict(X, LEVELS, unidentified="clip"),
            "predict_interval": forest.predict_interval(X, unidentified="nan"),
            "predict_survival": forest.predict_survival(X, table.times, **EXTEND),
            "predict_censoring": forest.predict_censoring(X, table.times, **EXTEND),
            "predict_mean": forest.predict_mean(X, **EXTEND),
            "max_quantile": forest.max_quantile(X),
        }
        if forest.bag_size > 1:
            asked["error"] = forest.survival_standard_error(X, table.times)
        for name, lazy in asked.items():
            case.add(name, lazy.compute)
        case.add("score", forest.score, X, in_partitions(table.y_test, frame))
        local = forest.to_local()
    case.add_value("feature_importances_", local.feature_importances_)
    case.add_parts("weights", SPARSE, local.weights, table.X_test)
    case.add_value("model file", saved_bytes(local))


def in_partitions(data: Any, as_frame: bool) -> Any:
    """The rows in three partitions of Dask's, in the same way for all that has as many rows."""
    import dask.array as da
    import dask.dataframe as dd

    if data is None:
        return None
    if not as_frame:
        size = -(-len(data) // 3)
        return da.from_array(data, chunks=(size, -1) if data.ndim == 2 else size)
    if isinstance(data, np.ndarray):
        names = data.dtype.names
        data = pd.DataFrame({name: data[name] for name in names}) if names else pd.Series(data)
    return dd.from_pandas(data, npartitions=3)


def list_cases(orders: dict[str, Any]) -> Iterator[tuple[str, Callable[[Case], None]]]:
    """Every case, by name."""
    for name, order in orders["forests"].items():
        yield name, partial(add_forest, order)
    for path in sorted(Path(orders["models"]).glob("*.cqrf")):
        yield f"saved model: {path.name}", partial(add_saved_model, path)
    yield "solve_quantiles", add_solve_quantiles
    yield "datasets", add_datasets
    for name, order in orders["examples"].items():
        yield f"metrics: {name}", partial(add_metrics, order)
        yield f"judgement: {name}", partial(add_judgement, order)
        yield f"partial dependence: {name}", partial(add_partial_dependence, order)
    yield "conformal", add_conformal
    if not orders["quick"]:
        yield "tuning", add_tuning
        yield "many rows", add_many_rows
    for name, order in orders["dask"].items():
        yield name, partial(add_dask, order)


def main() -> None:
    orders = json.load(sys.stdin)
    if not Path(cqrf.__file__).is_relative_to(orders["source"]):
        raise SystemExit(f"cqrf comes from {cqrf.__file__}, not from {orders['source']}")
    warnings.simplefilter("ignore")
    found = {}
    for name, run in list_cases(orders):
        if orders["only"] not in name:
            continue
        case = Case()
        try:
            run(case)
        except Exception as error:
            case.add_error("case", error)
        found[name] = case.digests
    print(json.dumps(found))


if __name__ == "__main__":
    main()
