"""Tuning: random search over a forest's settings by out-of-bag skill, with successive halving.

No rows are held out: a row is predicted by the trees that did not draw it. All trials start with
few trees. After each round the best third continues with three times as many trees, until the
remaining trials have all trees.

The given forest is trial 0 and takes part in every round. It is returned unless another trial beats
it with all trees, so the out-of-bag skill never gets worse.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from cqrf._input.intervals import refuse_intervals
from cqrf._input.target import read_target
from cqrf._model.queries import training_queries
from cqrf._model.skill import compute_oob_skill
from cqrf._readers.quantiles import MaxLevel, Quantiles
from cqrf._readers.reader import read_weights
from cqrf._runtime.arguments import is_count, read_count
from cqrf._runtime.progress import show_progress
from cqrf._survival.quantiles import QuantileSolver, UnidentifiedQuantileWarning, read_levels
from cqrf.estimator import CensoredQuantileForest

__all__ = ["Tuned", "tune"]

KEEP = 3  # one in KEEP trials continues, with KEEP times as many trees
FEWEST_TREES = 30
# Node sizes tried: from the first to this share of the rows.
SMALLEST_NODE, LARGEST_NODE_SHARE, N_NODE_SIZES = 5, 0.1, 7
# A quantile that is not identifiable is clipped to the last time of the neighbours, whatever the
# settings. If this is so for most rows at every level, skill says little, and a warning suggests a
# level. That level is identifiable in IDENTIFIABLE_SHARE of the rows, as the share varies with
# settings and seeds.
MAX_UNIDENTIFIED, IDENTIFIABLE_SHARE = 0.5, 0.75
NOT_TUNED = {"n_estimators", "random_state", "verbose", "n_jobs", "bag_size", "censoring"}
NOT_TUNED |= {"prediction", "unidentified", "time_unit", "event_name"}  # skill is the same
SPACE: dict[str, tuple[Any, ...]] = {
    "max_features": (None, 0.67, 0.33, "sqrt"),
    "working_model": ("cox", "cox", "cox", None),  # it helps most tables, with any criterion
    "max_samples": (0.35, 0.5, 0.65, 0.8),
    "honest": (True, False),
    "criterion": ("censored_quantile", "quantile", "variance", "logrank"),
}
NOT_SETTINGS = ("trial", "n_estimators", "skill", "seconds")  # columns of the table of trials


class Tuned(NamedTuple):
    """Result of a search.

    Attributes
    ----------
    forest : CensoredQuantileForest
        The best forest, fitted.
    trials : list of dict
        One row for each trial and round: ``trial`` (0 is the forest that was given), its
        settings, ``n_estimators``, out-of-bag ``skill`` (-inf if no row is out of bag) and
        ``seconds``, the time to fit this forest and to predict the rows out of bag; the first
        includes the compilation of what is not in Numba's cache yet.
        ``pandas.DataFrame(trials)`` makes a table of it.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest, tune
    >>> from cqrf.datasets import make_aft
    >>> X, y, _, _ = make_aft(100, 2, random_state=0)
    >>> start = CensoredQuantileForest(n_estimators=30, random_state=0)
    >>> found = tune(start, X, y, n_trials=2, random_state=0)
    >>> found.trials[0]["trial"]
    0
    """

    forest: CensoredQuantileForest
    trials: list[dict[str, Any]]

    def __repr__(self) -> str:
        complete = [row for row in self.trials if row["n_estimators"] == self.forest.n_estimators]
        best = max(row["skill"] for row in complete)
        start = {k: repr(v) for k, v in self.trials[0].items() if k not in NOT_SETTINGS}
        found = {name: repr(getattr(self.forest, name)) for name in start}
        changed = [f"{name}={found[name]}" for name in start if found[name] != start[name]]
        n_trials = len({row["trial"] for row in self.trials})
        return (
            f"Tuned({', '.join(changed) or 'the forest given'}; out-of-bag skill {best:.3f}, "
            f"the best of {n_trials} trial{'' if n_trials == 1 else 's'})"
        )


def tune(
    forest: CensoredQuantileForest | None,
    X: Any,
    y: Any,
    *,
    n_trials: int = 27,
    quantiles: Sequence[float] | None = None,
    space: Mapping[str, Sequence[Any] | NDArray[Any]] | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Tuned:
    """Search for the settings with the best out-of-bag skill.

    Parameters
    ----------
    forest : CensoredQuantileForest or None
        Trial 0. Settings that are not searched keep its values. None: the defaults.
    X, y, sample_weight, groups :
        As in ``fit``.
    n_trials : int, default=27
        Number of settings to try, those of the given forest included.
    quantiles : sequence of float, optional
        Levels that the skill is averaged over. Default: those of ``score_oob``. A warning suggests
        another level if none is identifiable out of bag in at least half of the rows.
    space : mapping of str to sequence or array, optional
        Values to draw from, for each setting to search. Default: the node size
        (``min_samples_split``, with ``min_samples_leaf`` half of it), ``max_features``,
        ``working_model``, ``max_samples``, ``honest`` and ``criterion``.
    random_state : int, RandomState or None
        Seed of the draws.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    Tuned
        ``forest``, fitted with all of its trees, and ``trials``; unpacks in this order.

    Examples
    --------
    >>> import cqrf
    >>> from cqrf.datasets import make_sine
    >>> X, y, _, _ = make_sine(200, random_state=0)
    >>> start = cqrf.CensoredQuantileForest(n_estimators=100, random_state=0)
    >>> forest, trials = cqrf.tune(start, X, y, n_trials=9, random_state=0)
    >>> bool(forest.score_oob() >= start.fit(X, y).score_oob())
    True
    """
    start, rng = read_start(forest), check_random_state(random_state)
    candidates = draw_candidates(space, start, count_rows(y), n_trials, rng)
    data = TrainingData(X, y, sample_weight, groups)
    levels = None if quantiles is None else read_levels(quantiles)[0]
    search = Search(start, candidates, data, levels, choose_seed(start, rng))
    finished = run_search(search, bool(verbose))
    complete = [trial for trial in finished if hasattr(trial.forest, "model_")]
    warn_of_unidentified(complete[0].forest, search.find_levels(complete[0].forest))
    best = max(complete, key=lambda trial: (trial.skill, trial.number == 0)).forest
    return Tuned(best.set_params(verbose=start.verbose), search.tabulate(finished))


class TrainingData(NamedTuple):
    """Arguments of ``fit``."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None
    groups: ArrayLike | None


