"""Inspection of a fitted forest: partial dependence on a feature, and permutation importance."""

from cqrf.inspection.dependence import (
    PartialDependence,
    choose_codes,
    evenly_spaced,
    partial_dependence,
    show_codes,
)
from cqrf.inspection.forests import check_forest, find_feature
from cqrf.inspection.importance import PermutationImportance, permutation_importance_oob

__all__ = [
    "PartialDependence",
    "PermutationImportance",
    "check_forest",
    "choose_codes",
    "evenly_spaced",
    "find_feature",
    "partial_dependence",
    "permutation_importance_oob",
    "show_codes",
]
