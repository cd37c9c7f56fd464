"""Our forests beside their peers: the same work for all, in one run.

Equal work. Every forest has the same number of trees, tries all features at each split, runs on
two threads and learns from the same table (``cqrf.datasets.make_aft``). What the peers differ in
decides which of our forests stands beside them:

- *Variance.* Rows in 1000 a tree: 632, leaves of at least 20. Ours and ranger draw 632 without
  replacement. A bootstrap of scikit-learn's kind (scikit-learn, quantile-forest, scikit-survival)
  draws 1000 with replacement, of which 632 are distinct: the tree weighs these, and grows as large.
  ranger 0.14 knows no smallest leaf, only a smallest node to split: 40 rows, as for the others.
- *Log-rank.* The same rows and leaves, beside scikit-survival and comprisk. comprisk looks at all
  thresholds, as the others do, and keeps its coarse grid of times.
- *Honest quantile.* grf's rule for ours too: half of the rows, of which half choose the splits;
  nodes of more than 20 rows are split, children hold a twentieth of their parent, and the levels
  are .1, .5 and .9. grf draws how many features it tries from a Poisson law: its mean is set so
  high that all are tried.

LightGBM (``boosting_type="rf"``) is a yardstick: it grows leaf by leaf. Predicting is 1000 rows at
three levels; LightGBM and scikit-learn, which predict a mean, have no time for it.

How it is measured. Each forest of each size has a process of its own, warmed up on 200 rows. Its
first fit also gives the memory: the highest resident size less that before the fit, when the
data were loaded. The processes stay, and further rounds alternate between them, one working at a
time. A fit that takes long is not repeated. In each round there are five predictions and one before
them to warm up. Figures are medians, with the smallest and the largest; ratios of fits are those
of medians over the rounds that both took part in.

To read on: ``libraries`` (who takes part), ``forests`` and ``worker`` (the Python end of the
pipe; ``worker.R`` and ``grf_driver.cpp`` are the others), ``process`` (our end), ``measure``
(sizes and rounds), ``goals``, ``table``, ``picture``.

Run: python -m benchmarks.peers [--quick] [--only n,p,trees,goals] [--peers ranger,grf]
"""
