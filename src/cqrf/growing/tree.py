"""The tree: nodes are split until they are small, then the leaves receive their rows.

While it grows, a tree is ranges of one array of its rows, in time order, which every split
partitions stably: each node and each leaf is in time order for nothing. Afterwards it is
a table of integers with one row per node:

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
"""

from __future__ import annotations

import numpy as np

from cqrf.growing.histograms import MISSING, N_BINS
from cqrf.growing.labels import label_node, position
from cqrf.growing.splitting import find_split
from cqrf.kernel import inlined, kernel

FEATURE, CODE, MISSING_LEFT, LEFT = 0, 1, 2, 3
LEAF = -1
# A node of at most this many rows is copied together with its codes, so that it and all
# nodes below it read from the processor's cache; unless features are so many and so few of
# them tried at a node that copying them all costs more than it saves.
BLOCK_ROWS = 2048
COPIED_PER_CANDIDATE = 4
# Copies of features stand this many bytes further apart than they need to: at a distance of a
# power of two they would compete for the same few places of the cache.
LINE = 64


@inlined
def goes_left(row_code, feature, code, missing_left, categorical, subsets):
    """Whether a row with this code of the node's feature goes to the left child."""
    if row_code == MISSING:
        return missing_left
    if categorical[feature]:
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
    codes,
    categorical,
    time,
    event,
    weight,
    first_at_risk,
    criterion,
    levels,
    of_class,
    class_direction,
    pairs,
    n_candidates,
    max_depth,
    min_samples_split,
    min_samples_leaf,
    min_child_fraction,
    weighted,
    seed,
    seen,
    count,
    sums,
):
    """Split some of the rows, in time order, until no node should or can be split.

    Returns the table of the module's docstring, the subsets, the node that each row ended in,
    and the gain of each feature summed over its splits, per row of the tree.
    """
    n_features, n_rows = codes.shape[0], ranks.shape[0]
    capacity = 2 * (n_rows // max(1, min_samples_leaf)) + 1
    nodes = np.empty((capacity, 4), np.int32)
    begin, end = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    depth, waiting = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    subsets, subset = np.empty((4, 4), np.uint64), np.empty(4, np.uint64)
    n_subsets = 0
    node_of_row = np.empty(n_rows, np.int32)
    importance = np.empty(n_features)
    features = np.empty(n_features, np.int32)
    for j in range(n_features):
        importance[j], features[j] = 0.0, j

    width = sums.shape[1]
    labels, at_risk, value = np.empty((n_rows, width)), np.empty(n_rows), np.empty(n_rows)
    for i in range(n_rows):
        labels[i, width - 1] = 0.0
    ends, cuts = np.empty(width, np.int32), np.empty((4, width))
    direction, start = np.empty(width), np.empty(width)
    direction[width - 1] = 0.0
    bins, running = np.empty(N_BINS + 1, np.uint64), np.empty((4, N_BINS))

    # The rows of the tree, and of a block: deep nodes are read from their own rows' codes and
    # targets, copied together.
    tree_codes, tree_time = np.empty((n_features, n_rows), np.uint8), np.empty(n_rows)
    tree_event, tree_weight = np.empty(n_rows, np.bool_), np.empty(n_rows, np.float32)
    take_rows(codes, time, event, weight, ranks, tree_codes, tree_time, tree_event, tree_weight)
    tree_first = take_first_at_risk(first_at_risk, ranks)
    n_copied = 0
    if n_features <= COPIED_PER_CANDIDATE * n_candidates:
        n_copied = min(BLOCK_ROWS, n_rows)
    own_codes, own_time = np.empty((n_features, n_copied + LINE), np.uint8), np.empty(n_copied)
    own_event, own_weight = np.empty(n_copied, np.bool_), np.empty(n_copied, np.float32)
    rows, buffer = np.empty(n_rows, np.uint32), np.empty(n_rows, np.uint32)
    all_rows = np.empty(n_rows, np.uint32)
    for i in range(n_rows):
        rows[i], all_rows[i] = i, i
    block_codes, block_time, block_event, block_weight = (
        tree_codes,
        tree_time,
        tree_event,
        tree_weight,
    )
    block_first = tree_first
    block_rows, block_begin, block_end = all_rows, 0, n_rows

    random_word = seed
    nodes[0, FEATURE], nodes[0, MISSING_LEFT] = LEAF, 0
    begin[0], end[0], depth[0], waiting[0] = 0, n_rows, 0, 0
    n_nodes, n_waiting = 1, 1
    while n_waiting > 0:
        n_waiting -= 1
        node = waiting[n_waiting]
        if begin[node] < block_begin or end[node] > block_end:
            block_codes, block_time = tree_codes, tree_time
            block_event, block_weight = tree_event, tree_weight
            block_first = tree_first
            block_rows, block_begin, block_end = all_rows, 0, n_rows
        here = rows[begin[node] : end[node]]
        n = here.shape[0]
        best_feature = -1
        if n >= min_samples_split and n >= 2 * min_samples_leaf and depth[node] < max_depth:
            if n <= n_copied and block_end - block_begin > n_copied:
                block_begin, block_end = begin[node], end[node]
                block_rows = here.copy()
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
                criterion,
                block_time,
                block_event,
                block_weight,
                block_first,
                here,
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
                        weighted,
                        min_child,
                        features,
                        n_candidates,
                        random_word,
                        seen,
                        count,
                        sums,
                        bins,
                        running,
                        start,
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
        nodes[node, FEATURE], nodes[node, CODE] = best_feature, best_code
        nodes[node, MISSING_LEFT], nodes[node, LEFT] = best_missing_left, n_nodes
        importance[best_feature] += gain / n_rows
        middle = begin[node] + n_left
        for child in range(n_nodes, n_nodes + 2):
            nodes[child, FEATURE], nodes[child, MISSING_LEFT] = LEAF, 0
            begin[child] = begin[node] if child == n_nodes else middle
            end[child] = middle if child == n_nodes else end[node]
            depth[child] = depth[node] + 1
            waiting[n_waiting] = child
            n_waiting += 1
        n_nodes += 2
    return nodes[:n_nodes], subsets[:n_subsets], node_of_row, importance


@inlined
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
def take_rows(codes, time, event, weight, rows, to_codes, to_time, to_event, to_weight):
    """Copy codes, contiguous per feature, and targets of some rows."""
    for f in range(codes.shape[0]):
        for i in range(rows.shape[0]):
            to_codes[f, i] = codes[f, rows[i]]
    for i in range(rows.shape[0]):
        row = rows[i]
        to_time[i], to_event[i], to_weight[i] = time[row], event[row], weight[row]


@inlined
def lengthen(subsets):
    """The same table with room for twice as many rows."""
    longer = np.empty((2 * subsets.shape[0], 4), np.uint64)
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
        first[i] = position(rows, first_at_risk[rows[i]])
    return first


@inlined
def find_nodes(codes, rows, categorical, nodes, subsets, node_of_row):
    """Write the leaf node that each of the rows reaches; codes of shape (n_features, n)."""
    for i in range(rows.shape[0]):
        row, node = rows[i], 0
        while nodes[node, FEATURE] != LEAF:
            split = nodes[node, FEATURE]
            left = goes_left(
                codes[split, row],
                split,
                nodes[node, CODE],
                nodes[node, MISSING_LEFT] != 0,
                categorical,
                subsets,
            )
            node = nodes[node, LEFT] if left else nodes[node, LEFT] + 1
        node_of_row[i] = node


@inlined
def prune_empty(nodes, node_of_row, n_rows, size, moved_to):
    """Replace each node that has an empty side by its other side.

    Children stand behind their parents, so one pass from the back sees every subtree
    before it is needed. A replaced node takes over the record of the child that moves up;
    ``node_of_row`` follows. ``size`` receives the rows of each node; ``moved_to`` is scratch.
    """
    n_nodes = nodes.shape[0]
    for node in range(n_nodes):
        size[node], moved_to[node] = 0, node
    for row in range(n_rows):
        size[node_of_row[row]] += 1
    for node in range(n_nodes - 1, -1, -1):
        if nodes[node, FEATURE] == LEAF:
            continue
        child = nodes[node, LEFT]
        if size[child] > 0 and size[child + 1] > 0:
            size[node] = size[child] + size[child + 1]
            continue
        kept = child if size[child] > 0 else child + 1
        size[node] = size[kept]
        for field in range(4):
            nodes[node, field] = nodes[kept, field]
        moved_to[kept] = node
    # A leaf may have moved up several times; parents have smaller numbers than children.
    for node in range(n_nodes):
        moved_to[node] = moved_to[moved_to[node]]
    for row in range(n_rows):
        node_of_row[row] = moved_to[node_of_row[row]]


@inlined
def list_by_level(nodes, listed):
    """Nodes that can be reached from the root: level by level, each from left to right."""
    listed[0] = 0
    n_listed, at = 1, 0
    while at < n_listed:
        node = listed[at]
        if nodes[node, FEATURE] != LEAF:
            listed[n_listed] = nodes[node, LEFT]
            listed[n_listed + 1] = nodes[node, LEFT] + 1
            n_listed += 2
        at += 1
    return n_listed
