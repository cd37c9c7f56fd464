"""The report: a fitted forest and a table as one page that any browser opens.

``subject.py`` settles what is judged, ``data.py``, ``quality.py``, ``features.py`` and ``rows.py``
each turn it into the plain numbers and sentences of a section, ``facts.py`` joins them, and
``page.py`` puts them into ``page.html``. The page loads nothing: its scripts draw from the facts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cqrf.estimator import CensoredQuantileForest

__all__ = ["write_report"]


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
    """Write the report of a forest on a table: one HTML file, whole or not at all.

    The file holds times, predictions and ids of the rows it shows: keep it as you keep these.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A fitted forest.
    X, y : as for ``fit``
        The training table, whose rows are then judged out of bag, or another one.
    path : path-like
        Where to write the page.
    title : str
        Its heading.
    ids : sequence, optional
        A label for each row. Default: row numbers, from 1.
    source : str, optional
        Where the table came from, such as the name of its file.
    max_rows : int, default=500
        Most rows in the list of rows; evenly spaced if there are more.

    Returns
    -------
    Path
        Where it was written.

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
    from cqrf.report.facts import gather_facts
    from cqrf.report.page import fill_page

    facts = gather_facts(forest, X, y, title=title, ids=ids, source=source, max_rows=max_rows)
    page = fill_page(facts)
    with replacing(path) as file:
        file.write(page)
    return Path(path)
