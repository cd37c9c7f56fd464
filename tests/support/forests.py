"""Small forests grown from arrays, and their trees read with plain loops."""

import numpy as np

from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF, MISSING, Growing, Limits, Sampling
from cqrf._forest.training import grow_forest
from support.labelling import make_criterion

SEED = 12


def make_forest_rows(n=150, seed=0, weighted=False):
    """Rows by rank, with a category and missing values; and the shuffled numbers of the rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (4, n)).astype(np.uint8)
    time = rng.exponential(1 + 0.2 * codes[0] + 0.5 * (codes[1] % 3)).round(1)
    event = rng.random(n) < 0.7
    codes[rng.random((4, n)) < 0.08] = MISSING
    order = np.lexsort((~event, time))
    return Rows(
        codes=np.ascontiguousarray(codes[:, order]),
        categorical=np.array([False, True, False, False]),
        time=time[order],
        event=event[order],
        weight=(rng.integers(1, 9, n) / 4).astype(np.float32) if weighted else None,
    ), order.astype(np.int32)


def make_sampling(order, size=None, bootstrap=False, honest=True):
    """Trees draw rows, by default half of them."""
    return Sampling(order, len(order), size or len(order) // 2, bootstrap, honest)


def make_growing(criterion="censored_quantile"):
    """Two candidates at each node, which keeps at least two rows."""
    return Growing(make_criterion(criterion), Limits(2, 1000, 6, 2, 0.05))


def grow_small_forest(n_trees=20, *, n=150, n_jobs=1, weighted=False, seed=SEED, **sampling):
    """A forest of the rows of :func:`make_forest_rows`."""
    rows, order = make_forest_rows(n, weighted=weighted)
    sampling = make_sampling(order, **sampling)
    return grow_forest(rows, sampling, make_growing(), n_trees, seed, n_jobs)


def find_node(forest, root, codes):
    """Leaf node that a row with these codes reaches."""
    node = int(root)
    while forest.feature[node] != LEAF:
        split = forest.feature[node]
        code, at = int(codes[split]), int(forest.code[node])
        if code == MISSING:
            left = bool(forest.missing_left[node])
        elif forest.categorical[split]:
            left = bool((int(forest.subsets[at, code // 64]) >> (code % 64)) & 1)
        else:
            left = code <= at
        node = int(forest.left[node]) + (not left)
    return node


def rows_of_leaf(forest, node):
    """Ranks in the leaf at a node."""
    leaf = int(forest.left[node])
    return forest.leaf_rows[forest.leaf_offsets[leaf] : forest.leaf_offsets[leaf + 1]]


def list_nodes(forest, root):
    """Nodes of the tree with this root."""
    found, waiting = [], [int(root)]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if forest.feature[node] != LEAF:
            waiting += [int(forest.left[node]), int(forest.left[node]) + 1]
    return found
