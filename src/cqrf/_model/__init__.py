"""A fitted forest: its settings, its state, how it is fitted, read, saved and loaded."""
