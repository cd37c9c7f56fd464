"""Dask: the forest of a table that no single machine holds.

``fit`` takes Dask DataFrames or Arrays, ``predict`` and its siblings are lazy, and ``to_local``
gives the plain forest. A tree needs only the rows it draws, so it is grown from these alone,
wherever there is room: the forest is the one that the same rows in one process would give.

==================  =================================================================
``partitions.py``   X, y, weights and groups, partition by partition
``reading.py``      what a worker does with a partition: read it, sample it, bin it
``growing.py``      what a worker does for some trees: draw their rows, grow them
``errands.py``      tasks sent to the cluster, by name, and called off if need be
``preparing.py``    the stages of a fit before the first tree, from the client's side
``fitting.py``      the trees, and the model of them
``predicting.py``   a forest asked partition by partition
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
