"""Checks of a model file: every number is compared with the others before the model is built.

The header and the sections are those of :mod:`cqrf._model.file`. Until all checks have passed,
only the file's own bytes are in memory: sections are views of them. What is printed about a file
needs no kernel to be checked, and so no Numba: kernels are imported where they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MAX_BINS, MISSING
from cqrf._input.causes import are_causes
from cqrf._input.columns import CATEGORY, DATE, DURATION, MAX_LEVELS, NUMBER
from cqrf._input.target import SIDES
from cqrf._input.units import are_unit_codes
from cqrf._model.file_values import are_notes, are_settings

ALIGNMENT = 8
KINDS = (NUMBER, DATE, DURATION, CATEGORY)
# Sections in their order, and their types.
SECTIONS = {
    "time": "<f8",
    "event": "u1",
    "order": "<i4",
    "unit_of_row": "<i4",  # empty if every row is its own unit
    "codes": "u1",  # empty, like unit_of_row, if the forest keeps no training features
    "weight": "<f4",  # may be empty
    "entry": "<f8",  # may be empty
    "n_edges": "u1",  # 0 for a category: its levels are its bins
    "edges": "<f8",
    "kinds": "u1",
    "n_levels": "u1",
    "text_lengths": "<u4",  # of the names, if there are any, then of the levels
    "text": "u1",
    "n_nodes": "<u4",
    "split_on": "",  # the narrowest of u1, u2, u4 that holds the number of features
    "split_code": "u1",  # of splits on numbers
    "missing_left": "u1",  # a bit for each split
    "subsets": "<u8",
    "leaves": "u1",
    "importance": "<f8",
    "scored": "u1",  # these five are empty without a working model: see file_working
    "scores": "<f8",
    "knots": "<f8",
    "hazards": "<f8",
    "linear_predictor": "<f8",
    "cause": "u1",  # empty if there is one kind of event
    "lower": "<f8",  # empty if no row is an interval
}
# Those of a treatment forest.
TREATMENT_SECTIONS = {
    "pooled": "u1",  # the first five are files of forests
    "arm_0": "u1",
    "arm_1": "u1",
    "propensity": "u1",  # may be empty
    "effect": "u1",
    "arm": "u1",  # by row of the table
    "known_propensity": "<f8",  # of arm 1, by row; empty if there is a forest of propensities
}
WORKING_SECTIONS = ("scored", "scores", "knots", "hazards", "linear_predictor")
FIRST_WITH_WORKING_MODEL, FIRST_WITH_CAUSES = 3, 4  # formats
# MOST_SHARE of cqrf._model.share, which would be imported with Numba.
LARGEST_ROOT_SHARE = 0.5
COUNTS = ("n_rows", "n_features", "n_trees", "n_nodes", "n_leaf_rows")
SAMPLING = ("n_units", "size", "bootstrap", "honest", "bag_size")
LARGEST_COUNT = 2**62
# What a file holds, in messages.
FOREST, CONFORMAL_FOREST = "a forest", "a conformal forest"
TREATMENT_FOREST = "a treatment forest"
# Draws of a tree over rows in its leaves. By chance an honest bootstrap may leave fewer than one
# row in two for the leaves; never so few.
MOST_DRAWS_PER_LEAF_ROW = 64


# Trees of a file: a tree takes time and memory for every query, however few bytes it has.
FEW_TREES, BYTES_PER_TREE = 10_000, 100


class ModelFileError(ValueError):
    """A file that is not a complete and valid model file, or one from a newer version."""


class Contents(NamedTuple):
    """Header and sections of a file."""

    header: dict[str, Any]
    sections: dict[str, NDArray[Any]]
    n_codes: int
    """Rows whose codes are there: all, or 0."""

    @property
    def n_rows(self) -> int:
        """Training rows."""
        return int(self.header["n_rows"])

    @property
    def n_features(self) -> int:
        """Features."""
        return int(self.header["n_features"])

    @property
    def n_names(self) -> int:
        """Names of features."""
        return self.n_features if self.header["named"] else 0

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which features are categories."""
        return np.asarray(self.sections["kinds"] == KINDS.index(CATEGORY))

    @property
    def last_bins(self) -> NDArray[np.int64]:
        """Last bin of each feature, other than that of missing values."""
        n_levels = np.maximum(self.sections["n_levels"], 1)
        last = np.where(self.categorical, n_levels - 1, self.sections["n_edges"])
        return last.astype(np.int64)

    def texts(self) -> Iterator[memoryview]:
        """Names of the features, if there are any, then labels of the levels."""
        text, end = self.sections["text"].data, 0
        for length in self.sections["text_lengths"]:
            start, end = end, end + int(length)
            yield text[start:end]

    def read_names(self) -> list[str]:
        """Names of the features; none if the table had none."""
        return [str(text, "utf-8", "surrogatepass") for text in islice(self.texts(), self.n_names)]


