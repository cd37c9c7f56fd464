"""Speed and memory of our forests and of other packages, with equal work, in one run.

Equal work: every forest has the same number of trees, tries all features at each split, runs on
two threads and is fitted to the same table (``cqrf.datasets.make_aft``). Each package is compared
with the one of our forests that has the same settings:

- *Variance.* Subsamples of 0.632 n, leaves of at least 20 rows. Our forest and ranger draw without
  replacement. scikit-learn, quantile-forest and scikit-survival draw a bootstrap sample of n rows,
  of which 0.632 n are distinct, and grow trees of the same size. ranger 0.14 has no minimum leaf
  size, only a minimum node size to split: 40 rows, as for the others.
- *Log-rank.* The same subsamples and leaves; compared with scikit-survival and comprisk. comprisk
  tries all thresholds, as the others do, and keeps its coarse time grid.
- *Honest quantile.* Our forest has grf's settings: subsamples of n/2, honest halves, nodes of more
  than 20 rows are split, a child holds at least 5 % of its parent, split quantiles .1, .5 and .9.
  grf draws the number of candidate features from a Poisson distribution; its mean is set so high
  that all features are tried.

LightGBM (``boosting_type="rf"``) is a reference point: it grows trees leaf-wise. Prediction means
1000 rows at three levels. LightGBM and scikit-learn predict a mean, so their prediction is not
timed.

Measurement: each forest of each size runs in its own process, warmed up on 200 rows. The first fit
also gives the memory: peak resident size minus the resident size before the fit, with the data
loaded. Further rounds alternate between the processes; only one of them works at a time. A slow
fit is not repeated. Each round makes five predictions after one warm-up. Reported are the median,
the smallest and the largest time. Ratios of fit times use medians over the rounds that both
forests took part in.

Modules: ``libraries`` (the packages), ``forests`` and ``worker`` (the Python worker process;
``worker.R`` and ``grf_driver.cpp`` are the others), ``process`` (starts a worker and sends
commands), ``measure`` (sizes and rounds), ``goals``, ``table``, ``picture``.

Run: python -m benchmarks.peers [--quick] [--only n,p,trees,goals] [--peers ranger,grf]
"""
