"""The methods of :class:`cqrf.CensoredQuantileForest` that predict, one file per subject."""
