"""The tree: nodes are split until they are small.

While it grows, a tree is ranges of one array of its rows, in time order, which every split
partitions stably: each node and each leaf is in time order for nothing. It is a table of
integers with one row per node:

FEATURE
    the feature a node splits on, -1 for a leaf
CODE
    numeric features: codes up to this one go left; categories: the row of ``subsets``,
    a table of 256 bits each, whose set bits go left
MISSING_LEFT
    whether missing values go left. If the node saw none, they follow its larger child, as do
    levels of a category that it did not see
LEFT
    the left child, the right one stands behind it
BEGIN, END
    where its rows are
DEPTH, NEXT
    how deep it is, and which node waits to be split behind it; while the tree grows
"""

from __future__ import annotations

import numpy as np

from cqrf._forest.histograms import MISSING
from cqrf._forest.labels import label_node
from cqrf._forest.splitting import find_split
from cqrf._input.risk_sets import first_position
from cqrf._runtime.compiling import called, inlined, kernel

FEATURE, CODE, MISSING_LEFT, LEFT, BEGIN, END, DEPTH, NEXT = range(8)
LEAF = -1


@inlined
def goes_left(row_code, feature, code, missing_left, categorical, subsets):
    """Whether a row with this code of the node's feature goes to the left child.

    ``categorical`` is None if no feature is.
    """
    if row_code == MISSING:
        return missing_left
    if categorical is not None and categorical[feature]:
        word = subsets[code, row_code >> 6]
        return (word >> np.uint64(row_code & 63)) & np.uint64(1) == np.uint64(1)
    return row_code <= code


@inlined
def partition(column, rows, feature, code, missing_left, categorical, subsets, buffer):
    """Move the rows that go left to the front, both sides in their old order; count them."""
    n_left, n_right = 0, 0
    for i in range(rows.shape[0]):
        row = rows[i]
        # Written to both, kept in one: a processor cannot guess where a row goes.
        rows[n_left] = row
        buffer[n_right] = row
        left = goes_left(column[row], feature, code, missing_left, categorical, subsets)
        n_left += left
        n_right += not left
    for i in range(n_right):
        rows[n_left + i] = buffer[i]
    return n_left


