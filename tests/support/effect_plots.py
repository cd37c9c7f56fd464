"""Small treatment forests, and what tests read from pictures of effects."""

import re

from cqrf import CensoredQuantileForest
from cqrf.effects import CensoredTreatmentForest

HOSTILE = "$x_1$ <b>"
MINUS = "\N{MINUS SIGN}"


def grow_treatment_forest(X, y, treatment, **given):
    few = CensoredQuantileForest(n_estimators=40)
    forest = CensoredTreatmentForest(n_estimators=80, nuisance_forest=few, random_state=0)
    return forest.fit(X, y, treatment=treatment, **given)


def drawn(text):
    """A text as Matplotlib will draw it; None if as a formula."""
    shown, is_formula = text._preprocess_math(text.get_text())
    return None if is_formula else shown


def read_numbers(text):
    """Numbers in a text such as "AUTOC -0.1 (-0.3 to 0.1), 95 % intervals"."""
    return [float(each) for each in re.findall(r"-?\d+\.?\d*", text.replace(MINUS, "-"))]
