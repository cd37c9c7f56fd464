"""What the applications share: number formats, curves, the training table, page assets.

``numbers.py`` rounds and formats numbers, ``curves.py`` has the quantile levels that pages show and
the curves they draw, ``training_table.py`` checks whether a table is the training table, and
``pages.py`` reads the style sheet and the chart script in ``assets/``. ``report`` and ``serve``
import from here and not from each other.
"""
