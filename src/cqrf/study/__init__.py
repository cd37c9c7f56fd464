"""Study: all experiments of the paper with this library, and some more.

``cqrf reproduce`` runs it. An experiment is a list of cases. Each case is run once and its results
are stored in a CSV file; from this file the figure is drawn and the claims are checked.
"""
