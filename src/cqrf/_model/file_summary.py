"""What a model file holds, without its forest.

Length, checksum, header, times and columns are checked as when a forest is loaded, trees only by
their number of nodes. None of it needs a kernel, so that Numba is not imported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cqrf._input.causes import Cause
from cqrf._input.columns import Columns
from cqrf._input.target import oriented
from cqrf._model.file_causes import check_causes
from cqrf._model.file_checks import check_columns, check_header, check_text, check_times
from cqrf._model.file_intervals import check_intervals
from cqrf._model.file_sections import KINDS, Contents, cut_sections, invalid, upgrade_header
from cqrf._model.stored_columns import StoredLevels


class FileSummary(NamedTuple):
    """Training rows, trees, columns, settings and notes of a forest in a file."""

    n_rows: int
    n_events: int
    first_time: float
    last_time: float
    n_trees: int
    n_leaves: int
    root_share: float | None
    """Share of the working model's own curve; None without a working model."""
    names: list[str]
    columns: Columns
    importances: list[float]
    """Share of each feature in the gain of all splits."""
    settings: dict[str, Any]
    seed: int
    notes: dict[str, str]
    causes: dict[Cause, int]
    """Events of each cause; empty if there is one kind of event."""
    n_intervals: int
    """Events that are known only to an interval."""


def summarize(unpacked: tuple[int, dict[str, Any], memoryview]) -> FileSummary:
    """What the bytes of a file hold, as :func:`cqrf._model.file_bytes.read_bytes` gives them."""
    written_format, header, body = unpacked
    header = upgrade_header(header, written_format)
    check_header(header)
    contents = Contents(header, cut_sections(header, body), 0)
    check_times(contents)
    check_columns(contents)
    check_text(contents)
    sections = contents.sections
    names = contents.read_names() or [f"feature {j}" for j in range(contents.n_features)]
    times = oriented(sections["time"], header["censoring"])
    gain = sections["importance"]
    return FileSummary(
        n_rows=contents.n_rows,
        n_events=int(sections["event"].sum(dtype=np.int64)),
        first_time=float(times.min()),
        last_time=float(times.max()),
        n_trees=header["n_trees"],
        n_leaves=count_leaves(contents),
        root_share=header["root_share"],
        names=names,
        columns=read_columns(contents),
        importances=(gain / max(gain.sum(), np.finfo(np.float64).tiny)).tolist(),
        settings=header["settings"],
        seed=header["seed"],
        notes=header["notes"],
        causes=count_causes(contents),
        n_intervals=count_intervals(contents),
    )


def count_causes(contents: Contents) -> dict[Cause, int]:
    """Events of each cause of the training rows."""
    check_causes(contents)
    names, number = contents.header["causes"], contents.sections["cause"]
    counts = np.bincount(number, minlength=len(names) + 1)[1:].tolist()
    return dict(zip(names, counts, strict=True))


def count_intervals(contents: Contents) -> int:
    """Training rows whose event is known only to an interval."""
    check_intervals(contents)
    lower, time = contents.sections["lower"], contents.sections["time"]
    return int((lower < time).sum()) if len(lower) else 0


def count_leaves(contents: Contents) -> int:
    """Leaves of all trees, if every tree has one more of them than it has splits."""
    n_nodes, split_on = contents.sections["n_nodes"], contents.sections["split_on"]
    sizes = n_nodes.astype(np.int64)
    if len(sizes) != contents.header["n_trees"] or not (sizes > 0).all():
        raise invalid("n_nodes")
    if sizes.sum() != len(split_on) or len(split_on) != contents.header["n_nodes"]:
        raise invalid("length of split_on")
    starts = np.cumsum(sizes) - sizes
    n_leaves = np.add.reduceat(split_on == contents.n_features, starts, dtype=np.int64)
    if (2 * n_leaves != sizes + 1).any():
        raise invalid("split_on")
    return int(n_leaves.sum())


def read_columns(contents: Contents) -> Columns:
    """Kinds of the features, and the levels of those that are categories."""
    sections = contents.sections
    bounds = np.zeros(len(sections["text_lengths"]) + 1, np.int64)
    np.cumsum(sections["text_lengths"], out=bounds[1:])
    of_names = bounds[contents.n_names]
    levels = StoredLevels(
        contents.categorical,
        sections["n_levels"].copy(),
        sections["text"][of_names:].tobytes(),
        bounds[contents.n_names :] - of_names,
    )
    return Columns(tuple(KINDS[kind] for kind in sections["kinds"]), levels)
