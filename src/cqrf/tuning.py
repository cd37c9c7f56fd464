"""Tuning: random search over a forest's settings by its out-of-bag skill.

No row is held out: every trial is judged by the trees that did not draw a row. Trials start with
few trees; after each round the better third goes on with three times as many, until what is left
is grown in full. The forest that was given is the first trial, goes through every round, and is
what comes back unless another beats it at full size: tuning never does worse out of bag.
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

from cqrf._input.target import read_target
from cqrf._model.predict import MaxLevel, Quantiles, read_weights, training_queries
from cqrf._model.skill import SCORE_QUANTILES, compute_oob_skill
from cqrf._runtime.arguments import is_count, read_count
from cqrf._runtime.progress import show_progress
from cqrf._survival.quantiles import QuantileSolver, UnidentifiedQuantileWarning, read_levels
from cqrf.estimator import CensoredQuantileForest

KEEP = 3  # one in so many trials goes on, with so many times as many trees
FEWEST_TREES = 30
# Node sizes tried: from the first to a share of the rows.
SMALLEST_NODE, LARGEST_NODE_SHARE, N_NODE_SIZES = 5, 0.1, 7
# Where a level is hidden, the last time of the neighbours stands for it with any settings: if it is
# hidden for most rows, skill says little. The level named instead has room to spare, as settings
# and seeds move what a row can tell.
MOST_HIDDEN, SHARE_THAT_CAN_TELL = 0.5, 0.75
NOT_TUNED = {"n_estimators", "random_state", "verbose", "n_jobs", "bag_size", "censoring"}
SPACE: dict[str, tuple[Any, ...]] = {
    "max_features": (None, 0.67, 0.33, "sqrt"),
    "max_samples": (0.35, 0.5, 0.65, 0.8),
    "honest": (True, False),
    "criterion": ("censored_quantile", "quantile", "variance", "logrank"),
}


class Tuned(NamedTuple):
    """What a search found.

    Attributes
    ----------
    forest : CensoredQuantileForest
        The best forest, fitted.
    trials : list of dict
        One row for each trial and round: ``trial`` (0 is the forest that was given), its
        settings, ``n_estimators``, out-of-bag ``skill`` (-inf if no row is out of bag) and
        ``seconds``;
        ``pandas.DataFrame(trials)`` makes a table of it.
    """

    forest: CensoredQuantileForest
    trials: list[dict[str, Any]]


def tune(
    forest: CensoredQuantileForest | None,
    X: Any,
    y: Any,
    *,
    n_trials: int = 27,
    quantiles: Sequence[float] = SCORE_QUANTILES,
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
        Where to start; what the search does not touch stays as it is. None: the defaults.
    X, y, sample_weight, groups :
        As in ``fit``.
    n_trials : int, default=27
        Settings to try, the given forest's among them.
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Levels that the skill is averaged over. If censoring hides each of them for more than half
        of the rows, out of bag in the given forest, a warning names a level that it does not hide.
    space : mapping of str to sequence or array, optional
        Values to draw from, for each setting of the forest to be searched. Default: the node
        size (``min_samples_split``, with ``min_samples_leaf`` half of it), ``max_features``,
        ``max_samples``, ``honest`` and ``criterion``.
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
    if forest is not None and not isinstance(forest, CensoredQuantileForest):
        raise ValueError(
            "forest must be a CensoredQuantileForest, or None for the defaults; found "
            f"{type(forest).__name__}."
        )
    start = CensoredQuantileForest() if forest is None else clone(forest)
    n_trials = read_count("n_trials", n_trials, 1)
    rng = check_random_state(random_state)
    values, n_rows = read_space(space, start), len(read_target(y).time)
    candidates = [{}, *(draw_settings(values, start, n_rows, rng) for _ in range(n_trials - 1))]
    rounds = plan_rounds(n_trials, read_count("n_estimators", start.n_estimators, 1))
    # One seed for all, the given forest's if it has one: trials differ by settings, not by luck.
    seed = start.random_state if is_count(start.random_state) else int(rng.randint(2**31 - 1))
    levels, _ = read_levels(quantiles)

    def run(number: int, n_trees: int) -> Trial:
        began = time.perf_counter()
        grown = clone(start).set_params(
            **candidates[number], n_estimators=n_trees, random_state=seed, verbose=0
        )
        grown.fit(X, y, sample_weight=sample_weight, groups=groups)
        predicted = grown.predict_oob(levels, unidentified="clip")
        skill = -np.inf  # where every tree has drawn every row, there is nothing to judge by
        if not np.isnan(predicted).all():
            skill = compute_oob_skill(grown.model_, predicted, levels)
        elif number == 0:
            raise ValueError(
                f"no row is out of bag in the forest given, with max_samples={start.max_samples!r}:"
                " every tree has drawn all rows or groups. Start from a forest with a smaller "
                "max_samples, such as 0.5."
            )
        return Trial(number, grown, skill, time.perf_counter() - began)

    def run_rounds() -> Iterator[Trial]:
        alive = list(range(n_trials))
        for n_kept, n_trees in rounds:
            skills = {}
            for number in alive[:n_kept]:
                trial = run(number, n_trees)
                skills[number] = trial.skill
                yield trial
            alive = [0, *sorted((n for n in skills if n), key=lambda n: -skills[n])]

    n_runs = sum(n for n, _ in rounds)
    finished: list[Trial] = []
    for trial in show_progress(run_rounds(), n_runs, n_runs, "trials") if verbose else run_rounds():
        finished.append(trial)
        if trial.forest.n_estimators < start.n_estimators:
            del trial.forest.model_  # only its settings are still wanted
    grown_in_full = [trial for trial in finished if hasattr(trial.forest, "model_")]
    warn_of_hidden(grown_in_full[0].forest, levels)
    best = max(grown_in_full, key=lambda trial: (trial.skill, trial.number == 0))
    names = sorted({name for candidate in candidates for name in candidate})
    return Tuned(
        best.forest.set_params(verbose=start.verbose),
        [trial.as_row(names) for trial in finished],
    )


class Trial(NamedTuple):
    """One forest of the search, and how it did."""

    number: int
    forest: CensoredQuantileForest
    skill: float
    seconds: float

    def as_row(self, names: Sequence[str]) -> dict[str, Any]:
        """The trial as a row of the table."""
        settings = {name: getattr(self.forest, name) for name in names}
        row = {"trial": self.number, **settings, "n_estimators": self.forest.n_estimators}
        return {**row, "skill": self.skill, "seconds": self.seconds}


def read_space(
    space: Mapping[str, Sequence[Any] | NDArray[Any]] | None, start: CensoredQuantileForest
) -> dict[str, Sequence[Any]] | None:
    """The values to draw from, checked; those of an array as Python's own, for a model file."""
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
    """One draw from the space, the given one or ours."""
    if space is not None:
        return {name: values[rng.randint(len(values))] for name, values in space.items()}
    settings = {name: values[rng.randint(len(values))] for name, values in SPACE.items()}
    if start.bag_size > 1:  # confidence intervals need honest trees on at most half of the rows
        settings |= {"honest": True, "max_samples": min(settings["max_samples"], 0.5)}
    largest = max(2 * SMALLEST_NODE, LARGEST_NODE_SHARE * n_rows)
    sizes = np.geomspace(SMALLEST_NODE, largest, N_NODE_SIZES)
    node_size = round(float(sizes[rng.randint(len(sizes))]))
    return {"min_samples_split": node_size + 1, "min_samples_leaf": node_size // 2, **settings}


def plan_rounds(n_trials: int, n_trees: int) -> list[tuple[int, int]]:
    """Trials and trees of each round: fewer trials, more trees; in the last round all trees.

    The forest that was given goes on with the best, so a round has at least two.
    """
    n_rounds = 1
    while n_trees / KEEP**n_rounds >= FEWEST_TREES and n_trials / KEEP ** (n_rounds - 1) > 2:
        n_rounds += 1
    rounds = []
    for later in range(n_rounds - 1, -1, -1):
        kept = max(min(2, n_trials), math.ceil(n_trials / KEEP ** (n_rounds - 1 - later)))
        rounds.append((kept, math.ceil(n_trees / KEEP**later)))
    return rounds


def warn_of_hidden(forest: CensoredQuantileForest, levels: NDArray[np.float64]) -> None:
    """Warn if censoring hides every level for most rows out of bag, and name one it does not."""
    model = forest.model_
    queries, solver = training_queries(model), QuantileSolver(censoring=model.censoring)
    readers = (Quantiles(solver, levels), MaxLevel(solver))
    solution, limits = read_weights(model, queries, readers, forest.n_jobs)
    found = solution.values
    hidden = np.isinf(found[~np.isnan(found).any(axis=1)])
    if hidden.mean(axis=0).min() <= MOST_HIDDEN:
        return
    is_right = model.censoring == "right"
    reach = limits if is_right else 1.0 - limits
    told = math.floor(100 * np.nanquantile(reach, 1.0 - SHARE_THAT_CAN_TELL)) / 100
    instead = (
        f"Pass quantiles=[{told if is_right else 1.0 - told:g}], a level that most rows can tell."
        if told > 0
        else "There is no other level that most rows can tell: more events are needed."
    )
    warnings.warn(
        f"censoring hides {hidden.mean():.0%} of the out-of-bag quantiles at quantiles="
        f"{levels.tolist()}, so that skill says little about most rows. {instead}",
        UnidentifiedQuantileWarning,
        stacklevel=3,
    )
