"""Model files of every kind: forests, conformal forests, and treatment forests."""

from __future__ import annotations

from typing import NamedTuple

from cqrf import CensoredQuantileForest, ModelFileError
from cqrf._model.file_bytes import CONFORMAL_FILE, TREATMENT_FILE, FileKind
from cqrf.conformal import ConformalForest


class LoadedModel(NamedTuple):
    """A forest with its notes; ``conformal`` has its bounds, if there are any."""

    forest: CensoredQuantileForest
    conformal: ConformalForest | None = None


def load_model(path: str, n_jobs: int) -> LoadedModel:
    """Read the file of a forest or of a conformal forest."""
    if is_treatment_file(path):
        raise ModelFileError(
            f"{path}: holds a treatment forest, not a forest: give it to cqrf report or cqrf "
            f"serve, or in Python to {TREATMENT_FILE.loader}."
        )
    if not has_mark(path, CONFORMAL_FILE):
        return LoadedModel(CensoredQuantileForest.load(path).set_params(n_jobs=n_jobs))
    conformal = ConformalForest.load(path)
    for forest in (conformal.forest_, conformal.censoring_forest_):
        if forest is not None:
            forest.set_params(n_jobs=n_jobs)
    conformal.forest_.notes_ = conformal.notes_
    return LoadedModel(conformal.forest_, conformal)


def is_treatment_file(path: str) -> bool:
    """Whether a model file holds a treatment forest."""
    return has_mark(path, TREATMENT_FILE)


def has_mark(path: str, kind: FileKind) -> bool:
    """Whether a file starts as files of a kind do."""
    with open(path, "rb") as file:
        return file.read(len(kind.mark)) == kind.mark
