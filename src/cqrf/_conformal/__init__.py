"""Parts of :mod:`cqrf.conformal`: the scores of the calibration rows, and the model file."""
