"""Values in the header of a model file: settings, notes and names, as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def are_notes(notes: Any) -> bool:
    """Whether these are texts by name."""
    return isinstance(notes, Mapping) and all(
        isinstance(text, str) for text in (*notes.keys(), *notes.values())
    )


def are_arms(names: Any) -> bool:
    """Whether these are names of two arms."""
    return (
        isinstance(names, list)
        and len(names) == 2
        and all(map(is_plain, names))
        and names[0] != names[1]
    )


def is_plain(value: Any) -> bool:
    """Whether this is a text, a finite number, or True or False."""
    return isinstance(value, str | bool | int) or (
        isinstance(value, float) and math.isfinite(value)
    )


def are_settings(settings: Any) -> bool:
    """Whether these are plain values; their meaning is checked where they are used."""
    if not isinstance(settings, dict):
        return False
    return all(
        value is None
        or is_plain(value)
        or (
            isinstance(value, list)
            and all(type(level) in (int, float) and is_plain(level) for level in value)
        )
        for value in settings.values()
    )
