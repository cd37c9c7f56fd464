"""What ``cqrf predict`` writes: columns of predictions, from one pass over the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf._input.causes import Cause
from cqrf._input.features import read_features
from cqrf._model.queries import Queries, encode_queries
from cqrf._model.settings import read_solver
from cqrf._readers.curves import KnownTimes, SurvivalAt
from cqrf._readers.errors import QuantileIntervals, SurvivalErrors
from cqrf._readers.incidence import FromIncidence, choose_mean, choose_quantiles
from cqrf._readers.intervals import QuantileBounds, fill_bounds
from cqrf._readers.quantiles import MaxLevel
from cqrf._readers.reader import Reader, read_weights
from cqrf._runtime.arguments import exactly, read_choice
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf._survival.quantiles import UNIDENTIFIED, QuantileSolver, interval_levels, read_levels
from cqrf._survival.step_curves import BEYOND_MEAN
from cqrf.cli.cause_columns import find_cause
from cqrf.cli.incidence_outputs import ENDS, IncidenceOutputs, end_columns, of_cause
from cqrf.cli.models import LoadedModel
from cqrf.conformal import ConformalForest


class Outputs(NamedTuple):
    """What to predict for every row."""

    quantiles: list[float] | None = None
    """None: the default of the model."""
    survival: Sequence[float] = ()
    incidence: Sequence[float] = ()
    cause: Cause | None = None
    """With several causes, the one to predict; None: any event, and the incidence of all."""
    interval: float | None = None
    mean: bool = False
    horizon: float | None = None
    max_quantile: bool = False
    bounds: bool = False
    """Whether quantiles are given by both ends of the interval that each lies in."""
    lower_bound: float | None = None
    confidence: float | None = None
    unidentified: str = "inf"
    beyond: str = "nan"

    def check(self) -> None:
        """Raise unless something is to be predicted, and every option has what it goes with."""
        values = (self.quantiles, self.survival, self.incidence, self.interval, self.mean)
        if not any(values) and not self.max_quantile and self.lower_bound is None:
            raise ValueError(
                "nothing to predict: give --quantiles, --survival, --incidence, --interval or "
                "--mean."
            )
        if self.confidence is not None and not (self.quantiles or self.survival or self.incidence):
            raise ValueError(
                "--confidence is that of --quantiles, --survival or --incidence: give one of them."
            )
        if self.cause is not None:
            self._check_cause()
        if self.bounds and not self.quantiles:
            raise ValueError("--bounds are those of --quantiles: give both.")
        if self.horizon is not None and not self.mean:
            raise ValueError("--horizon is that of --mean: give both.")
        read_choice("--unidentified", self.unidentified, UNIDENTIFIED)
        read_choice("--beyond", self.beyond, BEYOND_MEAN)

    def _check_cause(self) -> None:
        """Raise if something is asked for that only the time to any event has."""
        for option, value in (("--interval", self.interval), ("--lower-bound", self.lower_bound)):
            if value is not None:
                raise ValueError(
                    f"{option} is that of the time to any event: leave out --cause, or {option}."
                )
        if self.confidence is not None and self.quantiles:
            raise ValueError(
                "there are no confidence intervals of the quantiles of one cause: leave out "
                "--quantiles, or --confidence."
            )


class Predicted(NamedTuple):
    """Columns of predictions, and where the data did not reach.

    Attributes
    ----------
    columns : dict of str to ndarray
        One value per row.
    n_unidentified : int
        Quantiles that are not identifiable.
    n_unknown : int
        Survival probabilities and means beyond the end of their curves.
    known : ndarray of shape (n, 2)
        First and last time at which the curves of rows with such values are known.
    n_survived : int
        Rows that have already survived longer than is known.
    n_without_mean : int
        Other rows that have survived the default horizon of the mean.
    """

    columns: dict[str, NDArray[np.float64]]
    n_unidentified: int = 0
    n_unknown: int = 0
    known: NDArray[np.float64] = np.empty((0, 2))
    n_survived: int = 0
    n_without_mean: int = 0


def resolve(outputs: Outputs, loaded: LoadedModel, model: str) -> Outputs:
    """The outputs with the defaults of a model: its bounds if it has them, else the median.

    The cause becomes one of the model's.
    """
    conformal, causes = loaded.conformal, loaded.forest.causes_
    if outputs.cause is not None:
        cause = find_cause(str(outputs.cause), causes, "--cause", model)
        outputs = outputs._replace(cause=cause)
        if outputs.confidence is not None and outputs.quantiles is None:
            return outputs._replace(quantiles=[])
    if outputs.incidence and not causes:
        raise ValueError(
            f"--incidence: {model} knows one kind of event, whose incidence is 1 - P(T > t): give "
            "--survival."
        )
    if outputs.quantiles is not None:
        return outputs
    if conformal is None:
        return outputs._replace(quantiles=[0.5])
    others = (outputs.survival, outputs.incidence, outputs.interval, outputs.mean)
    if any(others) or outputs.max_quantile or outputs.lower_bound is not None:
        return outputs._replace(quantiles=[])
    return outputs._replace(quantiles=[], lower_bound=conformal.coverage_)


def check_model(loaded: LoadedModel, outputs: Outputs, model: str, given: Any) -> None:
    """Raise if this model file cannot give what is asked for."""
    forest, conformal = loaded
    if conformal is None and outputs.lower_bound is not None:
        raise ValueError(
            f"--lower-bound needs a conformal model, which {model} is not: make one with cqrf "
            "conformal."
        )
    if conformal is not None:
        for option in ("lower_bound", "interval"):
            asked = getattr(outputs, option)
            name = "--" + option.replace("_", "-")
            if asked is not None and not np.isclose(asked, conformal.coverage_):
                raise ValueError(
                    f"{name} {exactly(asked)}: {model} is calibrated for a coverage of "
                    f"{exactly(conformal.coverage_)}. Give that one, or make a model with cqrf "
                    f"conformal --coverage {exactly(asked)}."
                )
            if asked is not None and given is not None:
                raise ValueError(f"{name} and --given do not go together: bounds are of all of T.")
    if outputs.bounds and forest.model_.lower is None:
        raise ValueError(
            f"--bounds: {model} was not fitted to intervals, so both ends of a quantile are the "
            "quantile: leave it out."
        )
    if outputs.confidence is None:
        return
    confidence_width(outputs.confidence)
    if given is not None:
        raise ValueError(
            "--confidence and --given do not go together: what remains has no standard errors."
        )
    if forest.model_.sampling.bag_size == 1:
        raise ValueError(
            f"--confidence needs trees in bags, which {model} does not have: fit it with "
            "--bag-size 2."
        )


def predict_bounds(conformal: ConformalForest, X: Any, outputs: Outputs) -> dict[str, Any]:
    """Columns of the bounds and intervals of a conformal model."""
    columns: dict[str, Any] = {}
    if outputs.interval is not None:
        names = [f"{end}{exactly(outputs.interval)}" for end in ENDS]
        columns |= dict(zip(names, conformal.predict_interval(X).T, strict=True))
    if outputs.lower_bound is not None:
        columns[f"lower_bound{exactly(outputs.lower_bound)}"] = conformal.predict_lower(X)
    return columns


def predict_columns(
    forest: CensoredQuantileForest,
    X: Any,
    outputs: Outputs,
    given: NDArray[np.float64] | float | None = None,
) -> Predicted:
    """One column for each predicted value."""
    model = forest.model_
    readers = make_readers(outputs, read_solver(forest, model.censoring), given is not None)
    incidences = list_incidences(outputs, model.causes)
    readers |= incidences.readers()
    if not readers:
        return Predicted({})
    matrix, _ = read_features(forest, X, model.columns)
    queries = encode_queries(model, matrix, forest.n_jobs, given)
    found = read_weights(model, queries, list(readers.values()), forest.n_jobs)
    read = dict(zip(readers, found, strict=True))
    columns = {**_quantile_columns(read, outputs), **_survival_columns(read, outputs, model)}
    columns |= incidences.columns(read)
    mean = "mean" if outputs.cause is None else "time_lost"
    names = {mean: "mean", "max_quantile": "max_quantile"}
    columns |= {
        of_cause(name, outputs.cause): read[key] for name, key in names.items() if key in read
    }
    infinite = np.isinf(read["quantiles"].values).sum() if "quantiles" in read else 0
    if "known" not in read:
        return Predicted(columns, int(infinite))
    has_survived, without_mean = _have_survived(read["known"], queries, outputs, model.follow_up)
    known_as = ("survival", "incidence", "mean")  # the mean is the last
    values = [read[name].reshape(len(matrix), -1) for name in known_as if name in read]
    unknown = np.isnan(np.hstack([*values, np.empty((len(matrix), 0))]))
    unknown[has_survived] = False
    unknown[without_mean, -1:] = False
    return Predicted(
        columns,
        int(infinite),
        int(unknown.sum()),
        read["known"][unknown.any(axis=1)],
        int(has_survived.sum()),
        int(without_mean.sum()),
    )


def list_incidences(outputs: Outputs, causes: Sequence[Cause]) -> IncidenceOutputs:
    """The incidence of one cause, or of every cause."""
    chosen = causes if outputs.cause is None else [outputs.cause]
    beyond = "nan" if outputs.beyond == "restrict" else outputs.beyond
    return IncidenceOutputs(outputs.incidence, chosen, beyond, outputs.confidence)


def make_readers(
    outputs: Outputs, solver: QuantileSolver, with_given: bool
) -> dict[str, Reader[Any, Any]]:
    """Readers of the weights by name; quantiles and the ends of the interval are one."""
    ends = [] if outputs.interval is None else interval_levels(outputs.interval)
    quantiles = outputs.quantiles or []
    readers: dict[str, Reader[Any, Any]] = {}
    if outputs.survival or outputs.incidence or outputs.mean or with_given:
        readers["known"] = KnownTimes()
    if quantiles or ends:
        levels = read_levels([*quantiles, *ends])[0]
        readers["quantiles"] = choose_quantiles(solver, levels, outputs.cause)
    if outputs.bounds:
        readers["bounds"] = QuantileBounds(solver, read_levels(quantiles)[0])
    if outputs.survival:
        beyond = "nan" if outputs.beyond == "restrict" else outputs.beyond
        readers["survival"] = SurvivalAt(outputs.survival, beyond)
    if outputs.mean:
        readers["mean"] = choose_mean(outputs.cause, outputs.horizon, outputs.beyond)
    if outputs.max_quantile:
        cause = outputs.cause
        readers["max_quantile"] = (
            MaxLevel(solver) if cause is None else FromIncidence(lambda curves: curves.last(cause))
        )
    if outputs.confidence is not None:
        width = confidence_width(outputs.confidence)
        if quantiles:
            readers["ends"] = QuantileIntervals(solver, read_levels(quantiles)[0], width)
        if outputs.survival:
            readers["errors"] = SurvivalErrors(outputs.survival)
    return readers


def _quantile_columns(read: dict[str, Any], outputs: Outputs) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "quantiles" not in read:
        return columns
    quantiles = outputs.quantiles or []
    values = read["quantiles"].fill(outputs.unidentified).T
    bounds = fill_bounds(read["bounds"], outputs.unidentified) if "bounds" in read else None
    for k, level in enumerate(quantiles):
        if bounds is not None:
            names = [f"q{exactly(level)}_{end}" for end in ENDS]
            columns |= dict(zip(names, bounds[:, k].T, strict=True))
            continue
        columns[of_cause(f"q{exactly(level)}", outputs.cause)] = values[k]
        if "ends" in read:
            name, confidence = f"q{exactly(level)}", float(outputs.confidence or 0.0)
            columns |= end_columns(name, read["ends"][:, k].T, confidence)
    if outputs.interval is not None:
        names = [f"{end}{exactly(outputs.interval)}" for end in ENDS]
        columns |= dict(zip(names, values[len(quantiles) :], strict=True))
    return columns


def _survival_columns(read: dict[str, Any], outputs: Outputs, model: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "survival" not in read:
        return columns
    survival, ends = read["survival"], None
    if "errors" in read:
        width = confidence_width(float(outputs.confidence or 0.0))
        ends = survival_interval(survival, width * read["errors"], model.censoring)
    for k, time in enumerate(outputs.survival):
        name = f"survival{exactly(time)}"
        columns[name] = survival[:, k]
        if ends is not None:
            confidence = float(outputs.confidence or 0.0)
            columns |= end_columns(name, [end[:, k] for end in ends], confidence)
    return columns


def _have_survived(
    known: NDArray[np.float64], queries: Queries, outputs: Outputs, follow_up: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows have survived all that is known, and which others the mean's default horizon."""
    nobody = np.full(len(known), False)
    if queries.given is None:
        return nobody, nobody
    has_survived = np.isneginf(known[:, 1])
    if not outputs.mean or outputs.horizon is not None:
        return has_survived, nobody
    return has_survived, (queries.given >= follow_up) & ~has_survived
