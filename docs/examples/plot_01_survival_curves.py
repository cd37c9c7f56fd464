"""
How long will these three patients live?
========================================

The forest gives each patient a survival curve, and quantiles are read off it. A curve ends in
an open circle where the training rows say no more; it may go on anywhere in the hatched area.
"""

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.plots import plot_survival

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1, time_unit="days", event_name="death")
forest.fit(pbc.X, pbc.y)
patients = pbc.X.iloc[[1, 3, 0]]
ax = plot_survival(forest, patients, labels=["patient 2", "patient 4", "patient 1"], scale=365.25)
ax.set_xlabel("years")
