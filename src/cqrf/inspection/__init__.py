"""Inspection of a fitted forest: partial dependence on a feature, and permutation importance."""

from cqrf.inspection.dependence import PartialDependence, partial_dependence
from cqrf.inspection.importance import PermutationImportance, permutation_importance_oob

__all__ = [
    "PartialDependence",
    "PermutationImportance",
    "partial_dependence",
    "permutation_importance_oob",
]
