"""Kernels of step curves.

Curve q has the steps ``offsets[q]`` to ``offsets[q + 1]`` of ``times`` and ``values``. Before the
first of them its value is ``initial[q]``. It is right-continuous. ``offsets`` is (n_queries + 1,)
int64, all other arrays are float64: ``times`` and ``values`` of (n_steps,), ``initial`` of
(n_queries,). ``out`` is written.
"""

from __future__ import annotations

import numpy as np

from cqrf._runtime.compiling import kernel


@kernel
def evaluate(offsets, times, values, initial, at, out):
    """Write the values at ascending times ``at``, (n_times,); out : (n_queries, n_times)."""
    for q in range(offsets.shape[0] - 1):
        i, value = offsets[q], initial[q]
        for j in range(at.shape[0]):
            while i < offsets[q + 1] and times[i] <= at[j]:
                value = values[i]
                i += 1
            out[q, j] = value


@kernel
def evaluate_each(offsets, times, values, initial, at, out):
    """Write the value of curve q at time ``at[q]``; at, out : (n_queries,)."""
    for q in range(at.shape[0]):
        start, end = offsets[q], offsets[q + 1]
        low, high = start, end  # the first step behind the time lies in low .. high
        while low < high:
            middle = (low + high) >> 1
            if times[middle] <= at[q]:
                low = middle + 1
            else:
                high = middle
        out[q] = values[low - 1] if low > start else initial[q]


@kernel
def find_first_at_most(offsets, times, values, initial, bounds, out):
    """Write the first time at which curve q, which falls, is at most each of ``bounds[q]``.

    Infinity if it never is, minus infinity if it is from the start. bounds, out : (n_queries,
    n_bounds)
    """
    for q in range(bounds.shape[0]):
        for k in range(bounds.shape[1]):
            low, high = offsets[q], offsets[q + 1]
            while low < high:
                middle = (low + high) >> 1
                if values[middle] <= bounds[q, k]:
                    high = middle
                else:
                    low = middle + 1
            out[q, k] = times[low] if low < offsets[q + 1] else np.inf
            if initial[q] <= bounds[q, k]:
                out[q, k] = -np.inf


@kernel
def restrict_means(offsets, times, values, initial, horizons, from_left, out):
    """Write the mean of each curve's distribution, with times cut off at a horizon of its own.

    horizons, out : (n_queries,). E[max(T, horizon)] if ``from_left``, else E[min(T, horizon)].
    """
    for q in range(offsets.shape[0] - 1):
        above, below, total = initial[q], 1.0 - initial[q], 0.0
        horizon = horizons[q]
        for i in range(offsets[q], offsets[q + 1]):
            drop = above - values[i]
            above = values[i]
            if from_left:
                total += drop * max(times[i], horizon)
            else:
                total += drop * min(times[i], horizon)
        out[q] = total + horizon * (below if from_left else above)


@kernel
def cumulate_hazard(offsets, values, initial, out):
    """Write the sum of the steps of each survival curve, relative to its value before each.

    out : (n_steps,), the cumulative hazard after each step
    """
    for q in range(offsets.shape[0] - 1):
        before, total = initial[q], 0.0
        for i in range(offsets[q], offsets[q + 1]):
            if before > 0.0:
                total += (before - values[i]) / before
            before = values[i]
            out[i] = total
