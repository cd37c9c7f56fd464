"""Datasets: two real tables, and four simulations with known conditional quantiles."""

from cqrf.datasets.generators import (
    make_aft,
    make_dependent_censoring,
    make_heteroscedastic,
    make_sine,
)
from cqrf.datasets.tables import load_boston_housing, load_pbc

__all__ = [
    "load_boston_housing",
    "load_pbc",
    "make_aft",
    "make_dependent_censoring",
    "make_heteroscedastic",
    "make_sine",
]
