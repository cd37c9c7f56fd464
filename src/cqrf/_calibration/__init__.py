"""Parts of :mod:`cqrf.calibration`: U = F(T|x) of each row, compared with the uniform law."""
