"""Calls of the search for a split, on work arrays full of NaN where they may be."""

import numpy as np

from cqrf._forest import splitting
from cqrf._forest.spec import Limits
from cqrf._forest.splitting import Node
from cqrf._forest.workspace import make_workspace
from cqrf._runtime.compiling import kernel
from oracles.splitting import left_rows
from support.labelling import write_labels

FULL = np.uint64(2**64 - 1)


@kernel
def find_split(codes, categorical, node, n_candidates, random_word, subset, work):
    return splitting.find_split(codes, categorical, node, n_candidates, random_word, subset, work)


class FoundSplit:
    """The best split of a node of some rows."""

    def __init__(
        self, criterion, rows, here=None, min_child=1, n_candidates=None, seed=0, min_stratum=0
    ):
        n_features = len(rows.codes)
        here = np.arange(len(rows.time), dtype=np.uint32) if here is None else here
        labelled = write_labels(criterion, rows, here)
        assert labelled.can_be_split
        n_candidates = n_features if n_candidates is None else n_candidates
        limits = Limits(n_candidates, 1, 2, 1, 0.0)
        n_labels = labelled.labels.shape[1] - 1
        self.work = make_workspace(1, len(here), rows, n_labels, limits).split
        self.work.features[:] = np.arange(n_features)
        self.work.bins[:] = 999
        self.work.running[:] = self.work.start[:] = np.nan
        subsets = np.full((2, 4), FULL)
        self.subset = subsets[1]
        node = Node(here, labelled.work, labelled.mass, float(min_child), rows.stratum, min_stratum)
        split, self.random_word = find_split(
            rows.codes,
            rows.categorical,
            node,
            n_candidates,
            np.uint64(seed),
            self.subset,
            self.work,
        )
        self.feature, self.code, self.gain = split.feature, split.code, split.gain
        self.missing_left, self.saw_missing = split.missing_left, split.saw_missing
        self.criterion, self.rows, self.here = criterion, rows, here
        assert (subsets[0] == FULL).all()
        self.assert_work_is_clean()

    def assert_work_is_clean(self):
        """What must be zero between uses is."""
        assert not self.work.seen.any()
        assert not self.work.sums.any()
        assert self.work.counts is None or not self.work.counts.any()
        assert self.work.strata is None or not self.work.strata.counts.any()

    def left_codes(self):
        """Codes that go left."""
        categorical = self.rows.categorical
        if categorical is not None and categorical[self.feature]:
            return [c for c in range(256) if (int(self.subset[c >> 6]) >> (c & 63)) & 1]
        return list(range(self.code + 1))

    def left(self):
        """Which rows of the node go left."""
        column = self.rows.codes[self.feature, self.here]
        return left_rows(column, self.left_codes(), self.missing_left)
