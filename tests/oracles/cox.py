"""The Cox partial likelihood as it is defined, in plain loops over rows in any order."""

import math


def at_risk(time, entry, t):
    """Rows that are at risk at t: they have entered before and have not ended before."""
    return [j for j in range(len(time)) if time[j] >= t and (entry is None or entry[j] < t)]


def penalised_likelihood(data, matrix, penalty, coefficients):
    """Partial log likelihood with Breslow's ties, less the ridge penalty."""
    time, event, weight, entry = data
    eta = [math.fsum(z * b for z, b in zip(row, coefficients, strict=True)) for row in matrix]
    terms = []
    for i, t in enumerate(time):
        if event[i]:
            total = math.fsum(weight[j] * math.exp(eta[j]) for j in at_risk(time, entry, t))
            terms.append(weight[i] * (eta[i] - math.log(total)))
    return math.fsum(terms) - penalty / 2 * math.fsum(b * b for b in coefficients)


def cumulative_hazard(data, eta, t):
    """Breslow's cumulative baseline hazard at t."""
    time, event, weight, entry = data
    total = 0.0
    for i, at in enumerate(time):
        if event[i] and at <= t:
            rows = at_risk(time, entry, at)
            total += weight[i] / math.fsum(weight[j] * math.exp(eta[j]) for j in rows)
    return total
