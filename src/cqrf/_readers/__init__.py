"""Readers of forest weights: quantiles, curves, means and their errors, all in one pass."""
