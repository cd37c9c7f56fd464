"""The model file: a fitted forest as numbers and a header of JSON, checked before it is used.

=========  ==========================================================================
bytes      content
=========  ==========================================================================
8          the mark of a model file
4 + 4 + 8  version of the format, length of the header, length of the file
header     JSON: sizes, settings, and the length in bytes of every section
sections   numbers, lowest byte first, each padded to a multiple of 8 bytes
32         SHA-256 of everything before
=========  ==========================================================================

Nothing in a file is code, names a type or gives a place in memory. Whatever is not exactly what
:func:`write_model_file` writes is refused with a :class:`ModelFileError`; see
:mod:`cqrf._model.file_checks`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import level_edges
from cqrf._forest.layout import join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, Forest, Sampling, Trees
from cqrf._input.features import CATEGORY, Columns
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import Target
from cqrf._model.codec import decode_leaves, encode_leaves
from cqrf._model.file_checks import (
    KINDS,
    SAMPLING,
    SECTIONS,
    Contents,
    ModelFileError,
    are_notes,
    check_header,
    check_sections,
    cut_sections,
    invalid,
    narrowest,
    padding,
)
from cqrf._model.fitted import Model
from cqrf._model.settings import plain_settings
from cqrf._runtime.files import replacing

Estimator = TypeVar("Estimator")

MARK = b"\x93cqrf\r\n\x1a"  # changes if a copy converts line ends or drops the top bit
FORMAT = 2
FIRST_WITHOUT_CODES = 2
PREAMBLE = struct.Struct("<8sIIQ")
DIGEST_BYTES = 32
MOST_HEADER_BYTES = 2**16


class Saved(NamedTuple):
    """What a model file holds: the model, the estimator's settings, feature names, notes."""

    model: Model
    settings: dict[str, Any]
    names: list[str] | None
    notes: dict[str, str]


def save_estimator(
    estimator: Any, path: str | os.PathLike[str], notes: Mapping[str, str] | None
) -> None:
    """Write a fitted estimator; without notes, those it was loaded with are kept."""
    kept = getattr(estimator, "notes_", {}) if notes is None else notes
    if not are_notes(kept):
        raise ValueError(f"notes must be texts by name; found {notes!r}.")
    names = getattr(estimator, "feature_names_in_", None)
    named = None if names is None else [str(name) for name in names]
    write_model_file(path, Saved(estimator.model_, plain_settings(estimator), named, dict(kept)))


def load_estimator(kind: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """Read an estimator of this class, fitted."""
    saved = read_model_file(path)
    unknown = saved.settings.keys() - set(kind._get_param_names())  # type: ignore[attr-defined]
    if unknown:
        raise ModelFileError(
            f"{os.fspath(path)}: has settings that this version of cqrf does not know: "
            f"{', '.join(sorted(unknown))}. Upgrade cqrf."
        )
    estimator: Any = kind(**saved.settings)
    estimator.model_ = saved.model
    estimator.notes_ = saved.notes
    estimator.n_features_in_ = len(saved.model.edges)
    if saved.names is not None:
        estimator.feature_names_in_ = np.array(saved.names, dtype=object)
    return estimator


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
        **{name: getattr(model.sampling, name) for name in SAMPLING},
        "seed": model.seed,
        "censoring": model.censoring,
        "sections": {name: array.nbytes for name, array in arrays.items()},
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MOST_HEADER_BYTES:
        raise ValueError(
            f"settings and notes take {len(text)} bytes of JSON; a model file holds at most "
            f"{MOST_HEADER_BYTES}. Give fewer split_quantiles, or shorter notes."
        )
    chunks = [text + padding(len(text))]
    for array in arrays.values():
        chunks += [array.tobytes(), padding(array.nbytes)]
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
        return _build(_open(path))
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
        "leaves": encode_leaves(np.diff(forest.leaf_offsets), forest.leaf_rows),
        "importance": forest.importance,
    }
    return {
        name: np.ascontiguousarray(arrays[name], dtype=kind or narrowest(n_features))
        for name, kind in SECTIONS.items()
    }


def _open(path: str | os.PathLike[str]) -> Contents:
    """Header and sections of a file, checked."""
    written_format, header, body = _read_bytes(path)
    check_header(header)
    sections = cut_sections(header, body)
    has_codes = written_format < FIRST_WITHOUT_CODES or len(sections["codes"]) > 0
    contents = Contents(header, sections, header["n_rows"] if has_codes else 0)
    check_sections(contents)
    return contents


