"""
How long will these three patients live?
========================================

The forest gives each patient a survival curve, and quantiles are read off it. A curve ends in
an open circle at the end of the follow-up; it may go on anywhere in the hatched area.

See also :doc:`/how_to/heavy_censoring` and :doc:`/tutorial/index`.
"""

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.plots import plot_survival

pbc = load_pbc(as_frame=True)
forest = CensoredQuantileForest(random_state=0, n_jobs=-1, time_unit="days", event_name="death")
forest.fit(pbc.X.iloc[7:], pbc.y[7:])
patients = pbc.X.iloc[[6, 3, 0]]  # held out of the fit
ax = plot_survival(forest, patients, labels=["patient 7", "patient 4", "patient 1"], scale=365.25)
ax.set_xlabel("years")
