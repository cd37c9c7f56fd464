"""The working model in a model file: its sections, written, checked and read.

``scored`` tells which features have scores. ``scores`` has those of each such feature in turn: one
for each of its bins, then that of a missing value. Without a working model all sections are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MISSING, N_BINS
from cqrf._model.file_sections import WORKING_SECTIONS, Contents, check_lengths, invalid
from cqrf._working_model.transform import LARGEST, WorkingModel


def working_arrays(
    working: WorkingModel | None, edges: Sequence[NDArray[np.float64]]
) -> dict[str, Any]:
    """The sections of a working model, or empty ones; ``edges`` has the bin edges by feature."""
    if working is None:
        return dict.fromkeys(WORKING_SECTIONS, ())
    last_bins = np.array([len(its_edges) for its_edges in edges])
    is_bin = _are_bins(last_bins)
    is_scored = (is_bin & (working.scores != 0)).any(axis=1)
    return {
        "scored": is_scored,
        "scores": working.scores[is_bin & is_scored[:, np.newaxis]],
        "knots": working.knots,
        "hazards": working.hazards,
        "linear_predictor": working.linear_predictor,
    }


def check_working(contents: Contents) -> None:
    """Check the sections of the working model; the other sections have been checked."""
    header, sections = contents.header, contents.sections
    if header["root_share"] is None:
        check_lengths(sections, dict.fromkeys(WORKING_SECTIONS, 0))
        return
    # A bag holds the same number of direct and of residual trees, at least two of either.
    bag_size = header["bag_size"]
    if header["n_trees"] < 2:
        raise invalid("n_trees")
    if bag_size > 1 and (bag_size < 4 or bag_size % 2):
        raise invalid("bag_size")
    check_lengths(sections, {"scored": contents.n_features, "linear_predictor": contents.n_rows})
    if not _are_bounded(sections["linear_predictor"]):
        raise invalid("linear_predictor")
    _check_scores(contents)
    _check_hazard(sections["knots"], sections["hazards"])


def read_working(contents: Contents) -> WorkingModel | None:
    """The working model of a file that has been checked."""
    sections, root_share = contents.sections, contents.header["root_share"]
    if root_share is None:
        return None
    is_scored = sections["scored"].astype(bool)
    scores = np.zeros((contents.n_features, N_BINS))
    scores[_are_bins(contents.last_bins) & is_scored[:, np.newaxis]] = sections["scores"]
    knots, hazards, linear_predictor = (
        sections[name].astype(np.float64) for name in ("knots", "hazards", "linear_predictor")
    )
    return WorkingModel(scores, knots, hazards, linear_predictor, root_share)


def _check_scores(contents: Contents) -> None:
    scored, scores = contents.sections["scored"], contents.sections["scores"]
    if (scored > 1).any():
        raise invalid("scored")
    n_scores = contents.last_bins[scored == 1] + 2
    check_lengths(contents.sections, {"scores": int(n_scores.sum(dtype=np.int64))})
    starts = np.cumsum(n_scores, dtype=np.int64) - n_scores
    if not _are_bounded(scores) or not np.logical_or.reduceat(scores != 0, starts).all():
        raise invalid("scores")


def _check_hazard(knots: NDArray[np.float64], hazards: NDArray[np.float64]) -> None:
    if len(knots) == 0 or len(knots) != len(hazards):
        raise invalid("length of knots")
    if not np.isfinite(knots).all() or not (knots[1:] > knots[:-1]).all():
        raise invalid("knots")
    # The largest residual, too, is finite.
    most = np.finfo(np.float64).max / np.exp(LARGEST)
    is_valid = hazards[0] >= 0 and 0 < hazards[-1] <= most and (hazards[1:] >= hazards[:-1]).all()
    if not is_valid:
        raise invalid("hazards")


def _are_bounded(values: NDArray[np.float64]) -> bool:
    """Whether all are linear predictors or scores; a NaN is not."""
    return bool(((values >= -LARGEST) & (values <= LARGEST)).all())


def _are_bins(last_bins: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Which bins each feature has, missing ones included: (n_features, N_BINS)."""
    bins = np.arange(N_BINS)
    return (bins <= last_bins[:, np.newaxis]) | (bins == MISSING)
