"""``cqrf info``: what a model file holds. It grows and reads no trees: Numba is not imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from cqrf._model.file_bytes import (
    CONFORMAL_FILE,
    FOREST_FILE,
    TREATMENT_FILE,
    read_bytes,
    unpack,
)
from cqrf._model.file_sections import TREATMENT_SECTIONS, ModelFileError, cut, invalid
from cqrf._model.file_summary import FileSummary, summarize
from cqrf._model.file_values import are_arms, are_notes, are_settings
from cqrf._runtime.progress import printable
from cqrf.cli.console import count, format_plain, format_size, print_json

# Those of CensoredQuantileForest, which would have to be imported with scikit-learn and Numba.
DEFAULTS: dict[str, Any] = {
    "n_estimators": 500,
    "criterion": "censored_quantile",
    "split_quantiles": None,
    "split_causes": None,
    "honest": "auto",
    "max_samples": "auto",
    "bootstrap": False,
    "max_features": None,
    "min_samples_leaf": 5,
    "min_samples_split": 11,
    "min_child_fraction": 0.05,
    "max_depth": None,
    "max_bins": 255,
    "censoring": "right",
    "censoring_survival": "beran",
    "n_neighbors": 0.1,
    "solver": "root",
    "bag_size": 1,
    "working_model": "auto",
    "prediction": "median",
    "unidentified": "inf",
    "time_unit": None,
    "event_name": None,
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}
# Those of CensoredTreatmentForest besides its forest of nuisances.
TREATMENT_DEFAULTS: dict[str, Any] = {
    "n_estimators": 2000,
    "min_samples_arm": "auto",
    "min_child_fraction": 0.05,
    "max_features": None,
    "max_depth": None,
    "bag_size": 4,
    "time_unit": None,
    "event_name": None,
    "n_jobs": None,
    "random_state": None,
}


def describe_file(path: str) -> dict[str, Any]:
    """Rows, trees, columns and settings of a model file.

    Of a conformal forest also its coverage, of a treatment forest also its arms.
    """
    with open(path, "rb") as file:
        start = file.read(len(FOREST_FILE.mark))
    others = {
        CONFORMAL_FILE.mark: _describe_conformal,
        TREATMENT_FILE.mark: _describe_treatment,
    }
    try:
        held = others.get(start, _describe_forest)(path)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    return {"model": path, "bytes": Path(path).stat().st_size, **held}


def _describe_forest(path: str) -> dict[str, Any]:
    return describe_summary(summarize(read_bytes(path)))


def _describe_conformal(path: str) -> dict[str, Any]:
    """The forest of a conformal model, which is the first section of its file."""
    _, header, body = read_bytes(path, CONFORMAL_FILE)
    sections, coverage = header.get("sections"), header.get("coverage")
    n_bytes = sections.get("forest") if isinstance(sections, dict) else None
    if type(n_bytes) is not int or not 0 <= n_bytes <= len(body):
        raise invalid("length of forest", CONFORMAL_FILE.content)
    settings, notes = header.get("settings"), header.get("notes")
    if type(coverage) is not float or not are_settings(settings) or not are_notes(notes):
        raise invalid("header", CONFORMAL_FILE.content)
    forest = describe_summary(summarize(unpack(body[:n_bytes], FOREST_FILE)))
    return {"coverage": coverage, "conformal": settings, **forest, "notes": notes}


def _describe_treatment(path: str) -> dict[str, Any]:
    """The effect forest of a treatment forest, and its arms."""
    _, header, body = read_bytes(path, TREATMENT_FILE)
    _check_header(header)
    sections = cut(header["sections"], TREATMENT_SECTIONS, body, TREATMENT_FILE.content)
    held = {
        name: summarize(unpack(sections[name].data, FOREST_FILE))
        for name in ("pooled", "arm_0", "arm_1", "effect")
    }
    treated = f"arm_{header['treated']}"
    arms = sorted(("arm_0", "arm_1"), key=lambda name: name == treated)
    pooled = describe_summary(held["pooled"])
    return {
        **describe_summary(held["effect"]),
        "working_model": pooled["working_model"],
        "nuisance_trees": pooled["trees"],
        "arms": [
            {"name": name, "rows": held[arm].n_rows, "events": held[arm].n_events}
            for name, arm in zip(header["arms"], arms, strict=True)
        ],
        "propensity_known": len(sections["propensity"]) == 0,
        "settings": {**TREATMENT_DEFAULTS, **header["settings"]},
        "nuisance_settings": header["nuisance_settings"],
        "notes": header["notes"],
    }


def _check_header(header: dict[str, Any]) -> None:
    """Raise unless the header of a treatment forest has what is printed."""
    sections, nuisance = header.get("sections"), header.get("nuisance_settings")
    if (
        not are_arms(header.get("arms"))
        or header.get("treated") not in (0, 1)
        or not are_settings(header.get("settings"))
        or not (nuisance is None or are_settings(nuisance))
        or not are_notes(header.get("notes"))
        or not (isinstance(sections, dict) and list(sections) == list(TREATMENT_SECTIONS))
    ):
        raise invalid("header", TREATMENT_FILE.content)


def describe_summary(held: FileSummary) -> dict[str, Any]:
    """What is printed about a forest."""
    levels = held.columns.levels
    return {
        "rows": held.n_rows,
        "events": held.n_events,
        "causes": [{"cause": cause, "events": n} for cause, n in held.causes.items()],
        "intervals": held.n_intervals,
        "first_time": held.first_time,
        "last_time": held.last_time,
        "trees": held.n_trees,
        "leaves": held.n_leaves,
        "working_model": _describe_working_model(held),
        "columns": [
            {
                "name": name,
                "kind": held.columns.kinds[j],
                "levels": None if (own := levels[j]) is None else list(own),
                "importance": held.importances[j],
            }
            for j, name in enumerate(held.names)
        ],
        "settings": {**DEFAULTS, **held.settings},
        "seed": held.seed,
        "notes": held.notes,
    }


def _describe_working_model(held: FileSummary) -> dict[str, Any] | None:
    """Trees grown on the residuals of the working model, and the share of its own curve."""
    if held.root_share is None:
        return None
    return {"residual_trees": held.n_trees // 2, "root_share": held.root_share}


def print_info(path: str, *, as_json: bool) -> None:
    """Print what a model file holds."""
    info = describe_file(path)
    if as_json:
        print_json(info)
        return
    missing = object()
    defaults = TREATMENT_DEFAULTS if "arms" in info else DEFAULTS
    settings = info["settings"].items()
    changed = {name: x for name, x in settings if x != defaults.get(name, missing)}
    censored = 1 - info["events"] / info["rows"]
    leaves = info["leaves"] / info["trees"]
    lines = {"File": f"{path}, {format_size(info['bytes'])}"}
    if "coverage" in info:
        chosen = info["conformal"].items()
        given = ", ".join(f"{n}={x!r}" for n, x in chosen if n != "coverage" and x is not None)
        lines["Bounds"] = f"conformal, of coverage {info['coverage']:g}; {given}"
    if "arms" in info:
        lines["Effects"] = _word_arms(info)
    known = f" ({count(info['intervals'], 'interval')})" if info["intervals"] else ""
    lines["Fitted"] = (
        f"{count(info['rows'], 'row')}, {count(info['events'], 'event')}{known}, "
        f"{censored:.0%} censored; "
        f"times from {format_plain(info['first_time'])} to {format_plain(info['last_time'])}"
    )
    if info["causes"]:
        counted = (f"{each['cause']} ({count(each['events'], 'event')})" for each in info["causes"])
        lines["Causes"] = ", ".join(counted)
    lines |= {
        "Trees": f"{info['trees']}, of {leaves:.0f} leaves on average",
        "Model": _word_working_model(info),
        "Settings": ", ".join(f"{n}={x!r}" for n, x in changed.items()) or "the defaults",
        "Notes": ", ".join(f"{n}: {x or repr(x)}" for n, x in info["notes"].items()) or "none",
    }
    for title, line in lines.items():
        print(printable(f"{title:<9}{line}"))
    print()
    print_columns(info["columns"])


def _word_arms(info: dict[str, Any]) -> str:
    control, treated = (
        f"{arm['name']} ({count(arm['rows'], 'row')}, {count(arm['events'], 'event')})"
        for arm in info["arms"]
    )
    how = "known" if info["propensity_known"] else "estimated"
    return f"of {treated} against {control}; propensity {how}"


def _word_working_model(info: dict[str, Any]) -> str:
    working = info["working_model"]
    curves = ""
    if "arms" in info:
        curves = f"curves from forests of {count(info['nuisance_trees'], 'tree')} each; "
    if working is None:
        return f"{curves}no working model: all trees are grown on times"
    return (
        f"{curves}ridge Cox as working model: {working['residual_trees']} of the trees are grown "
        f"on its residuals; its own curve has a share of {working['root_share']:.0%}"
    )


def print_columns(columns: list[dict[str, Any]]) -> None:
    """Print a table of the columns, the most important first."""
    rows = [("column", "kind", "importance")]
    for column in sorted(columns, key=lambda column: -column["importance"]):
        levels, kind = column["levels"], column["kind"]
        kind = kind if levels is None else f"{kind}, {count(len(levels), 'level')}"
        rows.append((printable(column["name"]), kind, f"{column['importance']:.1%}"))
    first, second, third = (max(map(_width, cells)) for cells in zip(*rows, strict=True))
    for name, kind, share in rows:
        print(f"{_pad(name, first)}  {_pad(kind, second)}  {share:>{third}}")


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)
