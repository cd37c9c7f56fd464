"""The study: every experiment of the paper, run with this library, and what lies beyond it.

``cqrf reproduce`` is its door. An experiment is a list of units, each run once and kept in a
CSV file, then drawn, then held against the claims made of it.
"""
