"""Which forests have standard errors."""

from __future__ import annotations

from cqrf._model.fitted import Model

FEWEST_UNITS = 20  # rows or groups; half-samples of fewer say little about the variance


def check_errors(model: Model) -> None:
    """Raise a ValueError with the reason if this forest has no standard errors."""
    sampling = model.sampling
    if model.lower is not None:
        raise ValueError("standard errors are not available for a forest of intervals.")
    if sampling.bag_size == 1:
        raise ValueError(
            "standard errors need trees in bags: fit with bag_size=2 or more (and some hundred "
            "bags, n_estimators / bag_size)."
        )
    if not sampling.honest:
        raise ValueError("standard errors need honest trees: fit with honest=True.")
    if sampling.bootstrap:  # with repeated rows they come out a third too large
        raise ValueError("standard errors need each row drawn once: fit with bootstrap=False.")
    if len(model.forest.roots) < 2 * sampling.bag_size:
        raise ValueError(
            "standard errors need at least two bags: fit with "
            f"n_estimators={2 * sampling.bag_size} or more (and some hundred bags)."
        )
    if sampling.n_units < FEWEST_UNITS:
        raise ValueError(
            f"standard errors need at least {FEWEST_UNITS} rows or groups; found "
            f"{sampling.n_units}."
        )
    if model.rows.first_at_risk is not None:
        raise ValueError(
            "standard errors are not available for rows that enter late. The manual, under "
            "'Confidence intervals', shows how forests of random halves of the rows give them."
        )
