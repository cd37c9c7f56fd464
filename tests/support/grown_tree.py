"""One tree from the grower, read with plain loops."""

import numpy as np

from cqrf._forest import layout
from cqrf._forest.grower import BEGIN, CODE, END, FEATURE, LEFT, MISSING_LEFT, Grown, grow_trees
from cqrf._forest.spec import LEAF, MISSING, Growing, Limits, Subsamples
from cqrf._forest.workspace import make_workspace
from cqrf._runtime.compiling import kernel
from oracles.criteria import LEVELS
from oracles.splitting import make_table
from support.labelling import make_criterion, make_rows

NO_LIMIT = np.iinfo(np.int32).max


@kernel
def sort_into_leaves(codes, categorical, ranks, nodes, subsets, buffer):
    layout.sort_into_leaves(codes, categorical, ranks, nodes, subsets, buffer)


@kernel
def list_by_level(nodes, listed):
    return layout.list_by_level(nodes, listed)


class Tree:
    """A tree of some ranks of a table, with every limit and seed open."""

    def __init__(
        self, rows, criterion="censored_quantile", ranks=None, levels=LEVELS, seed=0, **limits
    ):
        self.rows, self.codes = rows, rows.codes
        n = self.codes.shape[1]
        ranks = np.arange(n, dtype=np.uint32) if ranks is None else ranks
        growing = Growing(make_criterion(criterion, levels), make_limits(len(self.codes), **limits))
        # Work arrays for more rows than there are, as for a larger tree of the same forest.
        work = make_workspace(1, len(ranks) + 3, rows, growing.criterion.n_labels, growing.limits)
        work.subsets[:] = 2**64 - 1
        work.nodes[:] = 77
        grown = Grown(*np.full((2, 2), 77), np.zeros((1, len(self.codes))))
        starts = np.array([0, len(ranks), len(ranks)])
        samples = Subsamples(ranks, starts, np.array([seed], np.uint64))
        grow_trees(rows, samples, growing, work, grown)
        assert (grown.first_node[0], grown.first_subset[0]) == (0, 0)
        assert not work.split.seen.any()
        assert not work.split.sums.any()
        assert work.split.counts is None or not work.split.counts.any()
        assert work.split.strata is None or not work.split.strata.counts.any()
        self.importance = grown.gains[0]
        self.nodes = work.nodes[: grown.first_node[1]]
        self.subsets = work.subsets[: grown.first_subset[1]]
        self.node_of_row = self.find_nodes(self.codes, ranks)

    @property
    def feature(self):
        return self.nodes[:, FEATURE]

    @property
    def code(self):
        return self.nodes[:, CODE]

    @property
    def missing_left(self):
        return self.nodes[:, MISSING_LEFT]

    @property
    def left(self):
        return self.nodes[:, LEFT]

    @property
    def n_nodes(self):
        return len(self.nodes)

    def is_category(self, feature):
        """Whether a feature is a category."""
        return self.rows.categorical is not None and bool(self.rows.categorical[feature])

    def goes_left(self, node, codes_of_row):
        """Whether a row with these codes goes to the left child of a node."""
        code = int(codes_of_row[self.feature[node]])
        if code == MISSING:
            return bool(self.missing_left[node])
        if self.is_category(self.feature[node]):
            bits = "".join(f"{int(word):064b}"[::-1] for word in self.subsets[self.code[node]])
            return bits[code] == "1"
        return code <= self.code[node]

    def path(self, codes_of_row):
        """Nodes from the root to the leaf of a row with these codes."""
        node, visited = 0, [0]
        while self.feature[node] != LEAF:
            node = self.left[node] + (not self.goes_left(node, codes_of_row))
            visited.append(int(node))
        return visited

    def rows_of_nodes(self, codes=None):
        """Rows that pass through each node, by plain traversal."""
        codes = self.codes if codes is None else codes
        rows = [[] for _ in range(self.n_nodes)]
        for row in range(codes.shape[1]):
            for node in self.path(codes[:, row]):
                rows[node].append(row)
        return [np.array(r, np.uint32) for r in rows]

    def depths(self):
        """Depth of each node."""
        depth = np.zeros(self.n_nodes, int)
        for node in range(self.n_nodes):
            if self.feature[node] != LEAF:
                depth[self.left[node]] = depth[self.left[node] + 1] = depth[node] + 1
        return depth

    def find_nodes(self, codes, ranks):
        """Leaf of each of some rows, by their position when they are sorted into leaves."""
        places = self.sort_into_leaves(codes, ranks)
        found = {}
        for node, its_rows in enumerate(places):
            if self.feature[node] == LEAF:
                found |= dict.fromkeys(its_rows.tolist(), node)
        return np.array([found[row] for row in ranks.tolist()], np.int32)

    def sort_into_leaves(self, codes, ranks):
        """Rows of each node, in the order in which they are sorted into the leaves."""
        moved, buffer = ranks.copy(), np.empty_like(ranks)
        self.nodes[:, BEGIN : END + 1] = -1
        sort_into_leaves(codes, self.rows.categorical, moved, self.nodes, self.subsets, buffer)
        return [moved[first:last] for first, last in self.nodes[:, BEGIN : END + 1]]

    def list_by_level(self, codes):
        """Nodes in level order once the rows with these codes fill the leaves."""
        self.sort_into_leaves(codes, np.arange(codes.shape[1], dtype=np.uint32))
        listed = np.full(self.n_nodes, 7, np.int32)
        n_listed = list_by_level(self.nodes, listed)
        return listed[:n_listed].tolist()

    def arrays(self):
        """All that a tree is; a leaf has no child."""
        nodes = self.nodes[:, : LEFT + 1]
        nodes = np.where((self.feature == LEAF)[:, None], [1, 1, 1, 0] * nodes, nodes)
        return nodes, self.subsets, self.node_of_row, self.importance


def make_limits(
    n_features,
    n_candidates=None,
    max_depth=NO_LIMIT,
    min_samples_split=2,
    min_samples_leaf=1,
    min_child_fraction=0.0,
    min_samples_stratum=0,
):
    """Limits of a tree that, by default, tries every feature and grows until it is pure."""
    n_candidates = n_features if n_candidates is None else n_candidates
    return Limits(
        n_candidates,
        max_depth,
        min_samples_split,
        min_samples_leaf,
        min_child_fraction,
        min_samples_stratum,
    )


def make_tree_rows(rng, n=80, weighted=False, late=False, categorical=(0, 1, 0, 0), **table):
    """A table with a category and missing values; and the entries of its rows, or None."""
    table = {"missing": 0.1, "n_codes": 6} | table
    codes, time, event, weight = make_table(rng, n=n, n_features=len(categorical), **table)
    entry = None
    if late:
        # Half of the rows enter late, before their own time.
        enters_late = rng.random(n) < 0.5
        entry = np.where(enters_late, np.floor(rng.random(n) * time) - 1, -np.inf)
    weight = weight if weighted else None
    return make_rows(time, event, weight, entry, codes, np.array(categorical, bool)), entry
