"""The report: a fitted forest and a table as one HTML page.

``predictions.py`` reads the table and predicts for its rows, out of bag if it is the training
table. ``data.py``, ``evaluation.py``, ``calibration.py``, ``features.py`` and ``rows.py`` each
turn that into the numbers and sentences of a section, ``content.py`` joins them, and ``page.py``
puts them into ``assets/report.html``. The page loads nothing; its scripts draw from the content.
The report on a treatment forest has its content in ``effects.py`` and ``effect_averages.py``, and
its page in ``assets/effects.html``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cqrf.effects import CensoredTreatmentForest
    from cqrf.estimator import CensoredQuantileForest

__all__ = ["report_effects", "write_report"]


def write_report(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "Quantiles of censored times",
    ids: Sequence[Any] | None = None,
    source: str | None = None,
    max_rows: int = 500,
) -> Path:
    """Write the report of a forest on a table as one HTML file.

    The file holds times, predictions and ids of rows: it is as confidential as the table. If
    writing fails, a file that was there before is left as it was.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X, y : as for ``fit``
        The training table, whose rows are then scored out of bag, or another table.
    path : path-like
        File to write.
    title : str
        Heading of the page.
    ids : sequence, optional
        A label for each row. Default: row numbers, from 1.
    source : str, optional
        Origin of the table, such as a file name.
    max_rows : int, default=500
        Most rows whose survival curves are in the file; evenly spaced if the table has more. The
        quantiles of up to 20 000 rows are.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.report import write_report
    >>> X, y, _, _ = make_aft(100, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(forest, X, y, f"{folder}/report.html").name
    'report.html'
    """
    from cqrf._runtime.files import replacing
    from cqrf.report.content import build_content
    from cqrf.report.page import render_page

    content = build_content(forest, X, y, title=title, ids=ids, source=source, max_rows=max_rows)
    page = render_page(content)
    with replacing(path) as file:
        file.write(page)
    return Path(path)


def report_effects(
    forest: CensoredTreatmentForest,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    title: str = "Effects of a treatment",
    source: str | None = None,
) -> Path:
    """Write the report of a treatment forest as one HTML file.

    It has the arms and their overlap, average effects with intervals, average curves of both arms,
    subgroups, whether effects differ between rows, and what is assumed. If writing fails, a file
    that was there before is left as it was.

    Parameters
    ----------
    forest : CensoredTreatmentForest
        A fitted treatment forest.
    path : path-like
        File to write.
    X : as for ``fit``, optional
        Rows whose effects are shown. Default: the training rows, out of bag.
    title : str
        Heading of the page.
    source : str, optional
        Origin of the table, such as a file name.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from cqrf.datasets import make_treatment
    >>> from cqrf.effects import CensoredTreatmentForest
    >>> from cqrf.report import report_effects
    >>> data = make_treatment("null", n=200, random_state=0)
    >>> forest = CensoredTreatmentForest(n_estimators=40, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment, propensity=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_effects(forest, f"{folder}/effects.html").name
    'effects.html'
    """
    from cqrf._runtime.files import replacing
    from cqrf.report.effects import build_effects_content
    from cqrf.report.page import EFFECTS, render_page

    page = render_page(build_effects_content(forest, X, title=title, source=source), EFFECTS)
    with replacing(path) as file:
        file.write(page)
    return Path(path)
