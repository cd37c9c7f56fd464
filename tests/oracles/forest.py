"""What a forest should answer, in plain loops over the user's own values: slow, and independent.

Nothing here is compiled, binned or vectorised. From a fitted forest it takes the trees as they
stand; where rows fall, what they weigh and what follows from it is worked out again.
"""

import bisect
import math

LEAF = -1


class Walker:
    """Reads a fitted forest with raw values: numbers against edges, labels against levels."""

    def __init__(self, model):
        forest = model.forest
        self.roots = forest.roots.tolist()
        self.feature, self.left = forest.feature.tolist(), forest.left.tolist()
        self.code, self.missing_left = forest.code.tolist(), forest.missing_left.tolist()
        self.subsets = forest.subsets.tolist()
        self.offsets, self.rows = forest.leaf_offsets.tolist(), forest.leaf_rows.tolist()
        self.edges = [edges.tolist() for edges in model.edges]
        self.levels = model.columns.levels
        self.order = model.order.tolist()
        weight = model.rows.weight
        self.weight = [1.0] * len(self.order) if weight is None else weight.tolist()

    def goes_left(self, node, values):
        feature, code = self.feature[node], self.code[node]
        value, levels = values[feature], self.levels[feature]
        if levels is not None:
            if value is None or value not in levels:
                return self.missing_left[node]
            level = levels.index(value)
            return self.subsets[code][level // 64] >> (level % 64) & 1 == 1
        if math.isnan(value):
            return self.missing_left[node]
        edges = self.edges[feature]
        return code >= len(edges) or value <= edges[code]

    def find_leaf(self, root, values):
        node = root
        while self.feature[node] != LEAF:
            node = self.left[node] + (0 if self.goes_left(node, values) else 1)
        return self.left[node]

    def members(self, leaf):
        """Rows of the table in a leaf."""
        return [self.order[rank] for rank in self.rows[self.offsets[leaf] : self.offsets[leaf + 1]]]

    def weights(self, values, trees=None):
        """Weight of each row of the table, from all trees or some of them."""
        total = [0.0] * len(self.order)
        by_row = dict(zip(self.order, self.weight, strict=True))
        trees = range(len(self.roots)) if trees is None else trees
        for tree in trees:
            rows = self.members(self.find_leaf(self.roots[tree], values))
            mass = sum(by_row[row] for row in rows)
            for row in rows:
                total[row] += by_row[row] / mass / len(trees)
        return total


def product_limit(weights, time, event, entry):
    """Times of events and survival after them; at a tied time events come first."""
    known = [i for i, weight in enumerate(weights) if weight > 0]
    steps, survival = [], 1.0
    for at in sorted({time[i] for i in known if event[i]}):
        dying = math.fsum(weights[i] for i in known if event[i] and time[i] == at)
        at_risk = math.fsum(weights[i] for i in known if time[i] >= at and entry[i] < at)
        survival *= max(0.0, 1.0 - dying / at_risk)
        steps.append((at, survival))
    return steps


def survival_at(steps, t):
    place = bisect.bisect_right([at for at, _ in steps], t)
    return 1.0 if place == 0 else steps[place - 1][1]


def quantile(steps, level):
    """First time at which survival is down to 1 - level; infinite if it never is."""
    return next((at for at, survival in steps if survival <= 1.0 - level), math.inf)
