"""Settling: grown trees receive the rows of their leaves, and their nodes the final order."""

from __future__ import annotations

from cqrf._forest.grower import BEGIN, CODE, END, FEATURE, LEAF, LEFT, MISSING_LEFT, partition
from cqrf._runtime.compiling import inlined, kernel


@kernel
def settle_rows(
    codes,
    categorical,
    honest,
    ranks,
    starts,
    all_nodes,
    first_node,
    subsets,
    buffer,
    n_nodes,
    listed,
    leaf_sizes,
    leaf_rows,
):
    """Fill the leaves of some trees, and list the nodes of each level by level.

    An honest tree loses the nodes of which one side stays empty: ``n_nodes`` are left of each.
    ``listed`` receives these, as numbers among the nodes of all trees, ``leaf_sizes`` and
    ``leaf_rows`` their leaves. Codes of categories are rows of the subsets of all trees. The ranks
    of a tree change their places. ``buffer`` is scratch with a place for each row of a tree.
    Returns how many nodes, leaves and rows have been written.
    """
    at_node, at_leaf, at_row = 0, 0, 0
    for k in range(n_nodes.shape[0]):
        nodes = all_nodes[first_node[k] : first_node[k + 1]]
        part = 2 * k + 1 if honest else 2 * k
        its_ranks = ranks[starts[part] : starts[part + 1]]
        sort_into_leaves(codes, its_ranks, categorical, nodes, subsets, buffer)
        n_nodes[k] = list_by_level(nodes, listed[at_node:])
        for i in range(at_node, at_node + n_nodes[k]):
            node = listed[i]
            listed[i] += first_node[k]
            if nodes[node, FEATURE] == LEAF:
                leaf_sizes[at_leaf] = nodes[node, END] - nodes[node, BEGIN]
                at_leaf += 1
                for place in range(nodes[node, BEGIN], nodes[node, END]):
                    leaf_rows[at_row] = its_ranks[place]
                    at_row += 1
        at_node += n_nodes[k]
    return at_node, at_leaf, at_row


@inlined
def sort_into_leaves(codes, ranks, categorical, nodes, subsets, buffer):
    """Send rows down a tree, so that those of each node stand together; codes by rank.

    Writes where the rows of each node begin and end among the ranks, which change their places;
    in a leaf they are in their old order. Children stand behind their parents.
    """
    nodes[0, BEGIN], nodes[0, END] = 0, ranks.shape[0]
    for node in range(nodes.shape[0]):
        split, left = nodes[node, FEATURE], nodes[node, LEFT]
        if split == LEAF:
            continue
        begin, end = nodes[node, BEGIN], nodes[node, END]
        here = ranks[begin:end]
        n_left = partition(
            codes[split],
            here,
            split,
            nodes[node, CODE],
            nodes[node, MISSING_LEFT] != 0,
            categorical,
            subsets,
            buffer,
        )
        nodes[left, BEGIN], nodes[left + 1, BEGIN] = begin, begin + n_left
        nodes[left, END], nodes[left + 1, END] = begin + n_left, end


@inlined
def list_by_level(nodes, listed):
    """List the nodes level by level, each from left to right; return how many there are.

    A node of which one side has no rows gives way to its other side.
    """
    listed[0] = 0
    n_listed, at = 1, 0
    while at < n_listed:
        node = listed[at]
        while nodes[node, FEATURE] != LEAF:
            left = nodes[node, LEFT]
            any_left = nodes[left, BEGIN] < nodes[left, END]
            if any_left and nodes[left + 1, BEGIN] < nodes[left + 1, END]:
                listed[n_listed], listed[n_listed + 1] = left, left + 1
                n_listed += 2
                break
            node = left if any_left else left + 1
        listed[at] = node
        at += 1
    return n_listed
