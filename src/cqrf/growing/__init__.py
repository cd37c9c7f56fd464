"""One tree: its rows, its labels, its splits."""
