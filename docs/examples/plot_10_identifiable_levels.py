"""
Which quantiles are identifiable?
=================================

The PBC study is stopped after three years, so that most patients are still alive. For each
patient there is a largest level that is identifiable. The median is to the right of nearly all.

See also :doc:`/how_to/heavy_censoring`.
"""

import matplotlib.pyplot as plt
import numpy as np

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import load_pbc

pbc = load_pbc()
stopped = censored(np.minimum(pbc.y["time"], 1095), pbc.y["event"] & (pbc.y["time"] <= 1095))
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X, stopped)
levels = forest.max_quantile(pbc.X)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.hist(levels, bins=np.arange(0, 1.01, 0.025), color="#0072B2")
ax.axvline(0.5, color="#D55E00", ls="--", label="the median")
ax.set(xlim=(0, 1), xlabel="largest identifiable level", ylabel="patients")
ax.set_title(f"{np.mean(levels >= 0.5):.0%} of the patients have a median")
ax.legend(frameon=False)
