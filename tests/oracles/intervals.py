"""Interval-censored rows in plain loops: innermost intervals, Turnbull's EM, and its optimum.

A row is (left, right]; left == right is exact, right = inf right-censored.
"""

import math
from itertools import pairwise

import numpy as np


def covers(row, interval):
    """Whether an innermost interval lies in a row."""
    (left, right), (q, p) = row, interval
    if left == right:
        return q == p == left
    return left < p <= right and left <= q and (q, p) != (left, left)


def innermost(rows):
    """Pairs of a left and a right end between which there is no other end."""
    ends = []
    for left, right in rows:
        ends.append((left, 0 if left == right else 2, "left"))
        ends.append((right, 1, "right"))
    ends.sort()
    return [(a[0], b[0]) for a, b in pairwise(ends) if a[2] == "left" and b[2] == "right"]


def incidence(rows, intervals):
    """1 where a row covers an interval."""
    return np.array([[float(covers(row, each)) for each in intervals] for row in rows])


def em(rows, weights, n_steps):
    """Turnbull's self-consistency, from equal masses: (intervals, masses)."""
    intervals = innermost(rows)
    matrix, share = incidence(rows, intervals), np.asarray(weights) / math.fsum(weights)
    masses = np.full(len(intervals), 1 / len(intervals))
    for _ in range(n_steps):
        masses = masses * (matrix.T @ (share / (matrix @ masses)))
    return intervals, masses


def violation(rows, weights, intervals, masses):
    """How far the masses are from the optimality conditions: max g_j - 1."""
    matrix, share = incidence(rows, intervals), np.asarray(weights) / math.fsum(weights)
    return float((matrix.T @ (share / (matrix @ masses))).max() - 1)


def log_likelihood(rows, weights, intervals, masses):
    """Mean log-likelihood of the masses."""
    matrix, share = incidence(rows, intervals), np.asarray(weights) / math.fsum(weights)
    return float(share @ np.log(matrix @ masses))
