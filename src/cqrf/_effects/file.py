"""The model file of a treatment forest: the files of its forests, and the arm of each row.

The layout of the bytes is that of :mod:`cqrf._model.file_bytes`. The first five sections are whole
model files of forests, with their own checksums; that of propensities is empty if these are known.
Nuisances are not stored: the forests give them again, bit for bit. All of it is checked before it
is used, also that the forests belong to one table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.fitted import EffectModel
from cqrf._effects.nuisances import Forests, Nuisances, estimate_nuisances
from cqrf._effects.response import Floats
from cqrf._model.file import Saved, naming, pack_model, unpack_model
from cqrf._model.file_bytes import TREATMENT_FILE, pack, read_bytes, write_bytes
from cqrf._model.file_sections import (
    TREATMENT_FOREST,
    TREATMENT_SECTIONS,
    ModelFileError,
    cut,
    invalid,
)
from cqrf._model.file_values import are_arms, are_notes, are_settings, is_plain
from cqrf._model.fitted import Model
from cqrf._model.queries import training_codes

FORESTS = ("pooled", "arm_0", "arm_1", "propensity", "effect")


class SavedEffects(NamedTuple):
    """What the file of a treatment forest holds.

    Attributes
    ----------
    model : EffectModel
    settings : dict
        Parameters other than ``nuisance_forest``.
    nuisance_settings : dict or None
        Parameters of the forest that was passed as ``nuisance_forest``.
    arms : tuple
        Names of the control and of the treatment.
    names : list of str or None
        Names of the features.
    notes : dict
    """

    model: EffectModel
    settings: dict[str, Any]
    nuisance_settings: dict[str, Any] | None
    arms: tuple[Any, Any]
    names: list[str] | None
    notes: dict[str, str]


def write_treatment_file(path: str | os.PathLike[str], saved: SavedEffects) -> None:
    """Write the file whole, or leave what was there."""
    model, forests = saved.model, saved.model.forests
    arms = [plain_name(name) for name in saved.arms]
    header = {
        "cqrf": version("cqrf"),
        "settings": saved.settings,
        "nuisance_settings": saved.nuisance_settings,
        "notes": saved.notes,
        "arms": arms,
        "treated": model.treated,
    }
    models = (forests.pooled, *forests.arms, forests.propensity, model.effect)
    known = model.known_propensity
    arrays: dict[str, Any] = {
        **{name: _as_bytes(each, saved.names) for name, each in zip(FORESTS, models, strict=True)},
        "arm": model.arm,
        "known_propensity": [] if known is None else known,
    }
    sections = {
        name: np.ascontiguousarray(arrays[name], dtype=kind)
        for name, kind in TREATMENT_SECTIONS.items()
    }
    write_bytes(path, pack(TREATMENT_FILE, header, sections))


def read_treatment_file(path: str | os.PathLike[str]) -> SavedEffects:
    """Read and check a file; a :class:`ModelFileError` names it and says what is wrong."""
    with naming(path):
        _, header, body = read_bytes(path, TREATMENT_FILE)
        check_header(header)
        sections = cut(header["sections"], TREATMENT_SECTIONS, body, TREATMENT_FOREST)
        arm, known = read_arms(sections)
        saved = {name: _read_forest(name, sections) for name in FORESTS}
        check_together(saved, arm)
        pooled, arm_0, arm_1, propensity, effect = (
            None if each is None else each.model for each in saved.values()
        )
        assert pooled is not None
        assert arm_0 is not None
        assert arm_1 is not None
        assert effect is not None
        forests = Forests(pooled, (arm_0, arm_1), propensity)
        model = EffectModel(
            forests=forests,
            # The rows are those of the pooled forest.
            effect=replace(pooled, forest=effect.forest, sampling=effect.sampling, working=None),
            nuisances=_estimate_nuisances(forests, arm, known, header["settings"].get("n_jobs")),
            arm=arm,
            known_propensity=known,
            treated=header["treated"],
        )
        names = None if saved["pooled"] is None else saved["pooled"].names
        return SavedEffects(
            model=model,
            settings=header["settings"],
            nuisance_settings=header["nuisance_settings"],
            arms=(header["arms"][0], header["arms"][1]),
            names=names,
            notes=header["notes"],
        )


def check_header(header: dict[str, Any]) -> None:
    """Raise unless every entry has its type and range."""

    def check(name: str, is_valid: Callable[[Any], bool]) -> None:
        if name not in header or not is_valid(header[name]):
            raise _invalid(name)

    check("settings", _are_settings)
    check("nuisance_settings", lambda x: x is None or are_settings(x))
    check("notes", are_notes)
    check("arms", are_arms)
    check("treated", lambda x: type(x) is int and x in (0, 1))
    check("sections", lambda x: isinstance(x, dict) and list(x) == list(TREATMENT_SECTIONS))


def plain_name(name: Any) -> Any:
    """The name of an arm as JSON can hold it."""
    value = name.item() if isinstance(name, np.generic) else name
    if not is_plain(value):
        raise ValueError(
            f"treatment has the value {name!r}, which cannot be kept in a model file: fit with "
            "texts, numbers, or True and False."
        )
    return value


def read_arms(sections: dict[str, NDArray[Any]]) -> tuple[NDArray[np.bool_], Floats | None]:
    """The arm of each row, and the known propensity of arm 1 if there is one, checked."""
    arm, known = sections["arm"], sections["known_propensity"].astype(np.float64)
    # Arm 0 is that of the first row.
    if not len(arm) or (arm > 1).any() or arm[0] != 0 or not arm.any():
        raise _invalid("arm")
    if bool(len(known)) == bool(len(sections["propensity"])):
        raise _invalid("propensity")
    if not len(known):
        return arm.astype(bool), None
    if len(known) != len(arm) or not ((known > 0) & (known < 1)).all():
        raise _invalid("known_propensity")
    return arm.astype(bool), known


def check_together(saved: dict[str, Saved | None], arm: NDArray[np.bool_]) -> None:
    """Raise unless the forests have the features and the rows of one table."""
    pooled, effect = saved["pooled"], saved["effect"]
    assert pooled is not None
    assert effect is not None
    rows_of = {"arm_0": ~arm, "arm_1": arm}
    for name, each in saved.items():
        if each is not None:
            check_features(name, each, pooled)
            check_rows(name, each.model, pooled.model, rows_of.get(name, np.full(len(arm), True)))
    check_bags(effect.model, pooled.model)
    if saved["propensity"] is not None:
        arms = saved["propensity"].model.training_target
        if not np.array_equal(arms.time, arm) or not arms.event.all():
            raise _invalid("times of propensity")


def check_features(name: str, saved: Saved, pooled: Saved) -> None:
    """Raise unless a forest has the features of the pooled one."""
    model, other = saved.model, pooled.model
    if (
        saved.names != pooled.names
        or model.columns.kinds != other.columns.kinds
        or model.columns.levels != other.columns.levels
        or len(model.edges) != len(other.edges)
        or not all(map(np.array_equal, model.edges, other.edges))
    ):
        raise _invalid(f"features of {name}")


def check_rows(name: str, model: Model, pooled: Model, chosen: NDArray[np.bool_]) -> None:
    """Raise unless the rows of a forest are the chosen ones of the pooled forest."""
    weight = model.rows.weight
    has_other_times = model.entry is not None or model.lower is not None
    if model.censoring != "right" or has_other_times or model.causes:
        raise _invalid(f"censoring of {name}")
    if len(pooled.order) != len(chosen) or len(model.order) != chosen.sum():
        raise _invalid(f"number of rows of {name}")
    if not model.keeps_features or (weight is not None and not weight.any()):
        raise _invalid(f"rows of {name}")
    if not np.array_equal(training_codes(model), training_codes(pooled)[chosen]):
        raise _invalid(f"rows of {name}")
    if name == "propensity":
        return  # its times are the arms
    target, expected = model.training_target, pooled.training_target.take(np.flatnonzero(chosen))
    if not (
        np.array_equal(target.time, expected.time) and np.array_equal(target.event, expected.event)
    ):
        raise _invalid(f"times of {name}")


def check_bags(effect: Model, pooled: Model) -> None:
    """Raise unless the effect forest has full bags of the units of the pooled forest."""
    sampling, n_trees = effect.sampling, len(effect.forest.roots)
    if sampling.bag_size < 2 or n_trees % sampling.bag_size or n_trees < 2 * sampling.bag_size:
        raise _invalid("bag_size of effect")
    if sampling.n_units != pooled.sampling.n_units or not (
        np.array_equal(effect.order, pooled.order)
        and np.array_equal(sampling.unit_of_row, pooled.sampling.unit_of_row)
    ):
        raise _invalid("units of effect")
    if effect.seed != pooled.seed or effect.working is not None:
        raise _invalid("seed of effect")


def _estimate_nuisances(
    forests: Forests, arm: NDArray[np.bool_], known: Floats | None, n_jobs: int | None
) -> Nuisances:
    """Nuisances of the training rows, if there are trees that did not draw them."""
    try:
        return estimate_nuisances(forests, arm, known, n_jobs)
    except ValueError as error:
        raise ModelFileError(f"does not hold {TREATMENT_FOREST}: {error}") from None


def _read_forest(name: str, sections: dict[str, NDArray[Any]]) -> Saved | None:
    """One of the forests; None if there is no forest of propensities."""
    section = sections[name]
    if name == "propensity" and not len(section):
        return None
    try:
        return unpack_model(section.data)
    except ModelFileError as error:
        raise ModelFileError(f"does not hold {TREATMENT_FOREST}: its {name} {error}") from None


def _as_bytes(model: Model | None, names: list[str] | None) -> NDArray[np.uint8]:
    parts = [] if model is None else pack_model(Saved(model, {}, names, {}))
    return np.frombuffer(b"".join(parts), np.uint8)


def _are_settings(settings: Any) -> bool:
    """Whether these are plain values; loading itself uses ``n_jobs``."""
    if not are_settings(settings) or "nuisance_forest" in settings:
        return False
    n_jobs = settings.get("n_jobs")
    return n_jobs is None or (type(n_jobs) is int and n_jobs != 0)


def _invalid(what: str) -> ModelFileError:
    return invalid(what, TREATMENT_FOREST)