@kernel
def grow_nodes(
    ranks,
    starts,
    codes,
    categorical,
    time,
    event,
    weight,
    first_at_risk,
    by_mean,
    by_hazard,
    by_curve,
    levels,
    of_class,
    class_direction,
    pairs,
    n_candidates,
    max_depth,
    min_samples_split,
    min_samples_leaf,
    min_child_fraction,
    seeds,
    counts,
    scratch,
    first_node,
    first_subset,
    importance,
):
    """Grow a tree for each seed: split its rows until no node should or can be split.

    The rows of tree k are the ranks from ``starts[2 * k]`` to ``starts[2 * k + 1]``, in time
    order. Writes the table of the module's docstring and the subsets into ``scratch``, the fields
    of :class:`~cqrf._forest.workspace.Scratch`, one tree behind the other. Those of tree k begin at
    ``first_node[k]`` and ``first_subset[k]``, from where it counts its own; one entry more says
    where the last tree ends. Adds the gain of each feature over the splits of a tree, per row of
    the tree. What is not needed is None and not compiled: ``categorical`` if no feature is;
    ``weight`` and ``counts``, see :func:`find_split`, if all rows weigh the same; ``first_at_risk``
    if none entered late; parts of the labelling.
    """
    (
        all_nodes,
        all_subsets,
        rows,
        buffer,
        features,
        tree_codes,
        tree_time,
        tree_event,
        tree_weight,
        own_rows,
        own_codes,
        own_time,
        own_event,
        own_weight,
        labels,
        at_risk,
        value,
        ends,
        cuts,
        direction,
        seen,
        sums,
        bins,
        running,
        start,
    ) = scratch
    n_copied = own_rows.shape[0]
    first_node[0], first_subset[0] = 0, 0
    for tree in range(seeds.shape[0]):
        its_ranks = ranks[starts[2 * tree] : starts[2 * tree + 1]]
        nodes, subsets = all_nodes[first_node[tree] :], all_subsets[first_subset[tree] :]
        n_rows = its_ranks.shape[0]
        for j in range(features.shape[0]):
            features[j] = j
        for i in range(n_rows):
            rows[i] = i
        take_rows(
            codes, time, event, weight, its_ranks, tree_codes, tree_time, tree_event, tree_weight
        )
        tree_first = take_first_at_risk(first_at_risk, its_ranks)
        block_codes, block_time, block_event, block_weight = (
            tree_codes,
            tree_time,
            tree_event,
            tree_weight,
        )
        block_first = tree_first
        block_begin, block_end = 0, n_rows

        random_word = seeds[tree]
        add_node(nodes, 0, 0, n_rows, 0, -1)
        next_node, next_subset, waiting = 1, 0, 0
        while waiting >= 0:
            node = waiting
            begin, end, depth = nodes[node, BEGIN], nodes[node, END], nodes[node, DEPTH]
            waiting = nodes[node, NEXT]
            if begin < block_begin or end > block_end:
                block_codes, block_time = tree_codes, tree_time
                block_event, block_weight = tree_event, tree_weight
                block_first = tree_first
                block_begin, block_end = 0, n_rows
            here = rows[begin:end]
            n = here.shape[0]
            best_feature = -1
            if n >= min_samples_split and n >= 2 * min_samples_leaf and depth < max_depth:
                if n <= n_copied and block_end - block_begin > n_copied:
                    block_begin, block_end = begin, end
                    block_rows = own_rows[:n]
                    for i in range(n):
                        block_rows[i] = here[i]
                    take_rows(
                        tree_codes,
                        tree_time,
                        tree_event,
                        tree_weight,
                        block_rows,
                        own_codes,
                        own_time,
                        own_event,
                        own_weight,
                    )
                    block_codes, block_time = own_codes, own_time
                    block_event, block_weight = own_event, own_weight
                    block_first = take_first_at_risk(tree_first, block_rows)
                    for i in range(n):
                        here[i] = i
                mixed, mass = label_node(
                    block_time,
                    block_event,
                    block_weight,
                    block_first,
                    here,
                    by_mean,
                    by_hazard,
                    by_curve,
                    levels,
                    of_class,
                    class_direction,
                    at_risk,
                    value,
                    ends,
                    cuts,
                    labels,
                    direction,
                )
                if mixed:
                    min_child = max(np.float64(min_samples_leaf), np.ceil(min_child_fraction * n))
                    best_feature, best_code, best_missing_left, saw_missing, gain, random_word = (
                        find_split(
                            block_codes,
                            categorical,
                            here,
                            labels,
                            pairs,
                            direction,
                            mass,
                            min_child,
                            features,
                            n_candidates,
                            random_word,
                            counts,
                            subsets,
                            next_subset,
                            seen,
                            sums,
                            bins,
                            running,
                            start,
                        )
                    )
            if best_feature < 0:
                continue
            if categorical is not None and categorical[best_feature]:
                best_code = next_subset
                next_subset += 1
            n_left = partition(
                block_codes[best_feature],
                here,
                best_feature,
                best_code,
                best_missing_left,
                categorical,
                subsets,
                buffer,
            )
            if 2 * n_left > n:
                best_missing_left |= not saw_missing
                if categorical is not None and categorical[best_feature]:
                    send_unseen_left(block_codes[best_feature], here, subsets[best_code])
            nodes[node, FEATURE], nodes[node, CODE] = best_feature, best_code
            nodes[node, MISSING_LEFT], nodes[node, LEFT] = best_missing_left, next_node
            importance[tree, best_feature] += gain / n_rows
            middle = begin + n_left
            add_node(nodes, next_node, begin, middle, depth + 1, waiting)
            add_node(nodes, next_node + 1, middle, end, depth + 1, next_node)
            waiting = next_node + 1
            next_node += 2
        first_node[tree + 1] = first_node[tree] + next_node
        first_subset[tree + 1] = first_subset[tree] + next_subset


@inlined
def add_node(nodes, node, begin, end, depth, behind):
    """Write a leaf with these rows, to be split before the node ``behind``."""
    nodes[node, FEATURE], nodes[node, CODE], nodes[node, MISSING_LEFT] = LEAF, 0, 0
    nodes[node, BEGIN], nodes[node, END] = begin, end
    nodes[node, DEPTH], nodes[node, NEXT] = depth, behind


@called
def send_unseen_left(column, rows, subset):
    """Add the codes that none of the rows has to those that go left."""
    for word in range(4):
        present = np.uint64(0)
        for i in range(rows.shape[0]):
            code = np.uint64(column[rows[i]])
            if code >> np.uint64(6) == np.uint64(word):
                present |= np.uint64(1) << (code & np.uint64(63))
        subset[word] |= ~present


@called
def take_rows(codes, time, event, weight, rows, to_codes, to_time, to_event, to_weight):
    """Copy codes, contiguous per feature, and targets of some rows."""
    for f in range(codes.shape[0]):
        for i in range(rows.shape[0]):
            to_codes[f, i] = codes[f, rows[i]]
    for i in range(rows.shape[0]):
        to_time[i], to_event[i] = time[rows[i]], event[rows[i]]
    if weight is not None:
        for i in range(rows.shape[0]):
            to_weight[i] = weight[rows[i]]


@called
def take_first_at_risk(first_at_risk, rows):
    """First position among some ascending rows at which each of them is at risk, or None."""
    if first_at_risk is None:
        return None
    first = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        first[i] = first_position(rows, first_at_risk[rows[i]])
    return first