class Trial(NamedTuple):
    """A fitted forest of the search, and its out-of-bag skill."""

    number: int
    forest: CensoredQuantileForest
    skill: float
    seconds: float

    def as_row(self, names: Sequence[str]) -> dict[str, Any]:
        """The trial as a row of the table."""
        settings = {name: getattr(self.forest, name) for name in names}
        row = {"trial": self.number, **settings, "n_estimators": self.forest.n_estimators}
        return {**row, "skill": self.skill, "seconds": self.seconds}


class Search(NamedTuple):
    """What all trials share. Trial k has the settings of ``start``, changed by ``candidates[k]``.

    ``levels`` are None for those of the scores, which depend on the training rows alone.
    ``seed`` is the same for all trials, so that they differ by their settings only.
    """

    start: CensoredQuantileForest
    candidates: list[dict[str, Any]]
    data: TrainingData
    levels: NDArray[np.float64] | None
    seed: int

    def find_levels(self, forest: CensoredQuantileForest) -> NDArray[np.float64]:
        """Levels that the skill of a fitted forest is averaged over."""
        return np.array(forest.model_.score_levels) if self.levels is None else self.levels

    def run_trial(self, number: int, n_trees: int) -> Trial:
        """Fit a trial, and compute its out-of-bag skill."""
        began = time.perf_counter()
        forest = clone(self.start).set_params(
            **self.candidates[number], n_estimators=n_trees, random_state=self.seed, verbose=0
        )
        forest.fit(
            self.data.X,
            self.data.y,
            sample_weight=self.data.sample_weight,
            groups=self.data.groups,
        )
        levels = self.find_levels(forest)
        predicted = forest.predict_oob(levels, unidentified="clip")
        skill = -np.inf
        if not np.isnan(predicted).all():
            skill = compute_oob_skill(forest.model_, predicted, levels)
        elif number == 0:
            raise ValueError(
                "no row is out of bag in the forest given, with max_samples="
                f"{self.start.max_samples!r}: every tree has drawn all rows or groups. Start from "
                "a forest with a smaller max_samples, such as 0.5."
            )
        return Trial(number, forest, skill, time.perf_counter() - began)

    def run_rounds(self, rounds: Sequence[tuple[int, int]]) -> Iterator[Trial]:
        """Run rounds of (number of trials, number of trees); the best trials of each continue."""
        ranking = list(range(len(self.candidates)))
        for n_kept, n_trees in rounds:
            skills = {}
            for number in ranking[:n_kept]:
                trial = self.run_trial(number, n_trees)
                skills[number] = trial.skill
                yield trial
            ranking = [0, *sorted((n for n in skills if n), key=lambda n: -skills[n])]

    def tabulate(self, trials: Sequence[Trial]) -> list[dict[str, Any]]:
        """One row for each trial, with every setting that was searched."""
        names = sorted({name for candidate in self.candidates for name in candidate})
        return [trial.as_row(names) for trial in trials]


def count_rows(y: Any) -> int:
    """Rows of a target, which must have scores."""
    target = read_target(y)
    refuse_intervals(target.lower, "tune is")
    return len(target.time)


def run_search(search: Search, verbose: bool) -> list[Trial]:
    """All trials of all rounds; those with fewer than all trees keep their settings only."""
    n_estimators = read_count("n_estimators", search.start.n_estimators, 1)
    rounds = plan_rounds(len(search.candidates), n_estimators)
    n_runs = sum(n for n, _ in rounds)
    trials = search.run_rounds(rounds)
    finished = []
    for trial in show_progress(trials, n_runs, n_runs, "trials") if verbose else trials:
        finished.append(trial)
        if trial.forest.n_estimators < n_estimators:
            del trial.forest.model_
    return finished


