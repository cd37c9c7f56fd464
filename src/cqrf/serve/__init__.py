"""The server: one forest as a page for what-if questions and as a JSON API.

``values.py`` turns what a page or a program sends into numbers and back, ``columns.py`` says what
each column holds, ``served.py`` joins the forest with the rows of a table, ``answers.py`` asks it,
``schema.py`` is the JSON in words, ``guard.py`` stands before every request, and ``app.py`` has
the routes. ``page/`` is what a browser loads.
"""
