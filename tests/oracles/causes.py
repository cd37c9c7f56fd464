"""Competing risks by definition: Aalen-Johansen curves and labels, in exact fractions.

Sums run over distinct times, never over positions, so ties do not depend on the last digit.
"""

from fractions import Fraction

import numpy as np

from oracles.criteria import centred


def curves_by_definition(time, cause, weight, entry, n_causes):
    """S and F_k after each distinct time: a list of (t, S, [F_1, ...])."""
    rows = list(zip(time, cause, weight, entry, strict=True))
    survival, incidence, steps = Fraction(1), [Fraction(0)] * n_causes, []
    for t in sorted(set(time)):
        at_risk = sum(w for y, _, w, since in rows if since < t <= y)
        if at_risk == 0:
            continue
        died = [sum(w for y, c, w, _ in rows if y == t and c == k + 1) for k in range(n_causes)]
        incidence = [f + survival * d / at_risk for f, d in zip(incidence, died, strict=True)]
        survival *= 1 - sum(died) / at_risk
        steps.append((t, survival, incidence))
    return steps


def curve_at(steps, t, n_causes):
    """S and F_k at a time."""
    before = [step for step in steps if step[0] <= t]
    return before[-1][1:] if before else (Fraction(1), [Fraction(0)] * n_causes)


def labels_by_definition(criterion, rows, levels, chosen, n_causes):
    """Centred labels of each row, and the standard deviation by which each is divided.

    rows : (time, cause, weight, entry); chosen : causes that are split on, from 1 on.
    None where the node should not be split.
    """
    time = [Fraction(float(t)) for t in rows[0]]
    cause = [int(c) for c in rows[1]]
    weight = [Fraction(1) if rows[2] is None else Fraction(float(w)) for w in _each(rows[2], time)]
    entry = [-np.inf if rows[3] is None else float(since) for since in _each(rows[3], time)]
    if criterion == "logrank":
        return _martingale_residuals(time, cause, weight, entry, chosen)
    if len(set(time)) == 1:
        return None
    steps = curves_by_definition(time, cause, weight, entry, n_causes)
    taus = [Fraction(level).limit_denominator(1000) for level in levels]
    end = steps[-1][1]
    if end > 1 - taus[0]:
        if end == 1:
            return None
        taus = [tau * (1 - end) for tau in taus]
    cuts = [min(t for t, s, _ in steps if s <= 1 - tau) for tau in taus if end <= 1 - tau]
    labels = []
    for y, c, since in zip(time, cause, entry, strict=True):
        row = []
        for cut in cuts:
            _, at_cut = curve_at(steps, cut, n_causes)
            for k in chosen:
                label = Fraction(c == k and y <= cut)
                if c == 0 and y <= cut:
                    survival, known = curve_at(steps, y, n_causes)
                    label = (at_cut[k - 1] - known[k - 1]) / survival
                if since < cut:
                    survival, known = curve_at(steps, since, n_causes)
                    if survival > 0:
                        label -= (at_cut[k - 1] - known[k - 1]) / survival
                row.append(label)
        labels.append(row)
    shares = [curve_at(steps, cut, n_causes)[1][k - 1] for cut in cuts for k in chosen]
    return centred(labels, weight), np.array([float(f * (1 - f)) ** 0.5 for f in shares])


def _martingale_residuals(time, cause, weight, entry, chosen):
    if not any(c in chosen for c in cause):
        return None
    rows, labels = list(zip(time, cause, weight, entry, strict=True)), []
    for y, c, _, since in rows:
        row = []
        for k in chosen:
            expected = Fraction(0)
            for t in sorted({t for t in time if since < t <= y}):
                died = sum(w for other, d, w, _ in rows if other == t and d == k)
                expected += died / sum(w for other, _, w, late in rows if late < t <= other)
            row.append((c == k) - expected)
        labels.append(row)
    return np.array([[float(label) for label in row] for row in labels]), np.ones(len(chosen))


def _each(values, time):
    return [None] * len(time) if values is None else values
