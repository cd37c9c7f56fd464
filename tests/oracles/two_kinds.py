"""What a forest with a working model should answer, in plain loops over its trees.

From the fitted model it takes the trees, the scores and the baseline hazard as they stand; which
rows a query meets, on which scale, and what follows from it is worked out again.
"""

import math

from oracles.forest import Walker
from oracles.mixture import Hazard, Part, mixture_at, share_out


class TwoKinds:
    """The direct and residual trees of a model; times oriented to the right, in table order."""

    def __init__(self, model, time, event, entry=None):
        working = model.working
        self.walker, self.model = Walker(model), model
        self.time, self.event = [float(t) for t in time], [bool(e) for e in event]
        self.entry = None if entry is None else [float(e) for e in entry]
        self.hazard = Hazard(working.knots.tolist(), working.hazards.tolist(), max(self.time))
        self.predictor = [0.0] * len(self.time)
        for rank, row in enumerate(model.order.tolist()):
            self.predictor[row] = float(working.linear_predictor[rank])
        self.n_trees = len(model.forest.roots)
        self.residual = list(map(self.place, self.time, self.predictor))
        self.entered = None
        if entry is not None:
            self.entered = list(map(self.place, self.entry, self.predictor))

    def place(self, t, predictor):
        """A time on the residual scale."""
        return self.hazard.at(t) * math.exp(predictor)

    def weights(self, values, trees):
        """Weights from direct and from residual trees, among those with these places."""
        n_direct = (self.n_trees + 1) // 2
        direct, residual = [t for t in trees if t < n_direct], [t for t in trees if t >= n_direct]
        return [self.walker.weights(values, kind) if kind else None for kind in (direct, residual)]

    def parts(self, values, trees, predictor):
        """The components of a query, and their shares."""
        factor = math.exp(-predictor)
        direct, residual = self.weights(values, trees)
        order = self.walker.order
        every = [0.0] * len(order)
        for rank, row in enumerate(order):
            every[row] = float(self.walker.weight[rank])
        a = self.model.working.root_share
        parts = [
            None if direct is None else self.part(self.time, direct, None, self.entry),
            None if residual is None else self.part(self.residual, residual, factor, self.entered),
            self.part(self.residual, every, factor, self.entered),
        ]
        shares = share_out(
            ((1 - a) / 2, (1 - a) / 2, a), parts[0] is not None, parts[1] is not None
        )
        return parts, shares

    def part(self, place, weight, factor, entry):
        rows = list(zip(place, self.event, weight, strict=True))
        return Part(rows, self.hazard, factor, entry)

    def survival(self, values, trees, predictor, t):
        """S(t), NaN where it is not known."""
        parts, shares = self.parts(values, trees, predictor)
        value = mixture_at(parts, shares, t)
        return math.nan if value is None else float(value)
