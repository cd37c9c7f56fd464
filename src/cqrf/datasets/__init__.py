"""Datasets: three real tables, and simulations with known quantiles, incidences or effects."""

from cqrf.datasets.competing import make_competing_risks
from cqrf.datasets.generators import (
    make_aft,
    make_dependent_censoring,
    make_heteroscedastic,
    make_sine,
)
from cqrf.datasets.tables import load_boston_housing, load_mgus2, load_pbc
from cqrf.datasets.treatment import make_treatment

__all__ = [
    "load_boston_housing",
    "load_mgus2",
    "load_pbc",
    "make_aft",
    "make_competing_risks",
    "make_dependent_censoring",
    "make_heteroscedastic",
    "make_sine",
    "make_treatment",
]
