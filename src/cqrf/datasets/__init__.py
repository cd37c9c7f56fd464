"""Datasets: two real tables, and simulations with known quantiles or treatment effects."""

from cqrf.datasets.generators import (
    make_aft,
    make_dependent_censoring,
    make_heteroscedastic,
    make_sine,
)
from cqrf.datasets.tables import load_boston_housing, load_pbc
from cqrf.datasets.treatment import make_treatment

__all__ = [
    "load_boston_housing",
    "load_pbc",
    "make_aft",
    "make_dependent_censoring",
    "make_heteroscedastic",
    "make_sine",
    "make_treatment",
]
