"""Words for times and for the event: with the unit and the name that the forest has for them."""

from __future__ import annotations

from typing import NamedTuple

from cqrf._views.causes import ANY_EVENT
from cqrf._views.numbers import format_number
from cqrf.effects import CensoredTreatmentForest
from cqrf.estimator import CensoredQuantileForest


class Words(NamedTuple):
    """Unit of time, name of the time and of the event; without them, general words."""

    unit: str | None = None
    time_name: str = "time"
    event_name: str | None = None

    @staticmethod
    def of(forest: CensoredQuantileForest | CensoredTreatmentForest) -> Words:
        """From the settings of a forest and the notes in its model file."""
        notes = getattr(forest, "notes_", {})
        unit, event = getattr(forest, "time_unit", None), getattr(forest, "event_name", None)
        if event is None and isinstance(forest, CensoredQuantileForest) and forest.causes_:
            event = ANY_EVENT
        name = None if "lower" in notes else notes.get("time")  # else the column of right ends
        return Words(unit, name or "time", event)

    @property
    def event(self) -> str:
        """Name of the event."""
        return self.event_name or "event"

    @property
    def time_title(self) -> str:
        """Title of an axis of times."""
        if self.unit is None:
            return self.time_name
        name, unit = (text.casefold().removesuffix("s") for text in (self.time_name, self.unit))
        return f"{'time' if name == unit else self.time_name} ({self.unit})"

    @property
    def survival_title(self) -> str:
        """Title of an axis of survival probabilities."""
        if self.event_name is None:
            return "survival probability"
        return f"probability without {self.event_name}"

    def format_time(self, time: float) -> str:
        """A time with its unit."""
        return format_number(time) + ("" if self.unit is None else f"\u00a0{self.unit}")
