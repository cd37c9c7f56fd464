"""Model files of both kinds: forests, and conformal forests."""

from __future__ import annotations

from typing import NamedTuple

from cqrf import CensoredQuantileForest
from cqrf._model.file_bytes import CONFORMAL_FILE
from cqrf.conformal import ConformalForest


class LoadedModel(NamedTuple):
    """A forest with its notes; ``conformal`` has its bounds, if there are any."""

    forest: CensoredQuantileForest
    conformal: ConformalForest | None = None


def load_model(path: str, n_jobs: int) -> LoadedModel:
    """Read a model file of either kind."""
    with open(path, "rb") as file:
        is_conformal = file.read(len(CONFORMAL_FILE.mark)) == CONFORMAL_FILE.mark
    if not is_conformal:
        return LoadedModel(CensoredQuantileForest.load(path).set_params(n_jobs=n_jobs))
    conformal = ConformalForest.load(path)
    for forest in (conformal.forest_, conformal.censoring_forest_):
        if forest is not None:
            forest.set_params(n_jobs=n_jobs)
    conformal.forest_.notes_ = conformal.notes_
    return LoadedModel(conformal.forest_, conformal)
