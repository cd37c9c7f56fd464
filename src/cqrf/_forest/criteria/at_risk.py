"""Weight at risk at each row of a node, which all criteria but the variance start from."""

from __future__ import annotations

import numpy as np

from cqrf._input.risk_sets import subtract_not_entered
from cqrf._runtime.compiling import called


@called
def weigh_rows(weight, here, labels, at_risk):
    """Write each row's weight to ``labels[:, 0]``, and that of it and all behind it to ``at_risk``.

    ``weight`` is by row of the table, or None if all weigh 1. Returns the total weight.
    """
    n = here.shape[0]
    if weight is None:
        for i in range(n):
            labels[i, 0], at_risk[i] = 1.0, n - i
        return np.float64(n)
    remaining = 0.0
    for i in range(n - 1, -1, -1):
        labels[i, 0] = weight[here[i]]
        remaining += labels[i, 0]
        at_risk[i] = remaining
    return remaining


@called
def has_entries(first_at_risk):
    """Whether some rows enter late."""
    return first_at_risk is not None


@called
def remove_not_entered(first_at_risk, here, labels, at_risk, value, absent):
    """With delayed entry, subtract rows that have not entered from ``at_risk``.

    ``value``, (n,), and ``absent``, (n + 1,), are float64 work arrays.
    """
    if first_at_risk is not None:
        for i in range(here.shape[0]):
            value[i] = labels[i, 0]
        subtract_not_entered(here, value, first_at_risk, at_risk, absent)
