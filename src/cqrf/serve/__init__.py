"""The server: one forest as a page for what-if questions and as a JSON API.

``app.py`` has the routes, ``middleware.py`` checks every request before them, ``computing.py`` runs
the routes that compute, in blocks of rows, ``responses.py`` writes JSON, and
``protocol.py`` limits connections. ``schema.py``
defines requests and responses, ``openapi.py`` writes the OpenAPI document. ``values.py`` converts
between JSON and the numbers the forest reads, ``columns.py`` describes the columns,
``data_rows.py`` holds the rows of a table, and ``model_view.py`` joins them with the forest.
``predictions.py`` predicts, ``description.py`` describes the model. ``effects.py``,
``effect_view.py``, ``effect_schema.py`` and ``effect_openapi.py`` are the same for a treatment
forest. ``assets/`` is what a browser loads, beside what it shares with
reports, which is in ``_views/assets``.
"""

from cqrf._runtime.extras import need

need("cqrf.serve", "serve", "fastapi", "uvicorn", "narwhals")
