"""The model file: a fitted forest as numbers and a header of JSON, checked before it is used.

=========  ==========================================================================
bytes      what
=========  ==========================================================================
8          the mark of a model file
4 + 4 + 8  version of the format, length of the header, length of the file
header     JSON: sizes, settings, and the length in bytes of every section
sections   numbers, lowest byte first, each padded to a multiple of 8 bytes
32         SHA-256 of everything before
=========  ==========================================================================

Nothing in a file is code, names a type or says where anything goes in memory. Whatever is not
exactly what :func:`write_model_file` writes is refused with a :class:`ModelFileError`; until every
number has been checked, only the file's own bytes are in memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import level_edges
from cqrf._forest.layout import join_trees
from cqrf._forest.spec import LEAF, MAX_BINS, MISSING, Rows, Sampling, Trees
from cqrf._input.features import CATEGORY, DATE, DURATION, MAX_LEVELS, NUMBER, Columns
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import Target
from cqrf._model.codec import (
    are_codes,
    are_leaves,
    count_splits,
    is_permutation,
    pack_leaves,
    unpack_leaves,
)
from cqrf._model.fitted import NO_UNIT, Model
from cqrf._runtime.files import replacing

MARK = b"\x93cqrf\r\n\x1a"  # a copy that changed line ends, or lost the top bit, is noticed
FORMAT = 2
FIRST_WITHOUT_CODES = 2
PREAMBLE = struct.Struct("<8sIIQ")
DIGEST_BYTES = 32
MOST_HEADER_BYTES = 2**16
ALIGNMENT = 8

KINDS = (NUMBER, DATE, DURATION, CATEGORY)
SIDES = ("right", "left")
# Sections in their order, and what each is made of.
SECTIONS = {
    "time": "<f8",
    "event": "u1",
    "order": "<i4",
    "unit_of_row": "<i4",  # left out where every row is its own unit
    "codes": "u1",  # left out, with unit_of_row, by a forest that keeps no training features
    "weight": "<f4",  # may be left out
    "entry": "<f8",  # may be left out
    "n_edges": "u1",  # a category has none: its levels are its bins
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
}
COUNTS = ("n_rows", "n_features", "n_trees", "n_nodes", "n_leaf_rows")
DRAWS = ("n_units", "size", "bootstrap", "honest", "bag_size")
LARGEST_COUNT = 2**62
# Draws of a tree over rows in its leaves. By chance an honest bootstrap may leave fewer than one
# row in two for the leaves; never so few.
MOST_DRAWS_PER_LEAF_ROW = 64


class ModelFileError(ValueError):
    """A file that is not a whole and sound model file, or one from a newer version."""


class Saved(NamedTuple):
    """What a model file holds: the model, the estimator's settings, names of columns, notes."""

    model: Model
    settings: dict[str, Any]
    names: list[str] | None
    notes: dict[str, str]


