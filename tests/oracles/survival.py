"""Product-limit curves and the estimating equation as they are defined, in plain loops.

Rows stand in any order; weights are whole numbers, so that fractions are exact.
"""

from fractions import Fraction

import numpy as np

CLOSE = 1e-12  # what counts as reached, against the rounding of sums


def kaplan_meier(time, event, weight, *, of_censoring=False, entry=None):
    """Steps of the grouped product-limit curve of T, or of C: events come first at ties."""
    steps, value = {}, Fraction(1)
    for now in sorted({t for t, w in zip(time, weight, strict=True) if w > 0}):
        at_risk = died = lost = Fraction(0)
        for i in range(len(time)):
            if time[i] >= now and (entry is None or entry[i] < now):
                at_risk += Fraction(weight[i])
            if time[i] == now and event[i]:
                died += Fraction(weight[i])
            if time[i] == now and not event[i]:
                lost += Fraction(weight[i])
        if of_censoring and lost:
            value *= 1 - lost / (at_risk - died)
        if not of_censoring and died:
            value *= 1 - died / at_risk
        steps[now] = value
    return steps


def value_at(steps, t, initial=1):
    """Right-continuous: the value of the last step at or before t."""
    value = Fraction(initial)
    for time in sorted(steps):
        if time <= t:
            value = steps[time]
    return value


def find_neighbors(weight, n_neighbors):
    """1 for the rows of largest weight, ties with the last of them included; 0 elsewhere."""
    if n_neighbors is None:
        return [int(w * len(weight) > sum(weight)) for w in weight]
    least = sorted(weight, reverse=True)[n_neighbors - 1]
    return [int(w > 0 and w >= least) for w in weight]


def censoring_steps(method, time, event, weight, n_neighbors):
    """Steps of G by one of its estimates."""
    among = {
        "beran": lambda: weight,
        "knn": lambda: find_neighbors(weight, n_neighbors),
        "km": lambda: [1] * len(time),
    }[method]()
    return kaplan_meier(time, event, among, of_censoring=True)


def estimating_equation(method, time, event, weight, tau, n_neighbors=None):
    """S_n, and G beside it, at each candidate up to the last event among them."""
    steps = censoring_steps(method, time, event, weight, n_neighbors)
    rows = [i for i in range(len(time)) if weight[i] > 0]
    last = max((time[i] for i in rows if event[i]), default=-np.inf)
    total = Fraction(sum(weight))
    for q in sorted({time[i] for i in rows if time[i] <= last}):
        g = value_at(steps, q)
        still_there = sum(Fraction(weight[i]) for i in rows if time[i] > q) / total
        yield q, (1 - Fraction(tau)) * g - still_there, g


def root_by_loops(method, time, event, weight, tau, n_neighbors=None):
    """First candidate with S_n >= 0; where that is 0 = 0, the survival curve decides."""
    steps = kaplan_meier(time, event, weight)
    for q, s_n, g in estimating_equation(method, time, event, weight, tau, n_neighbors):
        if g == 0 == s_n:
            if steps[max(t for t in steps if t <= q)] <= 1 - tau + CLOSE:
                return q
        elif s_n >= -CLOSE:
            return q
    return np.inf


def inverse_kaplan_meier(time, event, weight, tau, entry=None):
    """First time with S <= 1 - tau."""
    steps = kaplan_meier(time, event, weight, entry=entry)
    for t in sorted(steps):
        if steps[t] <= 1 - tau + CLOSE:
            return t
    return np.inf


def argmin_by_loops(method, time, event, weight, tau, n_neighbors=None):
    """|S_n| at each candidate of the argmin rule; with knn only neighbours are candidates."""
    near = weight if method != "knn" else find_neighbors(weight, n_neighbors)
    candidates = {t for t, mark in zip(time, near, strict=True) if mark}
    seen = [t for t, e, mark in zip(time, event, near, strict=True) if e and mark]
    last = max(seen, default=-np.inf)
    equation = estimating_equation(method, time, event, weight, tau, n_neighbors)
    return {t: abs(s) for t, s, g in equation if t in candidates and t <= last and not g == s == 0}
