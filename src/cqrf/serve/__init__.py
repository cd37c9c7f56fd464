"""The server: one forest as a page for what-if questions and as a JSON API.

``values.py`` turns what a page or a program sends into numbers and back, ``columns.py`` says what
each column holds, ``served.py`` joins the forest with the rows of a table, ``answers.py`` asks it,
and ``facts.py`` tells what it is. ``schema.py`` is the JSON in words and ``openapi.py`` the
document of it; ``guard.py`` stands before every request, and ``app.py`` has the routes. ``page/``
is what a browser loads, beside the charts and the look of the report.
"""
