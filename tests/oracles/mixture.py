"""The mixture of curves of direct trees, residual trees and the root, as it is defined.

Each part is a list of (place, event, weight): its place is a time for direct trees, a residual for
the others. With dyadic places, knots and hazards all numbers here are exact.
"""

from bisect import bisect_right
from fractions import Fraction
from math import inf
from typing import NamedTuple

from oracles.survival import CLOSE, kaplan_meier, value_at

ROUNDING = 1e-12


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
        """Place of a time; that of infinity is beyond all known hazards only on times."""
        return t if self.factor is None else self.hazard.at(t) / self.factor

    def survival(self, t):
        """S(t); at the time of a step the place of that step, which is rounded, counts."""
        place = self.place_of(t)
        return value_at(self.steps, place if self.factor is None else place * (1 + ROUNDING))

    def is_known(self, t):
        if self.survival(t) == 0:
            return True
        if self.factor is None:
            return t <= self.last
        return t <= self.hazard.last_time and self.place_of(t) * (1 - ROUNDING) <= self.last

    def times(self):
        if self.factor is None:
            return list(self.steps)
        return [t for u in self.steps for t in self.hazard.times_of(u * self.factor)]

    def falls_to_zero(self):
        return self.survival(inf) == 0


def step_times(pairs):
    return sorted({t for part, _ in pairs for t in part.times()})


def follow(pairs, t):
    """S(t), step by step: a part that has ended falls in proportion to the others."""
    alive, ended = list(pairs), Fraction(0)
    value = sum(Fraction(share) for _, share in pairs)
    before = {id(part): Fraction(1) for part, _ in pairs}
    for step in step_times(pairs):
        if step > t:
            break
        for part, share in [pair for pair in alive if not pair[0].is_known(step)]:
            ended += Fraction(share) * before[id(part)]
            alive.remove((part, share))
        was = sum(Fraction(share) * before[id(part)] for part, share in alive)
        before |= {id(part): part.survival(step) for part, _ in alive}
        now = sum(Fraction(share) * before[id(part)] for part, share in alive)
        ended *= now / was if was > 0 else 1
        value = ended + now
    return value


def mixture_at(parts, shares, t):
    """S(t), or None where it is not known: beyond the end of direct trees, if there are any.

    Where these fall to 0, and the mixture does not, it ends with the last of the other parts.
    """
    pairs = [pair for pair in zip(parts, shares, strict=True) if pair[1]]
    first = pairs[0][0]
    value = follow(pairs, t)
    if not first.falls_to_zero():
        return value if first.is_known(t) else None
    others = [part for part, _ in pairs[1:] if not part.falls_to_zero()]
    is_open = others and follow(pairs, inf) > 0
    return None if is_open and not any(part.is_known(t) for part in others) else value


def mixture_quantile(parts, shares, tau):
    """First time at which the mixture is known and at most 1 - tau; infinity if there is none."""
    pairs = [pair for pair in zip(parts, shares, strict=True) if pair[1]]
    for t in step_times(pairs):
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
