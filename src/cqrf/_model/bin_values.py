"""Values of a column, estimated from its bins.

A model file keeps the edges of the bins, not the values. An edge is the midpoint of two values. If
every value has its own bin, the edges determine all values but one, for which the roundest
possible number is taken. Otherwise the value of a bin is taken to be its midpoint.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MISSING
from cqrf._model.fitted import Model

LARGEST = float(np.finfo(np.float64).max)
HUGE = LARGEST / 8


def list_codes(model: Model, column: int) -> NDArray[np.uint8]:
    """Bin codes of the training rows, or each code once if the model does not keep them.

    The bins of a column with many values hold about the same number of rows each.
    """
    if model.keeps_features:
        return model.rows.codes[column]
    return np.arange(len(model.edges[column]) + 1, dtype=np.uint8)


def decode_column(model: Model, column: int) -> NDArray[np.float64]:
    """Values of a column in the training rows, estimated from their bins; NaN if missing."""
    codes, edges = list_codes(model, column), model.edges[column]
    if model.columns.levels[column] is not None:
        values = np.arange(len(edges) + 1, dtype=np.float64)
    else:
        values = estimate_bin_values(edges)
    return np.where(codes == MISSING, np.nan, values[np.minimum(codes, len(values) - 1)])


def estimate_bin_values(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """A value for each bin: its only value if the edges determine it, else its midpoint."""
    if len(edges) == 0:
        return np.array([np.nan])  # one value only, which no edge tells
    if max(-edges[0], edges[-1]) > HUGE:  # sums and differences would overflow
        with np.errstate(over="ignore"):
            return np.clip(estimate_bin_values(edges / 8) * 8, -LARGEST, LARGEST)
    if len(edges) == 1:
        return np.array([edges[0] - 0.5, edges[0] + 0.5])
    values = even_values(edges) if are_evenly_spaced(edges) else reflected_values(edges)
    if values is not None and are_in_bins(values, edges):
        return values
    between = edges[:-1] / 2 + edges[1:] / 2
    first, last = edges[1] - edges[0], edges[-1] - edges[-2]
    return np.concatenate([[edges[0] - first / 2], between, [edges[-1] + last / 2]])


def even_values(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values halfway between evenly spaced edges."""
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    values = np.append(edges - width / 2, edges[-1] + width / 2)
    stripped = np.array([strip_noise(value) for value in values])
    return stripped if are_in_bins(stripped, edges) else values


def are_in_bins(values: NDArray[np.float64], edges: NDArray[np.float64]) -> bool:
    """Whether value i is in bin i, for all i."""
    return bool((values[:-1] <= edges).all() and (values[1:] > edges).all())


def reflected_values(edges: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Values v whose midpoints are the edges: v[i + 1] = 2 edges[i] - v[i].

    The first value must keep each v[i] below edges[i]; the roundest such number is taken. None if
    there is no such number: then some bin holds more than one value.
    """
    at_zero = np.zeros(len(edges) + 1)  # the values if the first were 0
    for i, edge in enumerate(edges):
        at_zero[i + 1] = 2 * edge - at_zero[i]
    slack = edges - at_zero[:-1]
    high, low = slack[::2].min(), -slack[1::2].min()
    if not np.isfinite(at_zero).all() or low >= high:
        return None
    sign = np.where(np.arange(len(at_zero)) % 2, -1.0, 1.0)
    values = at_zero + sign * find_roundest(low, high)
    decimals = 10 - int(np.ceil(np.log10(edges[-1] - edges[0])))
    for found in (np.round(values, min(decimals, 300)), values):
        if are_in_bins(found, edges):
            return found
    return None


def find_roundest(low: float, high: float) -> float:
    """The number of fewest decimals strictly between two others, the one nearest their middle."""
    middle = low / 2 + high / 2
    for decimals in range(-int(np.log10(max(1.0, abs(middle)))) - 1, 15):
        unit = 10.0**-decimals
        number = float(np.round(middle / unit) * unit)
        if low < number < high:
            return number
    return middle


def are_evenly_spaced(edges: NDArray[np.float64]) -> bool:
    """Whether edges look like those of evenly spaced values.

    A single edge does if its values may be 0 and 1, or 1 and 2.
    """
    if len(edges) == 1:
        return bool(edges[0] in (0.5, 1.5))
    widths = np.diff(edges)
    return len(edges) > 1 and bool(np.allclose(widths, widths[0], rtol=1e-6))


def strip_noise(value: float) -> float:
    """A number without the last digits that rounding errors leave."""
    return float(f"{value:.12g}")
