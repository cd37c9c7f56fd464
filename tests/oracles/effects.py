"""Treatment effects by plain loops over rows, times and trees."""

import math
from itertools import pairwise

import numpy as np

LEAST_SURVIVAL, LEAST_CENSORING = 0.02, 0.05


class RowResponse:
    """What one row shows of 1(T > t), by definition.

    ``survival[j]`` is S from ``grid[j]`` on, ``censoring[j]`` is G just before it, ``own`` is G
    just before the row's own time.
    """

    def __init__(self, time, event, grid, survival, censoring, own):
        self.time, self.event, self.grid = time, event, list(grid)
        self.steps = [max(s, LEAST_SURVIVAL) for s in survival]
        self.censoring = [max(g, LEAST_CENSORING) for g in censoring]
        self.own = max(own, LEAST_CENSORING)

    def survival(self, t):
        value = 1.0
        for start, step in zip(self.grid, self.steps, strict=True):
            if start <= t:
                value = step
        return value

    def at(self, t):
        """S(t) {1 - [event term - compensator]}."""
        compensator, before = 0.0, 1.0
        for u, step, censoring in zip(self.grid, self.steps, self.censoring, strict=True):
            if u <= min(self.time, t):
                hazard = (before - step) / before
                compensator += hazard / (step * censoring)
                before = step
        ended = 1.0 / (self.survival(self.time) * self.own) if self.event and self.time <= t else 0
        return self.survival(t) * (1.0 - (ended - compensator))

    def mean(self, start, horizon):
        """Integral from 0 on: of 1 up to the start, and of the response from there on."""
        inside = [t for t in (*self.grid, self.time) if start < t < horizon]
        corners = sorted({start, horizon, *inside})
        return start + sum(self.at(left) * (right - left) for left, right in pairwise(corners))


def step_mean(grid, values, horizon):
    """Area from 0 to the horizon under a curve that is 1, then values[j] from grid[j] on."""
    area, before, height = 0.0, 0.0, 1.0
    for t, value in zip(grid, values, strict=True):
        end = min(t, horizon)
        if end > before:
            area += height * (end - before)
            before = end
        height = value
    return area + height * max(0.0, horizon - before)


def residual_effect(weights, residual, response):
    """sum a (W - e) (Y* - m) / sum a (W - e)^2 over the rows."""
    top = bottom = 0.0
    for a, w, y in zip(weights, residual, response, strict=True):
        top += a * w * y
        bottom += a * w * w
    return top / bottom


def ridge_slopes(basis, treatment, response, weight, penalty):
    """b of min sum weight (response - treatment (a + b' basis))^2 + penalty |b|^2.

    As least squares with more rows, one for each coefficient that is penalised.
    """
    columns = np.column_stack([treatment, treatment[:, None] * basis])
    root = np.sqrt(weight)[:, None]
    size = columns.shape[1]
    ridge = np.sqrt(penalty) * np.eye(size)
    ridge[0] *= np.sqrt(1e-9)
    rows = np.vstack([root * columns, ridge])
    target = np.concatenate([root[:, 0] * response, np.zeros(size)])
    return np.linalg.lstsq(rows, target, rcond=None)[0][1:]


def bag_variances(psi, bag_size):
    """Variance of the bags' means about that of all trees, and the variance of their noise."""
    bags = [psi[i : i + bag_size] for i in range(0, len(psi), bag_size)]
    centre = sum(psi) / len(psi)
    means = [sum(bag) / bag_size for bag in bags]
    between = sum((mean - centre) ** 2 for mean in means) / len(bags)
    within = 0.0
    for bag, mean in zip(bags, means, strict=True):
        sample_variance = sum((each - mean) ** 2 for each in bag) / (bag_size - 1)
        within += sample_variance / bag_size / len(bags)
    return between, within


def score(effect, arm, propensity, response):
    """Doubly robust score of a row; response is Y* - m."""
    residual = arm - propensity
    return effect + residual / (propensity * (1 - propensity)) * (response - residual * effect)


def population_average(population, effect, arm, propensity, response, weight):
    """Average effect: mean of the effects, and of what is left in each arm, reweighted to it.

    The curves of the arms are m + (1 - e) tau and m - e tau; what a row leaves of its own arm's is
    averaged with weights that turn that arm into the population.
    """
    wanted = {
        "all": lambda e, w: 1.0,
        "treated": lambda e, w: float(w == 1),
        "control": lambda e, w: float(w == 0),
        "overlap": lambda e, w: e * (1 - e),
    }[population]
    turned = {
        "all": lambda e: 1.0,
        "treated": lambda e: e,
        "control": lambda e: 1 - e,
        "overlap": lambda e: e * (1 - e),
    }[population]
    top = bottom = 0.0
    parts = []
    for tau, w, e, y, v in zip(effect, arm, propensity, response, weight, strict=True):
        left = y - (w - e) * tau
        share = turned(e)
        correction = share / e * left if w == 1 else -share / (1 - e) * left
        parts.append((v * (wanted(e, w) * tau + correction), v * wanted(e, w)))
        top, bottom = top + parts[-1][0], bottom + parts[-1][1]
    return top / bottom, parts


def clustered_error(parts, cluster):
    """Standard error of a ratio of sums, by sums of influences over clusters."""
    top, bottom = (sum(part[i] for part in parts) for i in (0, 1))
    sums = {}
    for (upper, lower), name in zip(parts, cluster, strict=True):
        sums[name] = sums.get(name, 0.0) + (upper - lower * top / bottom) / bottom
    n = len(sums)
    return math.sqrt(sum(each**2 for each in sums.values()) * n / (n - 1))


def hc3(scores, covariates, weight=None, cluster=None):
    """Weighted least squares with an intercept, and HC3 errors, summed by cluster."""
    n = len(scores)
    weight = np.ones(n) if weight is None else weight
    cluster = range(n) if cluster is None else cluster
    design = np.column_stack([np.ones(n), covariates])
    gram = sum(v * np.outer(x, x) for v, x in zip(weight, design, strict=True))
    bread = np.linalg.inv(gram)
    coefficient = bread @ sum(v * s * x for v, s, x in zip(weight, scores, design, strict=True))
    sums = {}
    for v, s, x, name in zip(weight, scores, design, cluster, strict=True):
        leverage = v * x @ bread @ x
        move = v * (s - x @ coefficient) / (1 - leverage) * x
        sums[name] = sums.get(name, 0.0) + move
    middle = sum(np.outer(each, each) for each in sums.values())
    return coefficient, np.sqrt(np.diag(bread @ middle @ bread))


def ranked_scores(scores, priorities):
    """Scores by falling priority; tied rows have their mean score."""
    pairs = sorted(zip(priorities, scores, strict=True), key=lambda pair: -pair[0])
    smoothed = []
    for priority, _ in pairs:
        tied = [s for p, s in pairs if p == priority]
        smoothed.append(sum(tied) / len(tied))
    return smoothed


def toc_values(scores, priorities):
    """TOC after each row."""
    ordered = ranked_scores(scores, priorities)
    average = sum(ordered) / len(ordered)
    return [sum(ordered[: k + 1]) / (k + 1) - average for k in range(len(ordered))]


def rank_average(scores, priorities, metric):
    """AUTOC, the mean of the TOC, or QINI, the mean of the share times the TOC."""
    toc = toc_values(scores, priorities)
    n = len(toc)
    shares = [1.0 if metric == "autoc" else (k + 1) / n for k in range(n)]
    return sum(q * t for q, t in zip(shares, toc, strict=True)) / n
