"""From arrays to weights: binning, subsampling, splitting criteria, trees, leaf lookup."""
