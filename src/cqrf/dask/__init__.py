"""Dask: fit and predict on tables that are larger than the memory of one machine.

``fit`` takes Dask DataFrames or Arrays. ``predict`` and the other prediction methods are lazy.
``to_local`` returns the plain forest. A tree needs only the rows of its subsample, so these rows
are collected in one task and the tree is grown there. The forest is bit for bit the one that the
same rows would give in one process.

==================  =================================================================
``partitions.py``   X, y, weights and groups, aligned partition by partition
``reading.py``      worker side: read, check, sample and bin one partition
``working.py``      worker side: fit the working model, residuals of some rows
``growing.py``      worker side: select the subsamples of some trees, grow the trees
``tasks.py``        submit named tasks to the cluster, release them on failure
``preparing.py``    client side: all stages of a fit before the first tree
``fitting.py``      client side: grow the trees, assemble the model
``predicting.py``   predict partition by partition
``estimator.py``    ``DaskCensoredQuantileForest``
==================  =================================================================
"""

try:
    from dask import array, dataframe  # noqa: F401
    from distributed import Client  # noqa: F401
except ImportError as error:
    raise ImportError("cqrf.dask needs Dask: pip install 'cqrf[dask]'.") from error

from cqrf.dask.estimator import DaskCensoredQuantileForest

__all__ = ["DaskCensoredQuantileForest"]
