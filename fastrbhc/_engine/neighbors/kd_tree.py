"""A kd-tree over the slots, kept up to date as clusters merge.

The tree is implicit. Slots are kept in tree order, a run of eight is a leaf, and node k has the
children 2k and 2k + 1; the leaves are the nodes from ``n_leaves`` on, a power of 2, and leaves past
the last slot are empty. A node stores the box of its means, its smallest weight and the range of
its features, from which a geometry computes lower bounds. When two clusters merge, the boxes above
their slots are refitted; when many slots are free, the tree order is rebuilt.

A query considers all other clusters, old and young. It starts in its own leaf and climbs: at every
ancestor it descends into the other child, if the bound of that child's box allows a nearer cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, gather
from fastrbhc._engine.geometry.contract import (
    blocks_of,
    box_bounds,
    box_rows,
    box_violation_bound,
    column_widths,
    dissimilarity,
    leaf_values,
    storage,
    violation_bounds,
)
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.neighbors.contract import (
    NONE_LOWERED,
    Lowered,
    hint_of,
    nearest,
    refit,
    refitting,
)
from fastrbhc._engine.neighbors.kd_order import tree_order
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import LANES, lowest_set_bit
from fastrbhc._engine.threads import Threads

# Boxes are fitted to the leading digits of means. The further digits add up to half a unit in the
# last place, in the box and in the query.
WIDENED = 2.0**-50

# Number of subtrees that threads share. Of levels with more than _ALL_FITTED nodes, only the boxes
# that queries may see are fitted.
_SUBTREES, _ALL_FITTED = 64, 64 * LANES


@record
class KDTree:
    """Boxes of the nodes; see the module's documentation."""

    boxes: NDArray[np.float64]  # (nodes/8, 2d + 1 + …, 8), see the contract of ``box_bounds``
    columns: NDArray[np.int64]  # (d,), the row of a box with the low of each column
    weights: NDArray[np.int64]  # (…,), rows with the smallest weight; one for each block of columns
    features: NDArray[np.int64]  # columns of ``cached`` whose range the boxes hold
    feature_rows: NDArray[np.int64]  # the row with the low of each of these
    widths: NDArray[np.float64]  # (d,), factors that make columns comparable
    heaviest: NDArray[np.float64]  # (nodes,): the largest weight, for audits; or empty
    touched: NDArray[np.bool_]  # (nodes,): boxes to be refitted
    n_leaves: int
    # With three quarters, sorting took 0.67 s instead of 0.37 s, 1,000,000 × 2.
    rebuild_below: float = 0.5
    unions_in_new_slots: bool = False
    n_parts: int = _SUBTREES
    lowered: Lowered = NONE_LOWERED

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        self.n_leaves = _leaves_for(slots.size)
        slots = tree_order(clusters, self.widths, slots, self.n_leaves * LEAF_SIZE, threads)
        gather(clusters, slots, threads)
        _touch_used(self, slots.size)
        refit(refitting(self, clusters, threads.scratches[0]), slots.size, threads)
        return slots

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        n_leaves, boxes = index.n_leaves, index.boxes
        nodes, bounds = scratch.nodes, scratch.node_bounds
        best, best_slot, best_rank = cutoff, -1, -1
        if hint >= 0:
            value = dissimilarity(geometry, clusters, i, hint, best, scratch)
            if comes_before(value, clusters.ranks[hint], best, best_rank):
                best, best_slot, best_rank = value, hint, clusters.ranks[hint]
        climbing = n_leaves + i // LEAF_SIZE
        node = climbing
        depth = 0
        while True:
            if node >= n_leaves:
                start = (node - n_leaves) * LEAF_SIZE
                near = leaf_values(geometry, clusters, i, start, best, scratch)
                while near:
                    s = lowest_set_bit(near)
                    near &= near - 1
                    value, j = scratch.bounds[s], start + s
                    if j != i and comes_before(value, clusters.ranks[j], best, best_rank):
                        best, best_slot, best_rank = value, j, clusters.ranks[j]
            else:
                # Three levels down, or up and to the seven others with the same ancestor.
                group = node if node > 0 else climbing // LANES
                near = box_bounds(geometry, clusters, i, boxes, group, best, scratch)
                if node == 0:
                    near &= _beside(climbing)
                    climbing = group
                bottom = depth
                while near:
                    s = lowest_set_bit(near)
                    near &= near - 1
                    # The nearest is visited first.
                    bound, place = scratch.bounds[s], depth
                    while place > bottom and bounds[place - 1] < bound:
                        bounds[place], nodes[place] = bounds[place - 1], nodes[place - 1]
                        place -= 1
                    bounds[place], nodes[place] = bound, LANES * group + s
                    depth += 1
            node = 0
            while node == 0 and depth > 0:
                depth -= 1
                if bounds[depth] <= best:
                    node = nodes[depth]
            if node == 0 and climbing <= 1:
                return best, best_slot

    def possible_violations(index, geometry, clusters, a, b, height, part, parts, scratch):
        n_leaves, nodes, count = index.n_leaves, scratch.nodes, 0
        if part >= min(parts, n_leaves):
            return 0
        nodes[0], depth = min(parts, n_leaves) + part, 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            bound = box_violation_bound(
                geometry, clusters, a, b, index.boxes, node, index.heaviest[node], height, scratch
            )
            if not bound <= height:
                continue
            if node < n_leaves:
                nodes[depth], nodes[depth + 1] = 2 * node, 2 * node + 1
                depth += 2
                continue
            start = (node - n_leaves) * LEAF_SIZE
            violation_bounds(geometry, clusters, a, b, start, start + LEAF_SIZE, height, scratch)
            for s in range(LEAF_SIZE):
                if scratch.bounds[s] <= height:
                    scratch.hits[count] = start + s
                    count += 1
        return count

    def find(index, geometry, clusters, queries, first, last, scratch):
        values, slots, cutoff = queries.values, queries.neighbors, queries.cutoff
        for q in range(first, last):
            i = np.int64(queries.queue[q])
            hint = hint_of(np.int64(slots[i]))
            values[i], slots[i] = nearest(index, geometry, clusters, i, hint, cutoff, scratch)

    def merged(index, clusters, i, j):
        _fit_above(index, clusters, i // LEAF_SIZE)
        if i // LEAF_SIZE != j // LEAF_SIZE:
            _fit_above(index, clusters, j // LEAF_SIZE)

    def touch(index, i, j):
        index.touched[index.n_leaves + i // LEAF_SIZE] = True
        index.touched[index.n_leaves + j // LEAF_SIZE] = True

    def refit_part(index, clusters, part):
        if part < _n_subtrees(index):
            _fit_touched(index, clusters, part)

    def refit_rest(index, clusters):
        for node in range(_n_subtrees(index) - 1, 0, -1):
            _fit_node(index, clusters, node)


def kd_tree(geometry: Any, clusters: Clusters, threads: Threads, audited: bool) -> KDTree:
    """The backend over the clusters, which are put into tree order.

    Boxes also store the range of the geometry's box features, which are columns of ``cached``. If
    audited, the largest weights are stored as well, for ``possible_violations``.
    """
    n_features, nodes = clusters.means.shape[0], 2 * _leaves_for(clusters.n_slots)
    layout = box_layout(geometry, n_features)
    index = KDTree(
        boxes=np.empty((-(-nodes // LANES), box_rows(geometry, n_features), LANES)),
        columns=np.array(layout.columns, np.int64),
        weights=np.array(layout.weights, np.int64),
        features=np.array(layout.features, np.int64),
        feature_rows=np.array(layout.feature_rows, np.int64),
        widths=column_widths(geometry, clusters) if clusters.blocks else np.ones(n_features),
        heaviest=np.zeros(nodes if audited else 0),
        touched=np.zeros(nodes, bool),
        n_leaves=nodes // 2,
    )
    index.boxes[0] = np.inf  # node 0 does not exist, nor do all nodes below 8 in small trees
    index.rebuild(clusters, threads)
    return index


class BoxLayout(NamedTuple):
    """The rows of a box."""

    columns: list[int]
    weights: list[int]
    features: list[int]
    feature_rows: list[int]


def box_layout(geometry: Any, n_features: int) -> BoxLayout:
    """The rows of a box: those of one block of columns after another, each with the weight."""
    blocks = blocks_of(geometry, n_features)
    if not blocks:
        features = list(storage(geometry, n_features).box_features)
        rows = [2 * n_features + 1 + 2 * e for e in range(len(features))]
        return BoxLayout([2 * k for k in range(n_features)], [2 * n_features], features, rows)
    all_rows, row, cached = BoxLayout([], [], [], []), 0, 0
    for block, columns in blocks:
        part = box_layout(block, columns)
        all_rows.columns.extend(row + k for k in part.columns)
        all_rows.weights.extend(row + k for k in part.weights)
        all_rows.features.extend(cached + k for k in part.features)
        all_rows.feature_rows.extend(row + k for k in part.feature_rows)
        row, cached = row + box_rows(block, columns), cached + storage(block, columns).cached
    return all_rows


def widened(
    low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ranges of columns with a margin for the rounding of means."""
    return low - WIDENED * np.abs(low), high + WIDENED * np.abs(high)


def _touch_used(index: KDTree, n_slots: int) -> None:
    """Mark the boxes that queries may see: those with slots, and the rest of their groups."""
    first, used = index.n_leaves, -(-n_slots // LEAF_SIZE)
    while first > 0:
        count = first if first <= _ALL_FITTED else min(first, -(-used // LANES) * LANES)
        index.touched[first : first + count] = True
        first, used = first // 2, -(-used // 2)


def _leaves_for(n: int) -> int:
    leaves = -(-n // LEAF_SIZE)
    return 1 << max(leaves - 1, 0).bit_length()


@kernel
def _n_subtrees(index):
    return min(_SUBTREES, index.n_leaves)


@kernel
def _fit_leaf(index, clusters, leaf):
    """Fit the box of a leaf to its slots; returns whether it changed."""
    boxes, n_features = index.boxes, clusters.means.shape[0]
    node, start = index.n_leaves + leaf, leaf * LEAF_SIZE
    group, lane = node // LANES, node % LANES
    if start >= clusters.n_slots:
        _empty(index, clusters, node)
        return True
    changed = False
    for k in range(n_features):
        low, high = np.inf, -np.inf
        for s in range(start, start + LEAF_SIZE):
            mean = clusters.means[k, s]
            low = mean if mean < low else low
            high = mean if mean > high else high
        if low <= high:
            low -= WIDENED * abs(low)
            high += WIDENED * abs(high)
        row = index.columns[k]
        changed |= low != boxes[group, row, lane] or high != boxes[group, row + 1, lane]
        boxes[group, row, lane], boxes[group, row + 1, lane] = low, high
    lightest = np.inf
    for s in range(start, start + LEAF_SIZE):
        if clusters.weights[s] < lightest:
            lightest = clusters.weights[s]
    changed |= _put_lightest(index, node, lightest)
    if index.heaviest.size:
        heaviest = 0.0
        for s in range(start, start + LEAF_SIZE):
            if clusters.weights[s] > heaviest:
                heaviest = clusters.weights[s]
        changed |= heaviest != index.heaviest[node]
        index.heaviest[node] = heaviest
    for e in range(index.features.size):
        low, high = np.inf, -np.inf
        for s in range(start, start + LEAF_SIZE):
            if not np.isnan(clusters.weights[s]):
                value = clusters.cached[s, index.features[e]]
                low, high = min(low, value), max(high, value)
        row = index.feature_rows[e]
        changed |= low != boxes[group, row, lane] or high != boxes[group, row + 1, lane]
        boxes[group, row, lane], boxes[group, row + 1, lane] = low, high
    return changed


@kernel
def _put_lightest(index, node, lightest):
    """Put the smallest weight into a box; returns whether it changed."""
    boxes, group, lane = index.boxes, node // LANES, node % LANES
    changed = lightest != boxes[group, index.weights[0], lane]
    for k in range(index.weights.size):
        boxes[group, index.weights[k], lane] = lightest
    return changed


@kernel
def _fit_node(index, clusters, node):
    """Fit the box of a node to the boxes of its children; returns whether it changed."""
    boxes = index.boxes
    left, right, weight = 2 * node, 2 * node + 1, index.weights[0]
    changed = False
    for k in range(index.columns.size):
        changed |= _fit_interval(boxes, node, index.columns[k])
    for e in range(index.features.size):
        changed |= _fit_interval(boxes, node, index.feature_rows[e])
    parts, lane = left // LANES, left % LANES
    lightest = min(boxes[parts, weight, lane], boxes[parts, weight, lane + 1])
    changed |= _put_lightest(index, node, lightest)
    if index.heaviest.size:
        heaviest = max(index.heaviest[left], index.heaviest[right])
        changed |= heaviest != index.heaviest[node]
        index.heaviest[node] = heaviest
    return changed


@kernel
def _fit_interval(boxes, node, k):
    parts, lane = 2 * node // LANES, 2 * node % LANES
    low = min(boxes[parts, k, lane], boxes[parts, k, lane + 1])
    high = max(boxes[parts, k + 1, lane], boxes[parts, k + 1, lane + 1])
    group, lane = node // LANES, node % LANES
    changed = low != boxes[group, k, lane] or high != boxes[group, k + 1, lane]
    boxes[group, k, lane], boxes[group, k + 1, lane] = low, high
    return changed


@kernel
def _fit_above(index, clusters, leaf):
    """Fit the boxes of a leaf and its ancestors, up to the first that does not change."""
    changed = _fit_leaf(index, clusters, leaf)
    node = (index.n_leaves + leaf) // 2
    while changed and node >= 1:
        changed = _fit_node(index, clusters, node)
        node //= 2


@kernel
def _fit_touched(index, clusters, part):
    """Fit the touched boxes of one subtree, whose root is the node n_subtrees + part."""
    n_parts, n_leaves, touched = _n_subtrees(index), index.n_leaves, index.touched
    start, stop = part * n_leaves // n_parts, (part + 1) * n_leaves // n_parts
    for leaf in range(start, stop):
        if touched[n_leaves + leaf]:
            touched[n_leaves + leaf] = False
            if _fit_leaf(index, clusters, leaf):
                touched[(n_leaves + leaf) // 2] = True
    level, used = n_leaves, (clusters.n_slots - 1) // LEAF_SIZE + 1
    start, stop = n_leaves + start, n_leaves + stop
    while start // 2 >= n_parts:
        start, stop, level, used = start // 2, stop // 2, level // 2, (used + 1) // 2
        for node in range(start, stop):
            if touched[node]:
                touched[node] = False
                if node - level >= used:  # its children may never have been fitted
                    _empty(index, clusters, node)
                elif _fit_node(index, clusters, node):
                    touched[node // 2] = True


@kernel
def _empty(index, clusters, node):
    """Empty a box beyond the last slot."""
    boxes, group, lane = index.boxes, node // LANES, node % LANES
    for k in range(index.columns.size):
        row = index.columns[k]
        boxes[group, row, lane], boxes[group, row + 1, lane] = np.inf, -np.inf
    for e in range(index.features.size):
        row = index.feature_rows[e]
        boxes[group, row, lane], boxes[group, row + 1, lane] = np.inf, -np.inf
    _put_lightest(index, node, np.inf)
    if index.heaviest.size:
        index.heaviest[node] = 0.0


@inlined_kernel
def _beside(node):
    """Bit mask of the nodes in the group of a node, at its level, other than the node itself."""
    # In the first group, the nodes 1, 2 to 3 and 4 to 7 are separate levels.
    level = 0b11111111 if node >= LANES else 0b11110000 if node >= 4 else 0b1100
    return level & ~(1 << node % LANES)
