"""The labels of each splitting criterion, by definition and in exact fractions.

Labels are computed over distinct times, never by position, so ties and levels that are reached
exactly do not depend on the last digit.
"""

from fractions import Fraction

import numpy as np

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
CRITERIA = ("variance", "logrank", "quantile", "censored_quantile")


def hazard_steps(time, event, weight, entry):
    """Weight of events over weight at risk at each distinct time, in exact fractions."""
    rows, steps = list(zip(time, event, weight, entry, strict=True)), {}
    for t in sorted(set(time)):
        died = sum(w for y, d, w, _ in rows if y == t and d)
        steps[t] = died / sum(w for y, _, w, since in rows if since < t <= y)
    return steps


def centred(labels, weight):
    """Subtract the weighted mean of each column of labels, in exact fractions."""
    means = [
        sum(w * label for w, label in zip(weight, column, strict=True)) / sum(weight)
        for column in zip(*labels, strict=True)
    ]
    rows = [[label - m for label, m in zip(row, means, strict=True)] for row in labels]
    return np.array(rows, float)


def true_labels(criterion, time, event, weight=None, levels=LEVELS, entry=None):
    """Labels by definition: (labels of shape (rows, labels), one over their variance).

    The labels are those of a row of weight 1, centred, with one for each class of `quantile`.
    None where the node should not be split. A row is at risk only after its entry; the expected
    label at entry is subtracted.
    """
    late = entry is not None
    entry = [float(since) for since in entry] if late else [-np.inf] * len(time)
    time, event = [Fraction(float(t)) for t in time], [bool(d) for d in event]
    weight = [
        Fraction(1) if weight is None else Fraction(float(weight[i])) for i in range(len(time))
    ]
    taus = [Fraction(level).limit_denominator(1000) for level in levels]
    rows = list(zip(time, event, weight, strict=True))
    if criterion == "logrank":
        if not any(event):
            return None
        hazard = hazard_steps(time, event, weight, entry)
        labels = [
            [d - sum(h for t, h in hazard.items() if since < t <= y)]
            for (y, d, _), since in zip(rows, entry, strict=True)
        ]
        return centred(labels, weight), np.ones(1)
    if len(set(time)) == 1:
        return None
    if criterion == "variance":
        return centred([[y] for y in time], weight), np.ones(1)
    if criterion == "quantile":
        share = {t: sum(w for y, _, w in rows if y <= t) / sum(weight) for t in time}
        cuts = [min(t for t in time if share[t] >= tau) for tau in taus]
        if cuts[0] == max(time):
            return None
        classes = [sum(y > c for c in cuts) for y in time]
        # Labels of classes that share a cut point are zero throughout.
        n_classes = len(taus) + 1
        labels = [[Fraction(c == k) for k in range(n_classes)] for c in classes]
        return centred(labels, weight), np.ones(n_classes)
    survival, alive = {}, Fraction(1)
    for t, hazard in hazard_steps(time, event, weight, entry).items():
        alive *= 1 - hazard
        survival[t] = alive
    end = min(survival.values())
    if end > 1 - taus[0]:
        if end == 1:
            return None
        taus = [tau * (1 - end) for tau in taus]
    taus = [tau for tau in taus if end <= 1 - tau]
    cuts = [min(t for t in survival if survival[t] <= 1 - tau) for tau in taus]
    labels = []
    for (y, died, _), since in zip(rows, entry, strict=True):
        row = []
        for cut in cuts:
            label = Fraction(y > cut)
            if y <= cut and not died:
                label = survival[cut] / survival[y]
            if late:
                at_entry = min((survival[t] for t in survival if t <= since), default=1)
                expected = survival[cut] / at_entry if at_entry > 0 else 0
                label -= 1 if since >= cut else expected
            row.append(label)
        labels.append(row)
    return centred(labels, weight), np.array([1 / (tau * (1 - tau)) for tau in taus], float)


def in_order(time, event, weight=None):
    """Arrays in time order, events before censorings at a tied time."""
    time, event = np.asarray(time, float), np.asarray(event, bool)
    order = np.lexsort((~event, time))
    if weight is not None:
        weight = np.asarray(weight, np.float32)[order]
    return time[order], event[order], weight
