"""The tree: nodes are split until they are small, then the leaves receive their rows.

While it grows, a tree is ranges of one array of its rows, in time order, which every split
partitions stably: each node and each leaf is in time order for nothing. Afterwards it is
flat arrays with one entry per node:

feature
    the feature a node splits on, -1 for a leaf
code
    numeric features: codes up to this one go left; categories: the row of ``subsets``,
    a table of 256 bits each, whose set bits go left
missing_left
    where missing values go. If the node saw none, they follow its larger child, as do
    levels of a category that it did not see
left
    the left child, the right one stands behind it
"""

from __future__ import annotations

import numpy as np

from cqrf.growing.histograms import MISSING, N_BINS
from cqrf.growing.labels import label_node
from cqrf.growing.splitting import find_split
from cqrf.kernel import inlined, kernel

LEAF = -1
# A node of at most this many rows is copied together with its codes, so that it and all
# nodes below it read from the processor's cache; unless features are so many and so few of
# them tried at a node that copying them all costs more than it saves.
BLOCK_ROWS = 2048
COPIED_PER_CANDIDATE = 4


@inlined
def goes_left(row_code, feature, code, missing_left, categorical, subsets):
    """Whether a row with this code of the node's feature goes to the left child."""
    if row_code == MISSING:
        return missing_left
    if categorical[feature]:
        word = subsets[code, row_code >> 6]
        return (word >> np.uint64(row_code & 63)) & np.uint64(1) == np.uint64(1)
    return row_code <= code


@kernel
def partition(column, rows, feature, code, missing_left, categorical, subsets, buffer):
    """Move the rows that go left to the front, both sides in their old order; count them."""
    n_left, n_right = 0, 0
    for i in range(rows.shape[0]):
        row = rows[i]
        if goes_left(column[row], feature, code, missing_left, categorical, subsets):
            rows[n_left] = row
            n_left += 1
        else:
            buffer[n_right] = row
            n_right += 1
    for i in range(n_right):
        rows[n_left + i] = buffer[i]
    return n_left