def _read_bytes(path: str | os.PathLike[str]) -> tuple[int, dict[str, Any], memoryview]:
    """Format, header and bytes of the sections of a file whose length and checksum are right."""
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
    header_end = header_length + len(padding(header_length))
    if written_format < 1 or header_length > MOST_HEADER_BYTES or header_end > len(data):
        raise invalid("format or length of the header")
    try:
        header = json.loads(bytes(data[:header_length]), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise invalid("header") from None
    if not isinstance(header, dict):
        raise invalid("header")
    return written_format, header, data[header_end:]


def _build(contents: Contents) -> Saved:
    """The model of a file that has been checked."""
    header, sections = contents.header, contents.sections
    texts = [str(text, "utf-8", "surrogatepass") for text in contents.texts()]
    columns = _read_columns(contents, texts[contents.n_names :])
    entry = _copy(sections["entry"]) if len(sections["entry"]) else None
    target = Target(_copy(sections["time"]), _copy(sections["event"]).astype(bool), entry)
    own_units = contents.n_codes and not len(sections["unit_of_row"])
    model = Model(
        columns=columns,
        edges=_read_edges(contents, columns),
        forest=_read_forest(contents),
        rows=Rows(
            codes=_copy(sections["codes"]).reshape(contents.n_features, contents.n_codes),
            categorical=columns.categorical,
            time=target.time,
            event=target.event,
            weight=_copy(sections["weight"]) if len(sections["weight"]) else None,
            first_at_risk=first_at_risk(target),
        ),
        entry=entry,
        order=_copy(sections["order"]),
        sampling=Sampling(
            unit_of_row=_copy(sections["order" if own_units else "unit_of_row"]),
            **{name: header[name] for name in SAMPLING},
        ),
        seed=header["seed"],
        censoring=header["censoring"],
    )
    names = texts[: contents.n_names] if header["named"] else None
    return Saved(model, header["settings"], names, header["notes"])


def _copy(section: NDArray[Any]) -> NDArray[Any]:
    """A copy that owns its memory, in the machine's own byte order."""
    return section.astype(section.dtype.newbyteorder("="))


def _read_columns(contents: Contents, labels: list[str]) -> Columns:
    kinds = tuple(KINDS[kind] for kind in contents.sections["kinds"])
    levels: list[tuple[str, ...] | None] = []
    at = 0
    for kind, n_levels in zip(kinds, contents.sections["n_levels"].tolist(), strict=True):
        levels.append(tuple(labels[at : at + n_levels]) if kind == CATEGORY else None)
        at += n_levels
    return Columns(kinds, tuple(levels))


def _read_edges(contents: Contents, columns: Columns) -> list[NDArray[np.float64]]:
    ends = np.cumsum(contents.sections["n_edges"], dtype=np.int64)
    edges_of_numbers = np.split(_copy(contents.sections["edges"]), ends[:-1])
    return [
        edges if levels is None else level_edges(len(levels))
        for edges, levels in zip(edges_of_numbers, columns.levels, strict=True)
    ]


def _read_forest(contents: Contents) -> Forest:
    sections, categorical = contents.sections, contents.categorical
    split_on = sections["split_on"]
    is_split = split_on < contents.n_features
    n_splits = int(is_split.sum())
    feature = split_on.astype(np.int32)
    feature[~is_split] = LEAF
    code = np.zeros(len(feature), np.int32)
    code[is_split & ~categorical[feature]] = sections["split_code"]
    missing_left = np.zeros(len(feature), bool)
    missing_left[is_split] = np.unpackbits(sections["missing_left"], count=n_splits)
    leaf_sizes, leaf_rows = decode_leaves(
        sections["leaves"], len(feature) - n_splits, contents.header["n_leaf_rows"]
    )
    trees = Trees(
        n_nodes=sections["n_nodes"].astype(np.int32),
        feature=feature,
        code=code,
        missing_left=missing_left,
        subsets=_copy(sections["subsets"]).reshape(-1, 4),
        leaf_sizes=leaf_sizes,
        leaf_rows=leaf_rows,
    )
    return join_trees(trees, categorical, _copy(sections["importance"]))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
