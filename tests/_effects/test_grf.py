"""Average effects next to those of R's grf, on the same rows and with default forests."""

import numpy as np
import pytest

from cqrf import censored
from cqrf.effects import CensoredTreatmentForest
from support.treated import read_golden

TARGETS = {"rmst": ("rmst", "horizon"), "prob": ("survival", "times")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["simple1", "type1", "type2", "type5"])
def test_average_effects_are_near_those_of_grf(kind):
    rows, golden = read_golden(f"rows_{kind}.csv.gz"), read_golden("averages.csv")
    X = np.column_stack([rows[f"x{j}"] for j in range(1, 6)])
    forest = CensoredTreatmentForest(random_state=1, n_jobs=2)
    forest.fit(X, censored(rows["time"], rows["event"] == 1), rows["w"])
    for name, (target, argument) in TARGETS.items():
        row = ((golden["dgp"] == kind) & (golden["target"] == name)).argmax()
        found = forest.ate(target, **{argument: golden["horizon"][row]})
        difference = (found.estimate - golden["ate"][row]) / golden["ate_se"][row]
        ratio = found.standard_error / golden["ate_se"][row]
        print(f"{kind} {name}: {difference:+.3f} errors of grf, {ratio:.3f} times its error")
        assert abs(difference) < 0.3
        assert 0.9 < ratio < 1.1