@kernel
def grow_nodes(
    ranks,
    codes,
    categorical,
    time,
    event,
    weight,
    first_at_risk,
    criterion,
    base_levels,
    n_candidates,
    max_depth,
    min_samples_split,
    min_samples_leaf,
    min_child_fraction,
    seed,
):
    """Split some of the rows, in time order, until no node should or can be split.

    Returns the arrays of the module's docstring, the node that each row ended in, and the
    gain of each feature summed over its splits, per row of the tree.
    """
    codes = take_columns(codes, ranks)
    time, event, weight = take(time, ranks), take(event, ranks), take(weight, ranks)
    first_at_risk = take_first_at_risk(first_at_risk, ranks)
    n_features, n_rows = codes.shape
    capacity = max(1, 2 * (n_rows // max(1, min_samples_leaf)) + 1)
    feature = np.full(capacity, LEAF, np.int32)
    code = np.zeros(capacity, np.int32)
    missing_left = np.zeros(capacity, np.bool_)
    left = np.zeros(capacity, np.int32)
    start = np.zeros(capacity, np.int64)
    end = np.zeros(capacity, np.int64)
    depth = np.zeros(capacity, np.int32)
    subsets = np.empty((4, 4), np.uint64)
    n_subsets = 0
    node_of_row = np.zeros(n_rows, np.int32)
    importance = np.zeros(n_features)

    n_classes = len(base_levels) + 1
    levels, survival_at = np.empty(n_classes - 1), np.empty(n_classes)
    means, precision = np.empty(n_classes), np.empty(n_classes)
    labels, missing_label = np.empty(n_classes), np.zeros(n_classes)
    ends = np.empty(n_classes, np.int64)
    value, at_risk = np.empty(n_rows), np.empty(n_rows)
    vectors = np.empty((0 if first_at_risk is None else n_rows, n_classes - 1))
    seen, count = np.zeros(N_BINS, np.uint8), np.zeros(N_BINS, np.int64)
    sums = np.zeros((N_BINS, 2 * n_classes))
    bins, score = np.empty(N_BINS, np.int64), np.empty(N_BINS)
    label_below = np.empty((N_BINS, n_classes))
    mass_below, count_below = np.empty(N_BINS), np.empty(N_BINS)
    subset = np.empty(4, np.uint64)
    features = np.arange(n_features)
    rows, buffer = np.arange(n_rows, dtype=np.int32), np.empty(n_rows, np.int32)

    # Deep nodes are read from a block: their own rows' codes and targets, copied together.
    block_codes, block_time, block_event, block_weight = codes, time, event, weight
    block_first = first_at_risk
    all_rows = rows.copy()
    block_rows, block_start, block_end = all_rows, 0, n_rows
    may_copy = n_features <= COPIED_PER_CANDIDATE * n_candidates

    random_word = seed
    end[0] = n_rows
    n_nodes, n_waiting = 1, 1
    waiting = np.zeros(capacity, np.int32)
    while n_waiting > 0:
        n_waiting -= 1
        node = waiting[n_waiting]
        if start[node] < block_start or end[node] > block_end:
            block_codes, block_time, block_event, block_weight = codes, time, event, weight
            block_first = first_at_risk
            block_rows, block_start, block_end = all_rows, 0, n_rows
        here = rows[start[node] : end[node]]
        n = here.shape[0]
        best_feature = -1
        if n >= min_samples_split and n >= 2 * min_samples_leaf and depth[node] < max_depth:
            if may_copy and n <= BLOCK_ROWS and block_end - block_start > BLOCK_ROWS:
                block_start, block_end = start[node], end[node]
                block_rows = here.copy()
                block_codes = take_columns(codes, block_rows)
                block_time, block_event = take(time, block_rows), take(event, block_rows)
                block_weight = take(weight, block_rows)
                block_first = take_first_at_risk(first_at_risk, block_rows)
                for i in range(n):
                    here[i] = i
            min_child = max(min_samples_leaf, np.int64(np.ceil(min_child_fraction * n)))
            mixed, shape, mass = label_node(
                criterion,
                block_time,
                block_event,
                block_weight,
                here,
                base_levels,
                at_risk[:n],
                levels,
                value,
                ends,
                means,
                precision,
                survival_at,
                block_first,
                vectors,
            )
            if mixed:
                best_feature, best_code, best_missing_left, saw_missing, gain, random_word = (
                    find_split(
                        block_codes,
                        categorical,
                        here,
                        block_weight,
                        shape,
                        value,
                        vectors,
                        ends,
                        means,
                        precision,
                        survival_at,
                        base_levels,
                        mass,
                        np.float64(min_child),
                        features,
                        n_candidates,
                        random_word,
                        seen,
                        count,
                        sums,
                        bins,
                        labels,
                        missing_label,
                        label_below,
                        mass_below,
                        count_below,
                        score,
                        subset,
                    )
                )
        if best_feature < 0:
            for i in range(n):
                node_of_row[block_rows[here[i]]] = node
            continue
        if categorical[best_feature]:
            if n_subsets == subsets.shape[0]:
                subsets = lengthen(subsets)
            for word in range(4):
                subsets[n_subsets, word] = subset[word]
            best_code = n_subsets
            n_subsets += 1
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
            if categorical[best_feature]:
                send_unseen_left(block_codes[best_feature], here, subsets[n_subsets - 1])
        feature[node], code[node], missing_left[node] = best_feature, best_code, best_missing_left
        left[node] = n_nodes
        importance[best_feature] += gain / n_rows
        for child in range(n_nodes, n_nodes + 2):
            depth[child] = depth[node] + 1
            waiting[n_waiting] = child
            n_waiting += 1
        start[n_nodes], end[n_nodes] = start[node], start[node] + n_left
        start[n_nodes + 1], end[n_nodes + 1] = start[node] + n_left, end[node]
        n_nodes += 2
    return (
        feature[:n_nodes].copy(),
        code[:n_nodes].copy(),
        missing_left[:n_nodes].copy(),
        left[:n_nodes].copy(),
        subsets[:n_subsets].copy(),
        node_of_row,
        importance,
    )


@kernel
def send_unseen_left(column, rows, subset):
    """Add the codes that none of the rows has to those that go left."""
    for word in range(4):
        present = np.uint64(0)
        for i in range(rows.shape[0]):
            code = np.uint64(column[rows[i]])
            if code >> np.uint64(6) == np.uint64(word):
                present |= np.uint64(1) << (code & np.uint64(63))
        subset[word] |= ~present


@kernel
def take_columns(codes, rows):
    """Codes of some rows, contiguous per feature."""
    taken = np.empty((codes.shape[0], rows.shape[0]), np.uint8)
    for f in range(codes.shape[0]):
        for i in range(rows.shape[0]):
            taken[f, i] = codes[f, rows[i]]
    return taken


@kernel
def take(values, rows):
    """Values of some rows; None stays None."""
    if values is None:
        return None
    taken = np.empty(rows.shape[0], values.dtype)
    for i in range(rows.shape[0]):
        taken[i] = values[rows[i]]
    return taken


@kernel
def lengthen(subsets):
    """The same table with room for twice as many rows."""
    longer = np.zeros((2 * subsets.shape[0], 4), np.uint64)
    for i in range(subsets.shape[0]):
        for word in range(4):
            longer[i, word] = subsets[i, word]
    return longer


@kernel
def take_first_at_risk(first_at_risk, rows):
    """First position among some ascending rows at which each of them is at risk, or None."""
    if first_at_risk is None:
        return None
    first = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        first[i] = np.searchsorted(rows, first_at_risk[rows[i]])
    return first


@kernel
def find_nodes(codes, rows, categorical, feature, code, missing_left, left, subsets):
    """The leaf node that each of the rows reaches; codes of shape (n_features, n)."""
    nodes = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        row, node = rows[i], 0
        while feature[node] != LEAF:
            split = feature[node]
            if goes_left(
                codes[split, row], split, code[node], missing_left[node], categorical, subsets
            ):
                node = left[node]
            else:
                node = left[node] + 1
        nodes[i] = node
    return nodes


@kernel
def prune_empty(feature, code, missing_left, left, node_of_row):
    """Replace each node that has an empty side by its other side; return rows per node.

    Children stand behind their parents, so one pass from the back sees every subtree
    before it is needed. A replaced node takes over the record of the child that moves up;
    ``node_of_row`` follows.
    """
    n_nodes = feature.shape[0]
    size = np.zeros(n_nodes, np.int64)
    moved_to = np.arange(n_nodes).astype(np.int32)
    for row in range(node_of_row.shape[0]):
        size[node_of_row[row]] += 1
    for node in range(n_nodes - 1, -1, -1):
        if feature[node] == LEAF:
            continue
        child = left[node]
        if size[child] > 0 and size[child + 1] > 0:
            size[node] = size[child] + size[child + 1]
            continue
        kept = child if size[child] > 0 else child + 1
        size[node] = size[kept]
        feature[node], code[node], left[node] = feature[kept], code[kept], left[kept]
        missing_left[node] = missing_left[kept]
        moved_to[kept] = node
    # A leaf may have moved up several times; parents have smaller numbers than children.
    for node in range(n_nodes):
        moved_to[node] = moved_to[moved_to[node]]
    for row in range(node_of_row.shape[0]):
        node_of_row[row] = moved_to[node_of_row[row]]
    return size


@kernel
def list_by_level(feature, left):
    """Nodes that can be reached from the root: level by level, each from left to right."""
    nodes = np.zeros(feature.shape[0], np.int32)
    n_listed = 1
    at = 0
    while at < n_listed:
        node = nodes[at]
        if feature[node] != LEAF:
            nodes[n_listed] = left[node]
            nodes[n_listed + 1] = left[node] + 1
            n_listed += 2
        at += 1
    return nodes[:n_listed]


@kernel
def list_leaves(leaf_of_node, n_leaves, node_of_row):
    """Sizes of the leaves and, leaf by leaf, the positions of its rows in their old order."""
    sizes = np.zeros(n_leaves, np.int32)
    for row in range(node_of_row.shape[0]):
        sizes[leaf_of_node[node_of_row[row]]] += 1
    at = np.zeros(n_leaves, np.int64)
    for leaf in range(1, n_leaves):
        at[leaf] = at[leaf - 1] + sizes[leaf - 1]
    members = np.empty(node_of_row.shape[0], np.int32)
    for row in range(node_of_row.shape[0]):
        leaf = leaf_of_node[node_of_row[row]]
        members[at[leaf]] = row
        at[leaf] += 1
    return sizes, members
