"""
Is the forest better than Cox and Kaplan-Meier?
===============================================

The Brier score is the squared error of the predicted survival at each time; lower is better. A
Kaplan-Meier curve, the same for everyone, is the reference. All are scored on held-out
patients. The Cox model has a fixed penalty and takes codes of categories as numbers. One split of
one small table does not show small differences. The example needs ``pip install scikit-survival``.

See also :doc:`/how_to/accuracy` and :doc:`/which_model`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.metrics import brier_score

pbc = load_pbc()
X, X_test, y, y_test = train_test_split(pbc.X, pbc.y, test_size=0.4, random_state=0)
times = np.linspace(200, 3500, 60)

forest = CensoredQuantileForest(random_state=0, n_jobs=-1).fit(X, y)
cox = make_pipeline(SimpleImputer(), StandardScaler(), CoxPHSurvivalAnalysis(alpha=1.0)).fit(X, y)
curves = cox[-1].predict_survival_function(cox[:-1].transform(X_test))
no_splits = {"min_samples_split": 10**6, "working_model": None}
kaplan_meier = CensoredQuantileForest(random_state=0, **no_splits).fit(X, y)

survival = {
    "Kaplan-Meier": kaplan_meier.predict_survival(X_test, times),
    "Cox": np.array([curve(times) for curve in curves]),
    "forest": forest.predict_survival(X_test, times),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, predicted), style in zip(survival.items(), ("0.5", "#D55E00", "#0072B2")):
    ax.plot(times / 365.25, brier_score(y, y_test, predicted, times), color=style, label=name)
ax.set(xlabel="years", ylabel="Brier score (lower is better)", ylim=(0, None))
ax.legend(frameon=False)
