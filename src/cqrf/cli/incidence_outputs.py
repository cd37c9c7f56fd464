"""Columns of cumulative incidences that ``cqrf predict`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.causes import Cause
from cqrf._readers.incidence import FromIncidence, IncidenceErrors
from cqrf._readers.reader import Reader
from cqrf._runtime.arguments import exactly
from cqrf._survival.incidence import IncidenceCurves
from cqrf._survival.little_bags import confidence_width, log_log_interval

ENDS = ("lower", "upper")


class IncidenceOutputs(NamedTuple):
    """Times at which the incidence of some causes is predicted."""

    times: Sequence[float]
    causes: Sequence[Cause]
    beyond: str = "nan"
    confidence: float | None = None

    def readers(self) -> dict[str, Reader[Any, Any]]:
        """Readers of the weights by name: incidences, and their errors."""
        if not self.times:
            return {}
        times = np.array(self.times, dtype=np.float64)

        def compute(curves: IncidenceCurves) -> NDArray[np.float64]:
            return np.stack([curves[cause](times, self.beyond) for cause in self.causes], axis=1)

        found: dict[str, Reader[Any, Any]] = {"incidence": FromIncidence(compute)}
        if self.confidence is not None:
            found |= {name_errors(cause): IncidenceErrors(times, cause) for cause in self.causes}
        return found

    def columns(self, read: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        """A column for each cause and time, and the ends of its confidence interval."""
        columns: dict[str, NDArray[np.float64]] = {}
        for j, cause in enumerate(self.causes if self.times else ()):
            for k, time in enumerate(self.times):
                name = of_cause(f"incidence{exactly(time)}", cause)
                values = read["incidence"][:, j, k]
                columns[name] = values
                if self.confidence is not None:
                    width = confidence_width(self.confidence) * read[name_errors(cause)][:, k]
                    lower, upper = log_log_interval(1.0 - values, width)
                    columns |= end_columns(name, [1.0 - upper, 1.0 - lower], self.confidence)
        return columns


def of_cause(name: str, cause: Cause | None) -> str:
    """Name of a column, with the cause that it is about."""
    return name if cause is None else f"{name}_{cause}"


def name_errors(cause: Cause) -> str:
    """Name of the errors of a cause among the results of the readers."""
    return f"errors of {cause}"


def end_columns(name: str, ends: Any, confidence: float) -> dict[str, Any]:
    """Lower and upper end of the confidence interval of a column."""
    ending = exactly(confidence)
    return {f"{name}_{end}{ending}": column for end, column in zip(ENDS, ends, strict=True)}
