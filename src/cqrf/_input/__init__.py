"""From what a user passes to arrays: target, features, sample weights, sampling units."""
