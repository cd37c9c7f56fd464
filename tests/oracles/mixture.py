"""The mixture of curves of direct trees, residual trees and the root, as it is defined.

Each part is a list of (place, event, weight): its place is a time for direct trees, a residual for
the others. With dyadic places, knots and hazards all numbers here are exact.
"""

from bisect import bisect_right
from fractions import Fraction
from math import inf
from typing import NamedTuple

from oracles.survival import CLOSE, kaplan_meier, value_at


class Hazard(NamedTuple):
    """Cumulative baseline hazard: linear between knots, flat from the last to ``last_time``."""

    knots: list
    hazards: list
    last_time: float

    def at(self, t):
        if t < self.knots[0]:
            return -inf  # before the first time nothing can have happened
        if t >= self.knots[-1]:
            return self.hazards[-1]
        k = bisect_right(self.knots, t)
        before, after = self.knots[k - 1], self.knots[k]
        low, high = self.hazards[k - 1], self.hazards[k]
        return low + (high - low) * (t - before) / (after - before)

    def times_of(self, hazard):
        """First time at which the hazard is reached, as a list without or with one element."""
        if hazard > self.hazards[-1]:
            return []
        if hazard <= self.hazards[0]:
            return [self.knots[0]]
        k = next(k for k, each in enumerate(self.hazards) if each >= hazard)
        low, high = self.hazards[k - 1], self.hazards[k]
        share = (hazard - low) / (high - low)
        return [self.knots[k - 1] + share * (self.knots[k] - self.knots[k - 1])]


class Part:
    """A component of the mixture at one query; ``factor`` None: on times."""

    def __init__(self, rows, hazard, factor=None, entry=None):
        place, event, weight = (list(each) for each in zip(*rows, strict=True))
        self.steps = kaplan_meier(place, event, weight, entry=entry)
        self.last = max(p for p, w in zip(place, weight, strict=True) if w > 0)
        self.hazard, self.factor = hazard, factor

    def place_of(self, t):
        return t if self.factor is None else self.hazard.at(t) / self.factor

    def survival(self, t):
        return value_at(self.steps, self.place_of(t))

    def is_known(self, t):
        if self.survival(t) == 0:
            return True
        if self.factor is not None and t > self.hazard.last_time:
            return False
        return self.place_of(t) <= self.last

    def times(self):
        if self.factor is None:
            return list(self.steps)
        return [t for u in self.steps for t in self.hazard.times_of(u * self.factor)]


def mixture_at(parts, shares, t):
    """S(t), or None where some part is not known."""
    if not all(part.is_known(t) for part, share in zip(parts, shares, strict=True) if share):
        return None
    pairs = zip(parts, shares, strict=True)
    return sum(Fraction(share) * part.survival(t) for part, share in pairs if share)


def mixture_quantile(parts, shares, tau):
    """First time at which the mixture is known and at most 1 - tau; infinity if there is none."""
    of_parts = [part.times() for part, share in zip(parts, shares, strict=True) if share]
    for t in sorted({t for times in of_parts for t in times}):
        value = mixture_at(parts, shares, t)
        if value is not None and value <= 1 - tau + CLOSE:
            return t
    return inf


def share_out(shares, has_direct, has_residual):
    """Shares of a query; trees of one kind take the place of the other where it has none."""
    direct, residual, root = shares
    if has_direct and has_residual:
        return shares
    return (direct + residual) * has_direct, (direct + residual) * has_residual, root
