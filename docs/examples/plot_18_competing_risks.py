"""
Which event comes first?
========================

Patients with MGUS may develop a malignancy, or die before. The forest predicts the incidence of
both; together with the probability of neither they add up to 1.

See also :doc:`/how_to/competing_risks`.
"""

import matplotlib.pyplot as plt

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_mgus2
from cqrf.plots import plot_incidence

table = load_mgus2(as_frame=True)
forest = CensoredQuantileForest(n_estimators=200, random_state=0, n_jobs=-1, time_unit="months")
forest.fit(table.X, table.y)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, row in zip(axes, (3, 6), strict=True):
    plot_incidence(forest, table.X.iloc[[row]], ax=ax)
    ax.set_title(f"age {table.X.age[row]:g}, haemoglobin {table.X.hgb[row]:g}")