def invalid(what: str, content: str = FOREST) -> ModelFileError:
    """The error for a part of a file that fails its check."""
    return ModelFileError(f"does not hold {content}: {what} is not as it should be.")


def upgrade_header(header: dict[str, Any], written_format: int) -> dict[str, Any]:
    """The header as the newest format has it; older ones lack some of its parts."""
    settings, sections = header.get("settings"), header.get("sections")
    if not isinstance(settings, dict) or not isinstance(sections, dict):
        raise invalid("settings or sections")
    if written_format < FIRST_WITH_WORKING_MODEL:
        settings = {**settings, "working_model": None}
        sections = {**sections, **dict.fromkeys(WORKING_SECTIONS, 0)}
        header = {**header, "root_share": None}
    if written_format < FIRST_WITH_CAUSES:
        sections = {**sections, "cause": 0, "lower": 0}
        header = {**header, "causes": []}
    return {**header, "settings": settings, "sections": sections}


def check_header(header: dict[str, Any]) -> None:
    """Raise unless every entry has its type and range."""

    def check(name: str, is_valid: Callable[[Any], bool]) -> None:
        if name not in header or not is_valid(header[name]):
            raise invalid(name)

    for name in (*COUNTS, "n_units", "size", "bag_size"):
        check(name, lambda x: type(x) is int and 0 < x < LARGEST_COUNT)
    check("seed", lambda x: type(x) is int and 0 <= x < LARGEST_COUNT)
    for name in ("bootstrap", "honest", "named"):
        check(name, lambda x: type(x) is bool)
    check("censoring", lambda x: x in SIDES)
    check(
        "root_share",
        lambda x: x is None or (type(x) is float and 0.0 <= x <= LARGEST_ROOT_SHARE),
    )
    check("causes", are_causes)
    check("settings", are_settings)
    check("notes", are_notes)
    check("sections", lambda x: isinstance(x, dict) and list(x) == list(SECTIONS))


