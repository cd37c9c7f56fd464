"""Sections of a model file: their names, order and types, and how they are cut from its bytes.

A section is a run of numbers of one type, lowest byte first; ``SECTIONS`` lists those of a forest.
The header gives the length of each in bytes. Nothing here needs a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION, NUMBER

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
COUNTS = ("n_rows", "n_features", "n_trees", "n_nodes", "n_leaf_rows")
SAMPLING = ("n_units", "size", "bootstrap", "honest", "bag_size")
# What a file holds, in messages.
FOREST, CONFORMAL_FOREST = "a forest", "a conformal forest"
TREATMENT_FOREST = "a treatment forest"


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


def narrowest(n_features: int) -> str:
    """Type of ``split_on``."""
    return "u1" if n_features < 2**8 else "<u2" if n_features < 2**16 else "<u4"


def padding(n_bytes: int) -> bytes:
    """Zeros that fill so many bytes up to a multiple of ALIGNMENT."""
    return bytes(-n_bytes % ALIGNMENT)
