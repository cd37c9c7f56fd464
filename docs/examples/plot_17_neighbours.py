"""
Which training rows is a prediction made of?
============================================

A prediction is a Kaplan-Meier curve of weighted training rows. These are the 40 patients of
largest weight for one patient: their times, whether they died, and their weight as the size of
the mark. The weights are out of bag: the patient is not among the rows.

See also :doc:`/how_to/own_weights` and :doc:`/how_to/feature_importance`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X, pbc.y)
weights = forest.weights_oob()[[3]].toarray()[0]
near = np.argsort(-weights)[:40]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for died, marker, color in ((True, "o", "#D55E00"), (False, ">", "#0072B2")):
    rows = near[pbc.y["event"][near] == died]
    label = "died" if died else "censored: lived at least so long"
    place = pbc.y["time"][rows] / 365.25, pbc.X["bili"].iloc[rows]
    ax.scatter(*place, s=4000 * weights[rows], marker=marker, alpha=0.6, color=color, label=label)
ax.axhline(pbc.X["bili"].iloc[3], color="0.5", lw=0.8, ls="--", label="the patient's bilirubin")
ax.set(xlabel="years", ylabel="bilirubin, mg/dl", yscale="log")
ax.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"], minor=False)
ax.minorticks_off()
ax.legend(frameon=False)
