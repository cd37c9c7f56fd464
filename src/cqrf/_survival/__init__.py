"""From weights to estimates: product-limit curves, quantiles and their standard errors."""
