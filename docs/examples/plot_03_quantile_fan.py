"""
How do quantiles change with one feature?
=========================================

Partial dependence of the .1, .25 and .4 quantile on bilirubin, averaged over all patients. All
fall steeply up to a value of about 3, and slowly from there on. The marks below are the
patients.

See also :doc:`/how_to/feature_importance`.
"""

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.plots import plot_quantile_fan

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X, pbc.y)
ax = plot_quantile_fan(forest, pbc.X, "bili", quantiles=(0.1, 0.25, 0.4), scale=365.25)
ax.set(xlabel="bilirubin, mg/dl", ylabel="years")