def write_model_file(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write the file whole, or leave what was there."""
    arrays = _arrays(saved)
    model = saved.model
    forest = model.forest
    header = {
        "cqrf": version("cqrf"),
        "settings": saved.settings,
        "notes": saved.notes,
        "n_rows": len(model.order),
        "n_features": len(model.edges),
        "n_trees": len(forest.roots),
        "n_nodes": len(forest.feature),
        "n_leaf_rows": len(forest.leaf_rows),
        "named": saved.names is not None,
        **{name: getattr(model.sampling, name) for name in DRAWS},
        "seed": model.seed,
        "censoring": model.censoring,
        "sections": {name: array.nbytes for name, array in arrays.items()},
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MOST_HEADER_BYTES:
        raise ValueError(
            f"settings and notes take {len(text)} bytes of JSON; a model file has room for "
            f"{MOST_HEADER_BYTES}. Give fewer split_quantiles, or shorter notes."
        )
    chunks = [text + _padding(len(text))]
    for array in arrays.values():
        chunks += [array.tobytes(), _padding(array.nbytes)]
    length = PREAMBLE.size + sum(map(len, chunks)) + DIGEST_BYTES
    chunks.insert(0, PREAMBLE.pack(MARK, FORMAT, len(text), length))
    digest = hashlib.sha256()
    with replacing(path) as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.write(digest.digest())


def read_model_file(path: str | os.PathLike[str]) -> Saved:
    """Read and check a file; a :class:`ModelFileError` names it and says what is wrong."""
    try:
        return _Reader(*_open(path)).read()
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def _arrays(saved: Saved) -> dict[str, NDArray[Any]]:
    """The sections of a model."""
    model, forest = saved.model, saved.model.forest
    columns, rows = model.columns, model.rows
    n_features = len(model.edges)
    is_split = forest.feature != LEAF
    of_number = is_split & ~forest.categorical[forest.feature]
    edges_of_numbers = [
        edges[: 0 if levels is not None else None]
        for edges, levels in zip(model.edges, columns.levels, strict=True)
    ]
    own_units = np.array_equal(model.sampling.unit_of_row, model.order)
    labels = [label for levels in columns.levels for label in levels or ()]
    texts = [text.encode("utf-8", "surrogatepass") for text in [*(saved.names or []), *labels]]
    arrays: dict[str, Any] = {
        "time": rows.time,
        "event": rows.event,
        "order": model.order,
        "unit_of_row": [] if own_units else model.sampling.unit_of_row,
        "codes": rows.codes,
        "weight": [] if rows.weight is None else rows.weight,
        "entry": [] if model.entry is None else model.entry,
        "n_edges": [len(edges) for edges in edges_of_numbers],
        "edges": np.concatenate(edges_of_numbers),
        "kinds": [KINDS.index(kind) for kind in columns.kinds],
        "n_levels": [len(levels or ()) for levels in columns.levels],
        "text_lengths": [len(text) for text in texts],
        "text": np.frombuffer(b"".join(texts), np.uint8),
        "n_nodes": np.diff([*forest.roots, len(forest.feature)]),
        "split_on": np.where(is_split, forest.feature, n_features),
        "split_code": forest.code[of_number],
        "missing_left": np.packbits(forest.missing_left[is_split]),
        "subsets": forest.subsets,
        "leaves": pack_leaves(np.diff(forest.leaf_offsets), forest.leaf_rows),
        "importance": forest.importance,
    }
    return {
        name: np.ascontiguousarray(arrays[name], dtype=kind or _narrowest(n_features))
        for name, kind in SECTIONS.items()
    }


def _open(path: str | os.PathLike[str]) -> tuple[int, dict[str, Any], memoryview]:
    """Format, header and sections of a file whose length and checksum are right."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ModelFileError("is not a file.")
        start = file.read(PREAMBLE.size)
        if len(start) < PREAMBLE.size or not start.startswith(MARK):
            raise ModelFileError("is not a model file of cqrf.")
        _, written_format, header_length, length = PREAMBLE.unpack(start)
        if written_format > FORMAT:
            raise ModelFileError(
                f"has format {written_format}; this version of cqrf reads up to {FORMAT}. "
                "Upgrade cqrf."
            )
        if length != about.st_size:
            raise ModelFileError(
                f"has {about.st_size} of {length} bytes: it was cut short, or added to."
            )
        rest = file.read(length - PREAMBLE.size)
    data = memoryview(rest)
    if len(data) != length - PREAMBLE.size or len(data) < DIGEST_BYTES:
        raise ModelFileError("was cut short.")
    digest = hashlib.sha256(start)
    digest.update(data[:-DIGEST_BYTES])
    if digest.digest() != data[-DIGEST_BYTES:]:
        raise ModelFileError("is damaged: its checksum is another.")
    data = data[:-DIGEST_BYTES]
    header_end = header_length + len(_padding(header_length))
    if written_format < 1 or header_length > MOST_HEADER_BYTES or header_end > len(data):
        raise _wrong("format or length of the header")
    try:
        header = json.loads(bytes(data[:header_length]), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _wrong("header") from None
    if not isinstance(header, dict):
        raise _wrong("header")
    return written_format, header, data[header_end:]


class _Reader:
    """Checks each part of a file against the others, then builds the model."""

    def __init__(self, written_format: int, header: dict[str, Any], body: memoryview) -> None:
        self.header = header
        for name in (*COUNTS, "n_units", "size", "bag_size"):
            self._check(name, lambda x: type(x) is int and 0 < x < LARGEST_COUNT)
        self._check("seed", lambda x: type(x) is int and 0 <= x < LARGEST_COUNT)
        for name in ("bootstrap", "honest", "named"):
            self._check(name, lambda x: type(x) is bool)
        self._check("censoring", lambda x: x in SIDES)
        self._check("settings", _are_settings)
        self._check("notes", are_notes)
        self._check("sections", lambda x: isinstance(x, dict) and list(x) == list(SECTIONS))
        self.n, self.p = header["n_rows"], header["n_features"]
        self.sections = self._cut(body)
        self.n_codes = self.n  # of each feature
        if written_format >= FIRST_WITHOUT_CODES and not len(self.sections["codes"]):
            self.n_codes = 0

    def read(self) -> Saved:
        """The model, if everything is as it should be."""
        self._check_rows()
        self._check_columns()
        n_leaves = self._check_trees()
        self._check_text()
        texts = [str(piece, "utf-8", "surrogatepass") for piece in self._pieces()]
        columns = self._columns(texts)
        header, sections = self.header, self.sections
        own_units = self.n_codes and not len(sections["unit_of_row"])
        sampling = Sampling(
            self._take("order" if own_units else "unit_of_row"),
            *(header[name] for name in DRAWS),
        )
        entry = self._take("entry") if len(sections["entry"]) else None
        target = Target(self._take("time"), self._take("event").astype(bool), entry)
        rows = Rows(
            codes=self._take("codes").reshape(self.p, self.n_codes),
            categorical=columns.categorical,
            time=target.time,
            event=target.event,
            weight=self._take("weight") if len(sections["weight"]) else None,
            first_at_risk=first_at_risk(target),
        )
        model = Model(
            columns=columns,
            edges=self._edges(columns),
            forest=join_trees(
                self._trees(columns.categorical, n_leaves),
                columns.categorical,
                self._take("importance"),
            ),
            rows=rows,
            entry=entry,
            order=self._take("order"),
            sampling=sampling,
            seed=header["seed"],
            censoring=header["censoring"],
        )
        names = texts[: self.p] if header["named"] else None
        return Saved(model, header["settings"], names, header["notes"])

    def _check(self, name: str, is_right: Callable[[Any], bool]) -> None:
        if name not in self.header or not is_right(self.header[name]):
            raise _wrong(name)

    def _cut(self, body: memoryview) -> dict[str, NDArray[Any]]:
        """Sections as views of the file."""
        sections, at = {}, 0
        for name, kind in SECTIONS.items():
            n_bytes = self.header["sections"][name]
            dtype = np.dtype(kind or _narrowest(self.p))
            if type(n_bytes) is not int or not 0 <= n_bytes <= len(body) - at:
                raise _wrong(f"length of {name}")
            if n_bytes % dtype.itemsize:
                raise _wrong(f"length of {name}")
            sections[name] = np.frombuffer(body[at : at + n_bytes], dtype)
            at += n_bytes + len(_padding(n_bytes))
        if at != len(body):
            raise _wrong("length of the sections")
        return sections

    def _take(self, name: str) -> NDArray[Any]:
        """A copy of a section that owns its memory, in the machine's own byte order."""
        section = self.sections[name]
        return section.astype(section.dtype.newbyteorder("="))

    def _expect(self, lengths: dict[str, int]) -> None:
        for name, length in lengths.items():
            if len(self.sections[name]) != length:
                raise _wrong(f"length of {name}")

    def _check_rows(self) -> None:
        n, header, sections = self.n, self.header, self.sections
        self._expect({"time": n, "event": n, "order": n, "codes": self.p * self.n_codes})
        for name, length in {"unit_of_row": self.n_codes, "weight": n, "entry": n}.items():
            if len(sections[name]) not in (0, length):
                raise _wrong(f"length of {name}")
        time, event = sections["time"], sections["event"]
        tied = time[1:] == time[:-1]
        ordered = (time[1:] > time[:-1]) | (tied & (event[1:] <= event[:-1]))
        if not np.isfinite(time).all() or not ordered.all():
            raise _wrong("time")
        if (event > 1).any() or not event.any():
            raise _wrong("event")
        if not is_permutation(sections["order"]):
            raise _wrong("order")
        units, n_units = sections["unit_of_row"], header["n_units"]
        if self.n_codes:
            lowest = NO_UNIT - n_units
            if n_units > n or (len(units) and not lowest <= units.min() <= units.max() < n_units):
                raise _wrong("unit_of_row")
            if not len(units) and n_units != n:
                raise _wrong("n_units")
        weight, entry = sections["weight"], sections["entry"]
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise _wrong("weight")
        if len(entry) and not (entry < time).all():
            raise _wrong("entry")
        if len(entry) and header["censoring"] == "left":
            raise _wrong("entry")

    def _check_columns(self) -> None:
        p, sections = self.p, self.sections
        self._expect({"kinds": p, "n_levels": p, "n_edges": p, "importance": p})
        kinds, n_edges, n_levels = (sections[name] for name in ("kinds", "n_edges", "n_levels"))
        categorical = kinds == KINDS.index(CATEGORY)
        if (kinds >= len(KINDS)).any():
            raise _wrong("kinds")
        if (n_levels > MAX_LEVELS).any() or n_levels[~categorical].any():
            raise _wrong("n_levels")
        if (n_edges >= MAX_BINS).any() or n_edges[categorical].any():
            raise _wrong("n_edges")
        self._expect({"edges": int(n_edges.sum(dtype=np.int64))})
        edges = sections["edges"]
        ends = np.cumsum(n_edges, dtype=np.int64)
        rising = edges[1:] > edges[:-1]
        rising[ends[(ends > 0) & (ends < len(edges))] - 1] = True
        if not np.isfinite(edges).all() or not rising.all():
            raise _wrong("edges")
        most = np.where(categorical, np.maximum(n_levels, 1) - 1, n_edges)
        if not are_codes(sections["codes"].reshape(p, self.n_codes), most, MISSING):
            raise _wrong("codes")
        importance = sections["importance"]
        if not np.isfinite(importance).all() or (importance < 0).any():
            raise _wrong("importance")
        named = p if self.header["named"] else 0
        self._expect({"text_lengths": named + int(n_levels.sum(dtype=np.int64))})
        if int(sections["text_lengths"].sum(dtype=np.uint64)) != len(sections["text"]):
            raise _wrong("length of text")

    def _check_trees(self) -> int:
        """Number of leaves, if the trees are sound."""
        header, sections = self.header, self.sections
        self._expect({"n_nodes": header["n_trees"], "split_on": header["n_nodes"]})
        categorical = sections["kinds"] == KINDS.index(CATEGORY)
        of_numbers, of_categories = count_splits(
            sections["split_on"], sections["n_nodes"], categorical
        )
        if of_numbers < 0:
            raise _wrong("split_on")
        n_splits = of_numbers + of_categories
        self._expect(
            {
                "split_code": of_numbers,
                "subsets": 4 * of_categories,
                "missing_left": -(-n_splits // 8),
            }
        )
        n_leaves = header["n_nodes"] - n_splits
        if not are_leaves(sections["leaves"], n_leaves, header["n_leaf_rows"], self.n):
            raise _wrong("leaves")
        self._check_draws()
        return n_leaves

    def _check_draws(self) -> None:
        """Whether trees can have drawn as they are said to: who is out of bag depends on it."""
        header = self.header
        size, n_units, n_trees = header["size"], header["n_units"], header["n_trees"]
        n_leaf_rows = header["n_leaf_rows"]
        drawn_from = n_units if header["bag_size"] == 1 else n_units // 2
        if header["bootstrap"]:
            is_right = n_trees * size <= MOST_DRAWS_PER_LEAF_ROW * (n_trees + n_leaf_rows)
        else:
            filling = size - size // 2 if header["honest"] else size
            is_right = size <= drawn_from and n_trees * filling <= n_leaf_rows
        if not is_right or drawn_from == 0:
            raise _wrong("size")

    def _pieces(self) -> Iterator[memoryview]:
        """Names and labels."""
        text, end = self.sections["text"].data, 0
        for length in self.sections["text_lengths"]:
            start, end = end, end + int(length)
            yield text[start:end]

    def _check_text(self) -> None:
        """Whether it is text, with the labels of each column in ascending order."""
        pieces = self._pieces()
        n_names = self.p if self.header["named"] else 0
        runs = chain(repeat(1, n_names), map(int, self.sections["n_levels"]))
        for n_pieces in runs:
            before = None
            for piece in islice(pieces, n_pieces):
                here = bytes(piece)
                if before is not None and before >= here:
                    raise _wrong("text")
                before = here
                try:
                    str(here, "utf-8", "surrogatepass")
                except UnicodeDecodeError:
                    raise _wrong("text") from None

    def _edges(self, columns: Columns) -> list[NDArray[np.float64]]:
        ends = np.cumsum(self.sections["n_edges"], dtype=np.int64)
        return [
            edges if levels is None else level_edges(len(levels))
            for edges, levels in zip(
                np.split(self._take("edges"), ends[:-1]), columns.levels, strict=True
            )
        ]

    def _columns(self, texts: list[str]) -> Columns:
        kinds = tuple(KINDS[kind] for kind in self.sections["kinds"])
        levels: list[tuple[str, ...] | None] = []
        at = self.p if self.header["named"] else 0
        for kind, n_levels in zip(kinds, self.sections["n_levels"].tolist(), strict=True):
            levels.append(tuple(texts[at : at + n_levels]) if kind == CATEGORY else None)
            at += n_levels
        return Columns(kinds, tuple(levels))

    def _trees(self, categorical: NDArray[np.bool_], n_leaves: int) -> Trees:
        sections = self.sections
        split_on = sections["split_on"]
        is_split = split_on < self.p
        feature = split_on.astype(np.int32)
        feature[~is_split] = LEAF
        code = np.zeros(len(feature), np.int32)
        code[is_split & ~categorical[feature]] = sections["split_code"]
        missing_left = np.zeros(len(feature), bool)
        n_splits = int(is_split.sum())
        missing_left[is_split] = np.unpackbits(sections["missing_left"], count=n_splits)
        leaf_sizes, leaf_rows = unpack_leaves(
            sections["leaves"], n_leaves, self.header["n_leaf_rows"]
        )
        return Trees(
            n_nodes=sections["n_nodes"].astype(np.int32),
            feature=feature,
            code=code,
            missing_left=missing_left,
            subsets=self._take("subsets").reshape(-1, 4),
            leaf_sizes=leaf_sizes,
            leaf_rows=leaf_rows,
        )


def _wrong(what: str) -> ModelFileError:
    return ModelFileError(f"does not hold a forest: {what} is not as it should be.")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _are_settings(settings: Any) -> bool:
    """Whether these are plain values: what they mean is checked where they are used."""
    if not isinstance(settings, dict):
        return False
    return all(
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
        or (isinstance(value, list) and all(type(level) in (int, float) for level in value))
        for value in settings.values()
    )


def are_notes(notes: Any) -> bool:
    """Whether these are texts by name."""
    return isinstance(notes, Mapping) and all(
        isinstance(text, str) for text in (*notes.keys(), *notes.values())
    )


def _narrowest(n_features: int) -> str:
    """Type of ``split_on``."""
    return "u1" if n_features < 2**8 else "<u2" if n_features < 2**16 else "<u4"


def _padding(n_bytes: int) -> bytes:
    return bytes(-n_bytes % ALIGNMENT)