def read_start(forest: Any) -> CensoredQuantileForest:
    """A copy of the given forest, or one with default settings."""
    if forest is None:
        return CensoredQuantileForest()
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(
            "forest must be a CensoredQuantileForest, or None for the defaults; found "
            f"{type(forest).__name__}."
        )
    return clone(forest)


def choose_seed(start: CensoredQuantileForest, rng: np.random.RandomState) -> int:
    """Seed of every trial: that of the given forest, if it has one."""
    return start.random_state if is_count(start.random_state) else int(rng.randint(2**31 - 1))


def draw_candidates(
    space: Mapping[str, Sequence[Any] | NDArray[Any]] | None,
    start: CensoredQuantileForest,
    n_rows: int,
    n_trials: int,
    rng: np.random.RandomState,
) -> list[dict[str, Any]]:
    """Changed settings of each trial; none for trial 0."""
    n_drawn = read_count("n_trials", n_trials, 1) - 1
    values = read_space(space, start)
    return [{}, *(draw_settings(values, start, n_rows, rng) for _ in range(n_drawn))]


def read_space(
    space: Mapping[str, Sequence[Any] | NDArray[Any]] | None, start: CensoredQuantileForest
) -> dict[str, Sequence[Any]] | None:
    """The values to draw from, checked; arrays become lists, as model files hold plain values."""
    if space is None:
        return None
    if not isinstance(space, Mapping):
        raise ValueError(
            f"space={space!r} must be a dict of settings and the values to try, such as "
            "{'min_samples_leaf': [3, 5, 10]}."
        )
    unknown = sorted(set(space) - (set(start.get_params()) - NOT_TUNED))
    if unknown:
        raise ValueError(
            f"space has {unknown[0]!r}, which is no setting of the forest that can be tuned."
        )
    read = {}
    for name, values in space.items():
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        if isinstance(listed, str) or not isinstance(listed, Sequence) or not len(listed):
            raise ValueError(f"space[{name!r}]={values!r} must be a list of at least one value.")
        read[name] = listed
    return read


def draw_settings(
    space: Mapping[str, Sequence[Any]] | None,
    start: CensoredQuantileForest,
    n_rows: int,
    rng: np.random.RandomState,
) -> dict[str, Any]:
    """One draw from the given space, or from the default one."""
    if space is not None:
        return {name: values[rng.randint(len(values))] for name, values in space.items()}
    settings = {name: values[rng.randint(len(values))] for name, values in SPACE.items()}
    if start.solver != "root" or start.censoring_survival != "beran":  # it needs curves
        settings["working_model"] = "auto"
    if start.bag_size > 1:  # confidence intervals need honest trees on at most half of the rows
        settings |= {"honest": True, "max_samples": min(settings["max_samples"], 0.5)}
    largest = max(2 * SMALLEST_NODE, LARGEST_NODE_SHARE * n_rows)
    sizes = np.geomspace(SMALLEST_NODE, largest, N_NODE_SIZES)
    node_size = round(float(sizes[rng.randint(len(sizes))]))
    return {"min_samples_split": node_size + 1, "min_samples_leaf": node_size // 2, **settings}


def plan_rounds(n_trials: int, n_trees: int) -> list[tuple[int, int]]:
    """(Number of trials, number of trees) of each round; the last round has all trees.

    The given forest continues beside the best, so a round has at least two trials.
    """
    n_rounds = 1
    while n_trees / KEEP**n_rounds >= FEWEST_TREES and n_trials / KEEP ** (n_rounds - 1) > 2:
        n_rounds += 1
    rounds = []
    for later in range(n_rounds - 1, -1, -1):
        kept = max(min(2, n_trials), math.ceil(n_trials / KEEP ** (n_rounds - 1 - later)))
        rounds.append((kept, math.ceil(n_trees / KEEP**later)))
    return rounds


def warn_of_unidentified(forest: CensoredQuantileForest, levels: NDArray[np.float64]) -> None:
    """Warn if no level is identifiable out of bag in most rows, and suggest one that is."""
    model = forest.model_
    queries, solver = training_queries(model), QuantileSolver(censoring=model.censoring)
    readers = (Quantiles(solver, levels), MaxLevel(solver))
    solution, limits = read_weights(model, queries, readers, forest.n_jobs)
    found = solution.values
    is_unidentified = np.isinf(found[~np.isnan(found).any(axis=1)])
    if is_unidentified.mean(axis=0).min() <= MAX_UNIDENTIFIED:
        return
    is_right = model.censoring == "right"
    reach = limits if is_right else 1.0 - limits
    level = math.floor(100 * np.nanquantile(reach, 1.0 - IDENTIFIABLE_SHARE)) / 100
    advice = (
        f"Pass quantiles=[{level if is_right else 1.0 - level:g}], a level that is identifiable "
        "in most rows."
        if level > 0
        else "No level is identifiable in most rows: more events are needed."
    )
    warnings.warn(
        f"{is_unidentified.mean():.0%} of the out-of-bag quantiles at quantiles={levels.tolist()} "
        "are not identifiable because of censoring, so that skill says little about most rows. "
        f"{advice}",
        UnidentifiedQuantileWarning,
        stacklevel=3,
    )
