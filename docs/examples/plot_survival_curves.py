"""
How long will these three patients live?
========================================

A forest predicts a survival curve for every patient. The curves end in an open circle where the
training rows say no more.
"""

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.plots import plot_survival

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1, time_unit="days", event_name="death")
forest.fit(pbc.X, pbc.y)
ax = plot_survival(forest, pbc.X.iloc[[0, 4, 12]], labels=["patient 1", "patient 5", "patient 13"])
