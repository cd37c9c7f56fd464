"""Real tables that come with the package, read without pandas.

A file holds the covariates and the response in columns; ``NA`` is a missing value. The README
beside the files gives the sources and the meaning of the columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import censored as pair_target
from cqrf.datasets.randomness import Randomness, draw_exponential, open_randomness

MISSING = "NA"
DEATH = 2  # in PBC, status 0 is censored and 1 a transplant
# Codes of the columns that are not numeric.
TEXT_CODES = {"sex": {"f": 0.0, "F": 0.0, "m": 1.0, "M": 1.0}}
PBC_CAUSES = np.array(["", "transplant", "death"])
PBC_NOT_COVARIATES = ("id", "time", "status")
MGUS2_CAUSES = np.array(["", "malignancy", "death"])
MGUS2_NOT_COVARIATES = ("time", "cause")
BOSTON_RESPONSE = "medv"

PBC_DESCRIPTION = (
    "Primary biliary cirrhosis, Mayo Clinic, 1974 to 1984: 418 patients, 17 covariates. "
    "Time in days to death; transplanted patients count as censored."
)
MGUS2_DESCRIPTION = (
    "Monoclonal gammopathy of undetermined significance, Mayo Clinic: 1384 patients, 5 covariates. "
    "Time in months to a plasma cell malignancy or to death without one, whichever came first."
)
BOSTON_DESCRIPTION = (
    "Housing values in 506 Boston census tracts, 1970: 13 covariates, median value in 1000 "
    "dollars. The covariate b is made from the share of Black residents; use the table only "
    "to reproduce published results."
)

Columns: TypeAlias = dict[str, tuple[str, ...]]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """A real table, ready for ``fit``.

    Attributes
    ----------
    X : ndarray or pandas.DataFrame of shape (n, p)
        Covariates.
    y : structured ndarray of shape (n,)
        The fields ``event`` and ``time``, and ``cause`` where causes are told apart.
    feature_names : tuple of str
        Names of the columns of ``X``, in order.
    description : str
        One paragraph about the table.
    latent : ndarray of shape (n,) or None
        The event time of every row, if it is known.
    """

    X: Any
    y: NDArray[np.void]
    feature_names: tuple[str, ...]
    description: str
    latent: Floats | None = None


def load_pbc(
    *, complete_cases: bool = False, as_frame: bool = False, causes: bool = False
) -> Table:
    """Load the primary biliary cirrhosis data: survival of 418 patients.

    The event is death; 61.5 % of the times are censored, the 25 transplants among them.
    142 rows have a missing value.

    Parameters
    ----------
    complete_cases : bool, default=False
        Whether to drop every row with a missing value. 276 rows stay, 59.8 % of them
        censored.
    as_frame : bool, default=False
        Whether ``X`` is a pandas DataFrame, with ``sex`` as the strings 'f' and 'm'.
        Otherwise it is a float matrix, with ``sex`` as f = 0 and m = 1. Missing values are
        NaN in both.
    causes : bool, default=False
        Whether a transplant is an event of its own: ``y`` then has the causes "death" and
        "transplant", and 55.5 % of the times are censored.

    Returns
    -------
    Table
        ``X`` with 17 columns, ``y`` with times in days, ``feature_names`` and
        ``description``.

    Examples
    --------
    >>> from cqrf.datasets import load_pbc
    >>> pbc = load_pbc(complete_cases=True)
    >>> pbc.X.shape
    (276, 17)
    >>> round(1 - float(pbc.y["event"].mean()), 3)
    0.598
    """
    columns = _read_columns("pbc.csv")
    if complete_cases:
        columns = _drop_incomplete_rows(columns)
    time, status = _to_numbers(columns["time"]), _to_numbers(columns["status"]).astype(np.intp)
    covariates = {name: c for name, c in columns.items() if name not in PBC_NOT_COVARIATES}
    if causes:
        y = pair_target(time, PBC_CAUSES[status], censored="")
    else:
        y = pair_target(time, status == DEATH)
    return Table(
        X=_to_frame(covariates) if as_frame else _to_matrix(covariates),
        y=y,
        feature_names=tuple(covariates),
        description=PBC_DESCRIPTION,
    )


def load_mgus2(*, as_frame: bool = False) -> Table:
    """Load the MGUS data: two competing risks of 1384 patients.

    MGUS is a monoclonal gammopathy of undetermined significance, an abnormal protein in the blood.
    The causes are "malignancy", a plasma cell malignancy (115 patients), and "death" without one
    (860); 29.6 % of the times are censored. 46 rows have a missing value.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether ``X`` is a pandas DataFrame, with ``sex`` as the strings 'F' and 'M'.
        Otherwise it is a float matrix, with ``sex`` as F = 0 and M = 1. Missing values are
        NaN in both.

    Returns
    -------
    Table
        ``X`` with 5 columns, ``y`` with causes and with times in months, ``feature_names`` and
        ``description``.

    Examples
    --------
    >>> from cqrf.datasets import load_mgus2
    >>> mgus2 = load_mgus2()
    >>> mgus2.feature_names
    ('age', 'sex', 'hgb', 'creat', 'mspike')
    >>> int((mgus2.y["cause"] == "malignancy").sum())
    115
    """
    columns = _read_columns("mgus2.csv")
    cause = MGUS2_CAUSES[_to_numbers(columns["cause"]).astype(np.intp)]
    covariates = {name: c for name, c in columns.items() if name not in MGUS2_NOT_COVARIATES}
    return Table(
        X=_to_frame(covariates) if as_frame else _to_matrix(covariates),
        y=pair_target(_to_numbers(columns["time"]), cause, censored=""),
        feature_names=tuple(covariates),
        description=MGUS2_DESCRIPTION,
    )


def load_boston_housing(
    *, censored: bool = False, random_state: Randomness = None, as_frame: bool = False
) -> Table:
    """Load the Boston housing data, optionally with artificial censoring.

    One covariate, ``b``, turns the share of Black residents in a tract into a predictor of
    house values. Use the table only to reproduce published results.

    Parameters
    ----------
    censored : bool, default=False
        Whether to censor the response by C, exponential with twice the mean response as
        its mean. About 38 % of the rows are then censored.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random number generator of C.
    as_frame : bool, default=False
        Whether ``X`` is a pandas DataFrame rather than a float matrix.

    Returns
    -------
    Table
        ``X`` with 13 columns; ``y``, all events unless ``censored``; ``latent``, the
        response before censoring; ``feature_names`` and ``description``.

    Examples
    --------
    >>> from cqrf.datasets import load_boston_housing
    >>> boston = load_boston_housing(censored=True, random_state=0)
    >>> boston.X.shape
    (506, 13)
    >>> bool((boston.y["time"] <= boston.latent).all())
    True
    """
    columns = _read_columns("boston_housing.csv")
    latent = _to_numbers(columns.pop(BOSTON_RESPONSE))
    rate = 1 / (2 * float(latent.mean())) if censored else 0.0
    censoring = draw_exponential(open_randomness(random_state), rate, len(latent))
    return Table(
        X=_to_frame(columns) if as_frame else _to_matrix(columns),
        y=pair_target(np.minimum(latent, censoring), latent <= censoring),
        feature_names=tuple(columns),
        description=BOSTON_DESCRIPTION,
        latent=latent,
    )


def _read_columns(name: str) -> Columns:
    lines = files("cqrf.datasets").joinpath(name).read_text(encoding="utf-8").splitlines()
    header, *rows = csv.reader(lines)
    return _by_column(header, rows)


def _drop_incomplete_rows(columns: Columns) -> Columns:
    rows = zip(*columns.values(), strict=True)
    return _by_column(columns, [row for row in rows if MISSING not in row])


def _by_column(names: Iterable[str], rows: Iterable[Sequence[str]]) -> Columns:
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _to_numbers(values: Iterable[str], codes: Mapping[str, float] | None = None) -> Floats:
    read = float if codes is None else codes.__getitem__
    return np.array([np.nan if value == MISSING else read(value) for value in values])


def _to_matrix(columns: Columns) -> Floats:
    numbers = [_to_numbers(values, TEXT_CODES.get(name)) for name, values in columns.items()]
    return np.column_stack(numbers)


def _to_frame(columns: Columns) -> Any:
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas: install it, or leave as_frame=False for a NumPy matrix."
        ) from error
    readable = {
        name: _to_texts(values) if name in TEXT_CODES else _to_numbers(values)
        for name, values in columns.items()
    }
    return pandas.DataFrame(readable)


def _to_texts(values: Iterable[str]) -> list[str | None]:
    return [None if value == MISSING else value for value in values]
