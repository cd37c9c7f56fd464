"""The model file: a fitted forest as numbers and a header of JSON, checked before it is used.

The layout of the bytes is that of :mod:`cqrf._model.file_bytes`. Nothing in a file is code, names a
type or gives a place in memory. Whatever is not exactly what :func:`write_model_file` writes is
refused with a :class:`ModelFileError`; :mod:`cqrf._model.file_sections` lists sections.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.layout import join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, Forest, Sampling, Trees
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.target import Target
from cqrf._model.codec import decode_leaves, encode_leaves
from cqrf._model.file_bytes import FOREST_FILE, pack, read_bytes, unpack, write_bytes
from cqrf._model.file_causes import check_causes
from cqrf._model.file_checks import check_header, check_sections, most_trees
from cqrf._model.file_intervals import check_intervals
from cqrf._model.file_sections import (
    KINDS,
    SAMPLING,
    SECTIONS,
    Contents,
    ModelFileError,
    cut_sections,
    invalid,
    narrowest,
    upgrade_header,
)
from cqrf._model.file_summary import read_columns
from cqrf._model.file_values import are_notes
from cqrf._model.file_working import check_working, read_working, working_arrays
from cqrf._model.fitted import Model
from cqrf._model.settings import check_predictions, plain_settings
from cqrf._model.stored_columns import StoredEdges

Estimator = TypeVar("Estimator")

FIRST_WITHOUT_CODES = 2


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
    write_model_file(path, describe_estimator(estimator, read_notes(estimator, notes)))


def load_estimator(kind: type[Estimator], path: str | os.PathLike[str]) -> Estimator:
    """Read an estimator of this class, fitted."""
    saved = read_model_file(path)
    with naming(path):
        return restore_estimator(kind, saved)


def read_notes(estimator: Any, notes: Mapping[str, str] | None) -> dict[str, str]:
    """The notes, checked; if none are given, those that the estimator was loaded with."""
    kept = getattr(estimator, "notes_", {}) if notes is None else notes
    if not are_notes(kept):
        raise ValueError(f"notes must be texts by name; found {notes!r}.")
    return dict(kept)


def describe_estimator(estimator: Any, notes: dict[str, str]) -> Saved:
    """What the file of a fitted estimator holds."""
    check_predictions(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    named = None if names is None else [str(name) for name in names]
    return Saved(estimator.model_, plain_settings(estimator), named, notes)


def restore_estimator(kind: type[Estimator], saved: Saved) -> Estimator:
    """A fitted estimator of this class."""
    check_settings(kind, saved.settings)
    estimator: Any = kind(**saved.settings)
    with refusing_settings():
        check_predictions(estimator)
    estimator.model_ = saved.model
    estimator.notes_ = saved.notes
    estimator.n_features_in_ = len(saved.model.edges)
    if saved.names is not None:
        estimator.feature_names_in_ = np.array(saved.names, dtype=object)
    return estimator


@contextmanager
def refusing_settings() -> Iterator[None]:
    """Turn the error of a parameter into a :class:`ModelFileError`."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"has a setting that is not valid: {error}") from None


def check_settings(kind: Any, settings: Mapping[str, Any]) -> None:
    """Raise unless these are parameters of the estimator's class."""
    unknown = settings.keys() - set(kind._get_param_names())
    if unknown:
        raise ModelFileError(
            "has settings that this version of cqrf does not know: "
            f"{', '.join(sorted(unknown))}. Upgrade cqrf."
        )


def write_model_file(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write the file whole, or leave what was there."""
    write_bytes(path, pack_model(saved))


def read_model_file(path: str | os.PathLike[str]) -> Saved:
    """Read and check a file; a :class:`ModelFileError` names it and says what is wrong."""
    with naming(path):
        return _build(_check(read_bytes(path)))


def unpack_model(data: memoryview) -> Saved:
    """Read and check the bytes of a file."""
    return _build(_check(unpack(data, FOREST_FILE)))


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Start the message of a :class:`ModelFileError` with the name of the file."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def pack_model(saved: Saved) -> list[bytes]:
    """The bytes of a file, in parts."""
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
        "root_share": None if model.working is None else float(model.working.root_share),
        "causes": list(model.causes),
    }
    arrays = _arrays(saved)
    most = most_trees(sum(array.nbytes for array in arrays.values()))
    if len(forest.roots) > most:
        raise ValueError(
            f"a model file of so few rows holds at most {most} trees; found {len(forest.roots)}."
        )
    return pack(FOREST_FILE, header, arrays)


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
        **working_arrays(model.working, model.edges),
        "cause": [] if rows.cause is None else rows.cause,
        "lower": [] if model.lower is None else model.lower,
    }
    return {
        name: np.ascontiguousarray(arrays[name], dtype=kind or narrowest(n_features))
        for name, kind in SECTIONS.items()
    }


def _check(unpacked: tuple[int, dict[str, Any], memoryview]) -> Contents:
    """Header and sections of a file, checked."""
    written_format, header, body = unpacked
    header = upgrade_header(header, written_format)
    check_header(header)
    sections = cut_sections(header, body)
    has_codes = written_format < FIRST_WITHOUT_CODES or len(sections["codes"]) > 0
    contents = Contents(header, sections, header["n_rows"] if has_codes else 0)
    check_sections(contents)
    check_working(contents)
    check_causes(contents)
    check_intervals(contents)
    return contents


def _build(contents: Contents) -> Saved:
    """The model of a file that has been checked."""
    header, sections = contents.header, contents.sections
    columns = read_columns(contents)
    entry = _copy(sections["entry"]) if len(sections["entry"]) else None
    target = Target(_copy(sections["time"]), _copy(sections["event"]).astype(bool), entry)
    own_units = contents.n_codes and not len(sections["unit_of_row"])
    model = Model(
        columns=columns,
        edges=StoredEdges(
            columns.categorical,
            *(_copy(sections[name]) for name in ("n_levels", "edges", "n_edges")),
        ),
        forest=_read_forest(contents),
        rows=Rows(
            codes=_copy(sections["codes"]).reshape(contents.n_features, contents.n_codes),
            categorical=columns.categorical,
            time=target.time,
            event=target.event,
            weight=_copy(sections["weight"]) if len(sections["weight"]) else None,
            first_at_risk=first_at_risk(target),
            cause=_copy(sections["cause"]) if len(sections["cause"]) else None,
        ),
        entry=entry,
        order=_copy(sections["order"]),
        sampling=Sampling(
            unit_of_row=_copy(sections["order" if own_units else "unit_of_row"]),
            **{name: header[name] for name in SAMPLING},
        ),
        seed=header["seed"],
        censoring=header["censoring"],
        working=read_working(contents),
        causes=tuple(header["causes"]),
        lower=_copy(sections["lower"]) if len(sections["lower"]) else None,
    )
    names = contents.read_names() if header["named"] else None
    return Saved(model, header["settings"], names, header["notes"])


def _copy(section: NDArray[Any]) -> NDArray[Any]:
    """A copy that owns its memory, in the machine's own byte order."""
    return section.astype(section.dtype.newbyteorder("="))


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
    if len(sections["weight"]) and not (sections["weight"] > 0)[leaf_rows].all():
        raise invalid("weight (a row of a leaf has none)")
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
