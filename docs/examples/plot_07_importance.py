"""
Which features matter?
======================

Skill that is lost if the values of a feature are permuted, out of bag, with two standard
errors. A bar that reaches 0 is a feature that the forest could do without.

See also :doc:`/how_to/feature_importance`.
"""

import matplotlib.pyplot as plt

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.inspection import permutation_importance_oob

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X, pbc.y)
found = permutation_importance_oob(forest, random_state=0).to_frame().head(10)[::-1]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh(found.index, found["importance"], xerr=2 * found["standard_error"], color="#56B4E9")
ax.axvline(0, color="black", lw=0.8)
ax.set(xlabel="skill lost without the feature")
