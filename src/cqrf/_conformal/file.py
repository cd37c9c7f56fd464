"""The model file of a conformal forest: the files of its forests, and its scores.

The layout of the bytes is that of :mod:`cqrf._model.file_bytes`. The sections ``forest`` and
``censoring_forest`` are whole model files of forests, with their own checksums; the second is empty
if there is no such forest. The sections of scores are those of the two classes of
:mod:`cqrf._conformal.scores`. All of it is checked before it is used, as a forest's file is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._conformal.scores import Scores, SharesByThreshold, WeightedScores
from cqrf._conformal.settings import FORESTS
from cqrf._model.file import Saved, naming, pack_model, unpack_model
from cqrf._model.file_bytes import CONFORMAL_FILE, pack, read_bytes, write_bytes
from cqrf._model.file_sections import CONFORMAL_FOREST, ModelFileError, cut, invalid
from cqrf._model.file_values import are_notes, are_settings

# Sections in their order, and their types.
SECTIONS = {
    "forest": "u1",
    "censoring_forest": "u1",  # may be empty
    "lower_scores": "<f8",  # scores or thresholds, descending
    "lower_weight": "<f8",  # cumulative weights or shares of misses
    "upper_scores": "<f8",  # both may be empty
    "upper_weight": "<f8",
}


class SavedConformal(NamedTuple):
    """What the file of a conformal forest holds.

    Attributes
    ----------
    forest, censoring_forest : Saved
        The fitted forests; the second is None if there is none.
    settings : dict
        Parameters other than the two forests.
    forest_settings : dict
        Parameters of the forests that were passed as ``"forest"`` and ``"censoring_forest"``; None
        for a forest that was not.
    coverage, cutoff : float
        Of the fit; the cutoff is infinite if there is none.
    weights_depend_on_query : bool
    lower, upper : WeightedScores or SharesByThreshold
        The second is None if upper ends of intervals are always infinite.
    notes : dict
    """

    forest: Saved
    censoring_forest: Saved | None
    settings: dict[str, Any]
    forest_settings: dict[str, dict[str, Any] | None]
    coverage: float
    cutoff: float
    weights_depend_on_query: bool
    lower: Scores
    upper: Scores | None
    notes: dict[str, str]


def write_conformal_file(path: str | os.PathLike[str], saved: SavedConformal) -> None:
    """Write the file whole, or leave what was there."""
    both = {"lower": saved.lower, "upper": saved.upper}
    header = {
        "cqrf": version("cqrf"),
        "settings": saved.settings,
        "forest_settings": saved.forest_settings,
        "notes": saved.notes,
        "coverage": saved.coverage,
        "cutoff": saved.cutoff if np.isfinite(saved.cutoff) else None,
        "weights_depend_on_query": saved.weights_depend_on_query,
        **{
            f"{side}_total": scores.total_weight if isinstance(scores, WeightedScores) else None
            for side, scores in both.items()
        },
    }
    arrays: dict[str, Any] = {
        "forest": _as_bytes(saved.forest),
        "censoring_forest": _as_bytes(saved.censoring_forest),
    }
    for side, scores in both.items():
        arrays[f"{side}_scores"] = [] if scores is None else scores[0]
        arrays[f"{side}_weight"] = [] if scores is None else scores[1]
    sections = {
        name: np.ascontiguousarray(arrays[name], dtype=kind) for name, kind in SECTIONS.items()
    }
    write_bytes(path, pack(CONFORMAL_FILE, header, sections))


def read_conformal_file(path: str | os.PathLike[str]) -> SavedConformal:
    """Read and check a file; a :class:`ModelFileError` names it and says what is wrong."""
    with naming(path):
        _, header, body = read_bytes(path, CONFORMAL_FILE)
        check_header(header)
        sections = cut(header["sections"], SECTIONS, body, CONFORMAL_FOREST)
        lower = _read_scores("lower", header, sections)
        upper = _read_scores("upper", header, sections)
        forest = _read_forest("forest", sections)
        censoring_forest = _read_forest("censoring_forest", sections)
        assert forest is not None
        assert lower is not None
        check_forests(forest, censoring_forest)
        cutoff = header["cutoff"]
        return SavedConformal(
            forest=forest,
            censoring_forest=censoring_forest,
            settings=header["settings"],
            forest_settings=_complete_settings(header["forest_settings"]),
            coverage=header["coverage"],
            cutoff=np.inf if cutoff is None else cutoff,
            weights_depend_on_query=header["weights_depend_on_query"],
            lower=lower,
            upper=upper,
            notes=header["notes"],
        )


def check_header(header: dict[str, Any]) -> None:
    """Raise unless every entry has its type and range."""

    def check(name: str, is_valid: Callable[[Any], bool]) -> None:
        if name not in header or not is_valid(header[name]):
            raise _invalid(name)

    check("settings", lambda x: are_settings(x) and not x.keys() & set(FORESTS))
    check("forest_settings", _are_settings_of_forests)
    check("notes", are_notes)
    check("coverage", lambda x: type(x) is float and 0 < x < 1)
    check("cutoff", lambda x: x is None or _is_finite(x))
    check("weights_depend_on_query", lambda x: type(x) is bool)
    for name in ("lower_total", "upper_total"):
        check(name, lambda x: x is None or (_is_finite(x) and x >= 0))
    check("sections", lambda x: isinstance(x, dict) and list(x) == list(SECTIONS))
    if header["weights_depend_on_query"] and (
        header["cutoff"] is None or header["lower_total"] is None
    ):
        raise _invalid("weights_depend_on_query")


def check_forests(forest: Saved, censoring_forest: Saved | None) -> None:
    """Raise unless both forests are of right-censored times and of the same features."""
    for saved in filter(None, (forest, censoring_forest)):
        if saved.model.censoring != "right" or saved.model.lower is not None:
            raise _invalid("censoring of a forest")
        if saved.names != forest.names or len(saved.model.edges) != len(forest.model.edges):
            raise _invalid("features of the two forests")


def _read_scores(
    side: str, header: dict[str, Any], sections: dict[str, NDArray[Any]]
) -> Scores | None:
    """Scores of one side, checked; None if there are none of the upper side."""
    scores, weight = (
        sections[f"{side}_{name}"].astype(np.float64) for name in ("scores", "weight")
    )
    total = header[f"{side}_total"]
    if len(scores) != len(weight):
        raise _invalid(f"length of {side}_scores")
    if not ((scores >= 0) & (scores <= 1)).all() or (np.diff(scores) > 0).any():
        raise _invalid(f"{side}_scores")
    if not (np.isfinite(weight) & (weight >= 0)).all() or (np.diff(weight) < 0).any():
        raise _invalid(f"{side}_weight")
    if total is not None:
        return WeightedScores(scores, weight, total)
    if not len(scores) and side == "upper":
        return None
    if not len(scores) or weight[-1] > 1:
        raise _invalid(f"{side}_weight")
    return SharesByThreshold(scores, weight)


def _read_forest(name: str, sections: dict[str, NDArray[Any]]) -> Saved | None:
    """One of the forests; None if there is no forest of censoring times."""
    section = sections[name]
    if name == "censoring_forest" and not len(section):
        return None
    try:
        return unpack_model(section.data)
    except ModelFileError as error:
        raise ModelFileError(f"does not hold {CONFORMAL_FOREST}: its {name} {error}") from None


def _as_bytes(saved: Saved | None) -> NDArray[np.uint8]:
    return np.frombuffer(b"" if saved is None else b"".join(pack_model(saved)), np.uint8)


def _are_settings_of_forests(settings: Any) -> bool:
    return (
        isinstance(settings, dict)
        and tuple(settings) == FORESTS
        and all(settings[name] is None or are_settings(settings[name]) for name in FORESTS)
    )


def _complete_settings(
    settings: dict[str, dict[str, Any] | None],
) -> dict[str, dict[str, Any] | None]:
    """Settings of forests; where none of a working model was written, there was no such model."""
    return {
        name: None if of_forest is None else {"working_model": None, **of_forest}
        for name, of_forest in settings.items()
    }


def _is_finite(value: Any) -> bool:
    return type(value) is float and bool(np.isfinite(value))


def _invalid(what: str) -> ModelFileError:
    return invalid(what, CONFORMAL_FOREST)
