"""From weights to answers: product-limit curves, the estimating equation, quantiles, standard errors."""
