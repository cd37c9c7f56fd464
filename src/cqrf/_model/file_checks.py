"""Checks of a model file: every number is compared with the others before the model is built.

The layout is that of :mod:`cqrf._model.file_bytes` and :mod:`cqrf._model.file_sections`. Until all
checks have passed, only the file's own bytes are in memory: sections are views of them. What is
printed about a file needs no kernel to be checked, and so no Numba: kernels are imported where they
are called.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from cqrf._forest.spec import MAX_BINS, MISSING
from cqrf._input.causes import are_causes
from cqrf._input.columns import MAX_LEVELS
from cqrf._input.target import SIDES
from cqrf._input.units import are_unit_codes
from cqrf._model.file_sections import COUNTS, KINDS, SECTIONS, Contents, check_lengths, invalid
from cqrf._model.file_values import are_notes, are_settings

# MOST_SHARE of cqrf._model.share, which would be imported with Numba.
LARGEST_ROOT_SHARE = 0.5
LARGEST_COUNT = 2**62
# Draws of a tree over rows in its leaves. By chance an honest bootstrap may leave fewer than one
# row in two for the leaves; never so few.
MOST_DRAWS_PER_LEAF_ROW = 64
# Trees of a file: a tree takes time and memory for every query, however few bytes it has.
FEW_TREES, BYTES_PER_TREE = 10_000, 100


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