def cut_sections(header: dict[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    """Sections as views of the bytes of a file."""
    dtypes = {name: kind or narrowest(header["n_features"]) for name, kind in SECTIONS.items()}
    return cut(header["sections"], dtypes, body)


def cut(
    lengths: dict[str, Any], dtypes: dict[str, str], body: memoryview, content: str = FOREST
) -> dict[str, NDArray[Any]]:
    """Sections of these lengths in bytes and types, as views."""
    sections, at = {}, 0
    for name, dtype in dtypes.items():
        n_bytes = lengths[name]
        if type(n_bytes) is not int or not 0 <= n_bytes <= len(body) - at:
            raise invalid(f"length of {name}", content)
        if n_bytes % np.dtype(dtype).itemsize:
            raise invalid(f"length of {name}", content)
        sections[name] = np.frombuffer(body[at : at + n_bytes], dtype)
        at += n_bytes + len(padding(n_bytes))
    if at != len(body):
        raise invalid("length of the sections", content)
    return sections


def check_lengths(sections: dict[str, NDArray[Any]], lengths: dict[str, int]) -> None:
    """Raise unless the sections have these numbers of entries."""
    for name, length in lengths.items():
        if len(sections[name]) != length:
            raise invalid(f"length of {name}")


def check_sections(contents: Contents) -> None:
    """Raise unless all sections are valid by themselves and together."""
    check_rows(contents)
    check_columns(contents)
    check_codes(contents)
    check_trees(contents)
    check_sampling(contents.header)
    check_text(contents)


def check_rows(contents: Contents) -> None:
    """Check targets, weights and units of the training rows."""
    from cqrf._model.file_kernels import is_permutation

    n, n_codes, sections = contents.n_rows, contents.n_codes, contents.sections
    check_lengths(
        sections, {"time": n, "event": n, "order": n, "codes": contents.n_features * n_codes}
    )
    for name, length in {"unit_of_row": n_codes, "weight": n, "entry": n}.items():
        if len(sections[name]) not in (0, length):
            raise invalid(f"length of {name}")
    check_times(contents)
    if not is_permutation(sections["order"]):
        raise invalid("order")
    units, n_units = sections["unit_of_row"], contents.header["n_units"]
    if n_codes and (n_units > n or not are_unit_codes(units, n_units)):
        raise invalid("unit_of_row")
    if n_codes and not len(units) and n_units != n:
        raise invalid("n_units")
    weight, entry = sections["weight"], sections["entry"]
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise invalid("weight")
    if len(weight) and not (weight[sections["event"] == 1] > 0).any():
        raise invalid("weight (no event has any)")
    if len(entry) and (
        not (entry < sections["time"]).all() or contents.header["censoring"] == "left"
    ):
        raise invalid("entry")


def check_times(contents: Contents) -> None:
    """Check times and events: in time order, events before censorings at a tied time."""
    n, sections = contents.n_rows, contents.sections
    check_lengths(sections, {"time": n, "event": n})
    time, event = sections["time"], sections["event"]
    tied = time[1:] == time[:-1]
    ordered = (time[1:] > time[:-1]) | (tied & (event[1:] <= event[:-1]))
    if not np.isfinite(time).all() or not ordered.all():
        raise invalid("time")
    if (event > 1).any() or not event.any():
        raise invalid("event")


def check_columns(contents: Contents) -> None:
    """Check kinds, levels, edges and importances of the features."""
    p, sections, categorical = contents.n_features, contents.sections, contents.categorical
    check_lengths(sections, {"kinds": p, "n_levels": p, "n_edges": p, "importance": p})
    kinds, n_edges, n_levels = (sections[name] for name in ("kinds", "n_edges", "n_levels"))
    if (kinds >= len(KINDS)).any():
        raise invalid("kinds")
    if (n_levels > MAX_LEVELS).any() or n_levels[~categorical].any():
        raise invalid("n_levels")
    if (n_edges >= MAX_BINS).any() or n_edges[categorical].any():
        raise invalid("n_edges")
    check_lengths(sections, {"edges": int(n_edges.sum(dtype=np.int64))})
    edges = sections["edges"]
    ends = np.cumsum(n_edges, dtype=np.int64)
    rising = edges[1:] > edges[:-1]
    rising[ends[(ends > 0) & (ends < len(edges))] - 1] = True
    if not np.isfinite(edges).all() or not rising.all():
        raise invalid("edges")
    importance = sections["importance"]
    if not np.isfinite(importance).all() or (importance < 0).any():
        raise invalid("importance")
    n_texts = contents.n_names + int(n_levels.sum(dtype=np.int64))
    check_lengths(sections, {"text_lengths": n_texts})
    if int(sections["text_lengths"].sum(dtype=np.uint64)) != len(sections["text"]):
        raise invalid("length of text")


def check_codes(contents: Contents) -> None:
    """Check that the codes of the training rows are bins of their features."""
    from cqrf._model.file_kernels import are_codes

    codes = contents.sections["codes"].reshape(contents.n_features, contents.n_codes)
    if not are_codes(codes, contents.last_bins, MISSING):
        raise invalid("codes")


def check_trees(contents: Contents) -> None:
    """Check nodes and leaves of the trees."""
    from cqrf._model.codec import are_leaves
    from cqrf._model.file_kernels import count_splits

    header, sections = contents.header, contents.sections
    if header["n_trees"] > most_trees(sum(section.nbytes for section in sections.values())):
        raise invalid("n_trees (too many for a file of this size)")
    check_lengths(sections, {"n_nodes": header["n_trees"], "split_on": header["n_nodes"]})
    of_numbers, of_categories = count_splits(
        sections["split_on"], sections["n_nodes"], contents.categorical
    )
    if of_numbers < 0:
        raise invalid("split_on")
    n_splits = of_numbers + of_categories
    check_lengths(
        sections,
        {
            "split_code": of_numbers,
            "subsets": 4 * of_categories,
            "missing_left": -(-n_splits // 8),
        },
    )
    n_leaves = header["n_nodes"] - n_splits
    if not are_leaves(sections["leaves"], n_leaves, header["n_leaf_rows"], contents.n_rows):
        raise invalid("leaves")


def most_trees(n_bytes: int) -> int:
    """Largest number of trees of a file whose sections have so many bytes."""
    return max(FEW_TREES, n_bytes // BYTES_PER_TREE)


def check_sampling(header: dict[str, Any]) -> None:
    """Check that trees can have drawn as the header says: it decides who is out of bag."""
    size, n_units, n_trees = header["size"], header["n_units"], header["n_trees"]
    n_leaf_rows = header["n_leaf_rows"]
    drawn_from = n_units if header["bag_size"] == 1 else n_units // 2
    if header["bootstrap"]:
        is_valid = n_trees * size <= MOST_DRAWS_PER_LEAF_ROW * (n_trees + n_leaf_rows)
    else:
        filling = size - size // 2 if header["honest"] else size
        is_valid = size <= drawn_from and n_trees * filling <= n_leaf_rows
    if not is_valid or drawn_from == 0:
        raise invalid("size")


def check_text(contents: Contents) -> None:
    """Check that names and labels are UTF-8, and the labels of each column in ascending order."""
    texts, n_levels = contents.texts(), contents.sections["n_levels"]
    runs = chain(repeat(1, contents.n_names), map(int, n_levels[n_levels > 0]))
    for n_texts in runs:
        before = None
        for text in islice(texts, n_texts):
            here = bytes(text)
            if before is not None and before >= here:
                raise invalid("text")
            before = here
            try:
                str(here, "utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise invalid("text") from None


def narrowest(n_features: int) -> str:
    """Type of ``split_on``."""
    return "u1" if n_features < 2**8 else "<u2" if n_features < 2**16 else "<u4"


def padding(n_bytes: int) -> bytes:
    """Zeros that fill so many bytes up to a multiple of ALIGNMENT."""
    return bytes(-n_bytes % ALIGNMENT)
