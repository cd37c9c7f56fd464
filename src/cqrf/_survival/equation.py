"""The equation whose root is a quantile, and the two rules that read it off.

    S_n(q) = (1 - tau) G(q) - H(q),    H(q) = sum_i w_i 1(Y_i > q),

over the candidates q = Y_i with w_i > 0, up to the last event among them (beyond it both
terms may vanish together, which says nothing).

root
    The first candidate with S_n(q) >= 0 (0 = 0, where nobody is left, does not count). With
    Beran's G this is where the survival curve S = H / G reaches 1 - tau. Monotone in tau; the
    ordinary weighted quantile where nothing is censored. Where S_n stays below 0 the quantile
    cannot be estimated: inf.
argmin
    The candidate with the smallest |S_n(q)|, the first of equals: the paper's rule. With
    ``knn`` only neighbours are candidates, as in the paper.

G is estimated by ``beran`` (product-limit with the same weights), ``knn`` (Kaplan-Meier over
the rows of largest weight) or ``km`` (Kaplan-Meier over all rows).
"""

from __future__ import annotations

import numpy as np

from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import allocating_kernel
from cqrf._survival.curves import product_limit

BERAN, KNN, KM = 0, 1, 2


@allocating_kernel
def read_roots(offsets, ranks, weights, time, event, taus, at_risk, quantiles, last_time):
    """The default: where S reaches 1 - tau for each of the ascending taus, Beran's G.

    Writes the roots that there are and the last time of each row that has weights; ``at_risk`` is
    scratch, one place more than a row has weights at most.

    As S = A / G with A the weight still at risk, an event only compares A with
    (1 - tau) G, and only a censoring divides. The walk ends with the last tau.
    """
    n_taus = taus.shape[0]
    for q in range(offsets.shape[0] - 1):
        start, end = offsets[q], offsets[q + 1]
        if start == end:
            continue
        remaining = 0.0
        at_risk[end - start] = 0.0
        for i in range(end - 1, start - 1, -1):
            remaining += weights[i]
            at_risk[i - start] = remaining
        last_time[q] = time[ranks[end - 1]]
        k, g = 0, at_risk[0]
        threshold = (1.0 - taus[0] + TOLERANCE) * g
        for i in range(end - start):
            rank = ranks[start + i]
            if not event[rank]:
                g *= at_risk[i + 1] / at_risk[i]
                threshold = (1.0 - taus[k] + TOLERANCE) * g
                continue
            while at_risk[i + 1] <= threshold:
                quantiles[q, k] = time[rank]
                k += 1
                if k == n_taus:
                    break
                threshold = (1.0 - taus[k] + TOLERANCE) * g
            if k == n_taus:
                break


@allocating_kernel
def solve_rows(
    offsets,
    ranks,
    weights,
    time,
    event,
    first_at_risk,
    sample_weight,
    method,
    n_neighbors,
    taus,
    use_root,
):
    """Solve for each row of weights and each of the ascending taus.

    Returns the quantiles (inf where unidentified), the last time of each row that has
    weight, and the largest level that can be solved for.
    """
    n_queries, n_train = offsets.shape[0] - 1, time.shape[0]
    quantiles = np.full((n_queries, taus.shape[0]), np.inf)
    last_time, max_level = np.full(n_queries, np.nan), np.zeros(n_queries)
    at_risk = np.empty(n_train + 1)
    survival, beran, other = np.empty(n_train), np.empty(n_train), np.empty(n_train)
    ones, unused = np.empty(n_train), np.empty(n_train)

    total = 1.0 * n_train
    if sample_weight is not None:
        total = 0.0
        for rank in range(n_train):
            total += sample_weight[rank]
    marginal = np.empty(0)
    if method == KM:
        marginal = np.empty(n_train)
        for rank in range(n_train):
            ones[rank] = 1.0 if sample_weight is None else np.float64(sample_weight[rank])
        all_ranks = np.arange(n_train).astype(np.int32)
        product_limit(all_ranks, ones, event, first_at_risk, at_risk, unused, marginal)
        for rank in range(n_train - 2, -1, -1):
            if time[rank] == time[rank + 1]:
                marginal[rank] = marginal[rank + 1]

    for q in range(n_queries):
        row, w = ranks[offsets[q] : offsets[q + 1]], weights[offsets[q] : offsets[q + 1]]
        n = row.shape[0]
        if n == 0:
            quantiles[q] = np.nan
            max_level[q] = np.nan
            continue
        product_limit(row, w, event, first_at_risk, at_risk, survival, beran)
        if method == KNN:
            mark_neighbors(row, w, sample_weight, n_neighbors, total, ones)
            product_limit(row, ones[:n], event, first_at_risk, at_risk, unused, other)
        elif method == KM:
            for i in range(n):
                other[i] = marginal[row[i]]
        last_time[q] = time[row[n - 1]]
        neighbors_only = method == KNN and not use_root
        end = n
        while end > 0 and (not event[row[end - 1]] or (neighbors_only and ones[end - 1] == 0.0)):
            end -= 1
        # A candidate is a time: it is judged where its last tied row has been passed.
        while 0 < end < n and time[row[end]] == time[row[end - 1]]:
            end += 1
        smallest = np.full(taus.shape[0], np.inf)
        k, is_candidate = 0, False
        for i in range(end):
            is_candidate |= not neighbors_only or ones[i] > 0.0
            if i + 1 < n and time[row[i + 1]] == time[row[i]]:
                continue
            if not is_candidate:
                continue
            is_candidate = False
            still_there = survival[i] * beran[i]
            g = beran[i] if method == BERAN else other[i]
            s = survival[i]
            if method != BERAN and g > 0.0:
                s = still_there / g
            elif method != BERAN and still_there > 0.0:
                s = 1.0
            max_level[q] = max(max_level[q], 1.0 - s)
            if use_root:
                while k < taus.shape[0] and s <= 1.0 - taus[k] + TOLERANCE:
                    quantiles[q, k] = time[row[i]]
                    k += 1
                if k == taus.shape[0] and k > 0:
                    break
            elif g > 0.0 or still_there > 0.0:
                for j in range(taus.shape[0]):
                    distance = abs((1.0 - taus[j]) * g - still_there)
                    if distance < smallest[j]:
                        smallest[j] = distance
                        quantiles[q, j] = time[row[i]]
    return quantiles, last_time, max_level


@allocating_kernel
def mark_neighbors(row, weights, sample_weight, n_neighbors, total, marks):
    """Write the weight in a Kaplan-Meier curve of each row: 0 unless it is a neighbour.

    A row with sample weight s is s copies, which share its weight; ``total`` is the number
    of all copies. Without a number of neighbours they are the rows of more than average
    weight, or all if there are none.
    """
    n = row.shape[0]
    share = np.empty(n)
    for i in range(n):
        share[i] = weights[i] if sample_weight is None else weights[i] / sample_weight[row[i]]
    least = (1.0 + TOLERANCE) / total
    if n_neighbors > 0:
        copies = 0.0
        for i in np.argsort(-share):
            least = share[i] * (1.0 - TOLERANCE)
            copies += 1.0 if sample_weight is None else np.float64(sample_weight[row[i]])
            if copies >= n_neighbors * (1.0 - TOLERANCE):
                break
    elif share.max() < least:
        least = 0.0
    for i in range(n):
        mark = 1.0 if sample_weight is None else np.float64(sample_weight[row[i]])
        marks[i] = mark if share[i] >= least else 0.0
