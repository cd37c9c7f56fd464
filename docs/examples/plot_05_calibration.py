"""
Are the predicted levels right?
===============================

A tenth of new patients should die before their predicted .1 quantile, half before their median.
The forest is fitted to half of the patients and judged on the other half. A curve above the
diagonal means that deaths came earlier than predicted. The pale part rests on too few patients
to judge.

See also :doc:`/how_to/calibration`.
"""

import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.calibration import assess_calibration
from cqrf.datasets import load_pbc
from cqrf.plots import plot_calibration

pbc = load_pbc()
train = np.arange(len(pbc.y)) % 2 == 0
forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(pbc.X[train], pbc.y[train])
ax = plot_calibration(assess_calibration(forest, pbc.X[~train], pbc.y[~train]))
