"""A kd-tree over the slots that follows the clusters as they merge.

The tree is implicit. Slots are kept in tree order, a tile of them is a leaf, and node k has the
children 2k and 2k + 1; the leaves are the nodes from ``n_leaves`` on, a power of 2, and those past
the last slot are empty. A node stores the box of its means, its smallest weight and the range of
its extents, which is what the lower bound of a geometry asks for. When two clusters merge, the
boxes above their slots are fitted again; when many slots are free, the order is made anew.

All slots watch all others, and a query starts in its own leaf and climbs: at every ancestor it
looks into the other child, if the bound of that child's box admits anything nearer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.geometry.contract import (
    TILE,
    Clusters,
    box_bound,
    box_bounds,
    box_pull_bound,
    dissimilarity,
    extent,
    n_columns,
    n_extents,
    pull_bounds,
    tile_values,
)
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.neighbors.contract import comes_before, nearest, refit, refit_parts
from fastrbhc._engine.neighbors.kd_order import arrange, gather
from fastrbhc._engine.simd import EIGHT, lowest
from fastrbhc._engine.threads import Threads

# Boxes are fitted to the leading digits of means; the digits after them reach half a unit in the
# last place further, and so do those of the query.
_WIDENED = 2.0**-50

# Subtrees that threads share among them.
_SUBTREES = 64


class KDTree(NamedTuple):
    """Boxes of the nodes; see the module's documentation."""

    boxes: NDArray[np.float64]  # (nodes/8, 2d + 1 + …, 8), see the contract of ``box_bound``
    keys: NDArray[np.float64]  # (nodes,): the largest d to a nearest neighbour, for reverse queries
    heaviest: NDArray[np.float64]  # (nodes,): the largest weight, for audits; or none
    touched: NDArray[np.bool_]  # (nodes,): boxes to be fitted again
    shape: NDArray[np.int64]  # (2,): slots in use, number of leaves

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        n_leaves, boxes = index.shape[1], index.boxes
        nodes, bounds = scratch.nodes, scratch.node_bounds
        best, best_slot, best_rank = cutoff, -1, -1
        if hint >= 0:
            value = dissimilarity(geometry, clusters, i, hint, best, scratch)
            if comes_before(value, clusters.ranks[hint], best, best_rank):
                best, best_slot, best_rank = value, hint, clusters.ranks[hint]
        climbing = n_leaves + i // TILE
        node = climbing
        depth = 0
        while True:
            if node >= n_leaves:
                start = (node - n_leaves) * TILE
                near = tile_values(geometry, clusters, i, start, best, scratch)
                while near:
                    s = lowest(near)
                    near &= near - 1
                    value, j = scratch.bounds[s], start + s
                    if j != i and comes_before(value, clusters.ranks[j], best, best_rank):
                        best, best_slot, best_rank = value, j, clusters.ranks[j]
            else:
                # Three levels down, or up and to the seven others with the same ancestor.
                group = node if node > 0 else climbing // EIGHT
                near = box_bounds(geometry, clusters, i, boxes, group, best, scratch)
                if node == 0:
                    near &= _beside(climbing)
                    climbing = group
                bottom = depth
                while near:
                    s = lowest(near)
                    near &= near - 1
                    # The nearest is visited first.
                    bound, place = scratch.bounds[s], depth
                    while place > bottom and bounds[place - 1] < bound:
                        bounds[place], nodes[place] = bounds[place - 1], nodes[place - 1]
                        place -= 1
                    bounds[place], nodes[place] = bound, EIGHT * group + s
                    depth += 1
            node = 0
            while node == 0 and depth > 0:
                depth -= 1
                if bounds[depth] <= best:
                    node = nodes[depth]
            if node == 0 and climbing <= 1:
                return best, best_slot

    def nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
        # As above, but a node is also of interest if any of its keys may be undercut.
        n_leaves, boxes, keys = index.shape[1], index.boxes, index.keys
        nodes, bounds = scratch.nodes, scratch.node_bounds
        best, best_slot, best_rank = cutoff, -1, -1
        rank, count = clusters.ranks[i], 0
        climbing = n_leaves + i // TILE
        node = climbing
        depth = 0
        while True:
            if node >= n_leaves:
                start = (node - n_leaves) * TILE
                limit = max(best, keys[node])
                near = tile_values(geometry, clusters, i, start, limit, scratch)
                while near:
                    s = lowest(near)
                    near &= near - 1
                    value, z = scratch.bounds[s], start + s
                    if z != i:
                        if comes_before(value, clusters.ranks[z], best, best_rank):
                            best, best_slot, best_rank = value, z, clusters.ranks[z]
                        if comes_before(value, rank, links.values[z], links.ranks[z]):
                            hits[count], values[count] = z, value
                            count += 1
                node = 0
            else:
                limit = max(best, keys[node])
                left = box_bound(geometry, clusters, i, boxes, 2 * node, limit)
                right = box_bound(geometry, clusters, i, boxes, 2 * node + 1, limit)
                node = 2 * node
                near, far = node, node + 1
                if right < left:
                    left, right = right, left
                    near, far = far, near
                if right <= max(best, keys[far]):
                    nodes[depth], bounds[depth] = far, right
                    depth += 1
                node = near if left <= max(best, keys[near]) else 0
            while node == 0 and depth > 0:
                depth -= 1
                if bounds[depth] <= max(best, keys[nodes[depth]]):
                    node = nodes[depth]
            while node == 0 and climbing > 1:
                other = climbing ^ 1
                limit = max(best, keys[other])
                if box_bound(geometry, clusters, i, boxes, other, limit) <= limit:
                    node = other
                climbing >>= 1
            if node == 0:
                return best, best_slot, count

    def pulled(index, geometry, clusters, a, b, height, part, parts, scratch):
        n_leaves, nodes, count = index.shape[1], scratch.nodes, 0
        if part >= min(parts, n_leaves):
            return 0
        nodes[0], depth = min(parts, n_leaves) + part, 1
        while depth > 0:
            depth -= 1
            node = nodes[depth]
            bound = box_pull_bound(
                geometry, clusters, a, b, index.boxes, node, index.heaviest[node], height, scratch
            )
            if not bound <= height:
                continue
            if node < n_leaves:
                nodes[depth], nodes[depth + 1] = 2 * node, 2 * node + 1
                depth += 2
                continue
            start = (node - n_leaves) * TILE
            pull_bounds(geometry, clusters, a, b, start, start + TILE, height, scratch)
            for s in range(TILE):
                if scratch.bounds[s] <= height:
                    scratch.hits[count] = start + s
                    count += 1
        return count

    def find(index, geometry, clusters, queue, start, stop, older, cutoff, values, slots, scratch):
        for q in range(start, stop):
            i = np.int64(queue[q])
            hint = -2 - np.int64(slots[i])
            values[i], slots[i] = nearest(index, geometry, clusters, i, hint, cutoff, scratch)

    def slot_of_union(index, i):
        return i

    def merged(index, geometry, clusters, i, j):
        _fit_above(index, geometry, clusters, i // TILE)
        if i // TILE != j // TILE:
            _fit_above(index, geometry, clusters, j // TILE)

    def relink(index, links, i):
        leaf = i // TILE
        node, largest = index.shape[1] + leaf, -np.inf
        for s in range(leaf * TILE, leaf * TILE + TILE):
            largest = max(largest, links.values[s])
        while index.keys[node] != largest:
            index.keys[node] = largest
            if node == 1:
                break
            largest = max(largest, index.keys[node ^ 1])
            node //= 2

    def relink_all(index, links):
        n_leaves = index.shape[1]
        for leaf in range(n_leaves):
            largest = -np.inf
            for s in range(leaf * TILE, min(leaf * TILE + TILE, links.values.size)):
                largest = max(largest, links.values[s])
            index.keys[n_leaves + leaf] = largest
        for node in range(n_leaves - 1, 0, -1):
            index.keys[node] = max(index.keys[2 * node], index.keys[2 * node + 1])

    def touch(index, i, j):
        index.touched[index.shape[1] + i // TILE] = True
        index.touched[index.shape[1] + j // TILE] = True

    def refit_parts(index):
        return min(_SUBTREES, index.shape[1])

    def refit_part(index, geometry, clusters, part):
        _fit_touched(index, geometry, clusters, part)

    def refit_rest(index, geometry, clusters):
        for node in range(refit_parts(index) - 1, 0, -1):
            _fit_node(index, geometry, clusters, node)

    def rebuild(index, geometry, clusters, threads):
        slots = np.flatnonzero(~np.isnan(clusters.weights[: index.shape[0]]))
        index.shape[0] = slots.size
        index.shape[1] = _leaves_for(slots.size)
        slots = arrange(clusters, slots, int(index.shape[1]) * TILE, threads)
        gather(clusters, slots, threads)
        index.touched[: 2 * index.shape[1]] = True
        refit(index, geometry, clusters, threads)
        return slots

    def rebuild_below(index):
        # Three quarters cost 0.67 s of sorting instead of 0.37 s, 1,000,000 × 2.
        return 0.5


def kd_tree(geometry: Any, clusters: Clusters, threads: Threads, audited: bool = False) -> KDTree:
    """The backend over the clusters, which are put into tree order.

    If audited, the largest weights are kept too, which ``pulled`` asks for.
    """
    n_features, n = clusters.means.shape[0], int(np.count_nonzero(~np.isnan(clusters.weights)))
    nodes = 2 * _leaves_for(n)
    groups, n_numbers = -(-nodes // EIGHT), 2 * n_features + 1 + 2 * geometry.n_extents()
    index = KDTree(
        boxes=np.empty((groups, n_numbers, EIGHT)),
        keys=np.full(nodes, np.inf),
        heaviest=np.zeros(nodes if audited else 0),
        touched=np.zeros(nodes, bool),
        shape=np.array([n, nodes // 2]),
    )
    index.boxes[0] = np.inf  # there is no node 0, and in small trees not all of the first eight
    index.rebuild(geometry, clusters, threads)
    return index


def _leaves_for(n: int) -> int:
    leaves = -(-n // TILE)
    return 1 << max(leaves - 1, 0).bit_length()


@kernel
def _fit_leaf(index, geometry, clusters, leaf):
    """Fit the box of a leaf to its slots; whether it changed."""
    boxes, n_features = index.boxes, n_columns(clusters)
    node, start = index.shape[1] + leaf, leaf * TILE
    group, lane = node // EIGHT, node % EIGHT
    if start >= index.shape[0]:
        _empty(index, geometry, clusters, node)
        return True
    changed = False
    for k in range(n_features):
        low, high = np.inf, -np.inf
        for s in range(start, start + TILE):
            mean = clusters.means[k, s]
            low = mean if mean < low else low
            high = mean if mean > high else high
        if low <= high:
            low -= _WIDENED * abs(low)
            high += _WIDENED * abs(high)
        changed |= low != boxes[group, 2 * k, lane] or high != boxes[group, 2 * k + 1, lane]
        boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane] = low, high
    lightest = np.inf
    for s in range(start, start + TILE):
        if clusters.weights[s] < lightest:
            lightest = clusters.weights[s]
    changed |= lightest != boxes[group, 2 * n_features, lane]
    boxes[group, 2 * n_features, lane] = lightest
    if index.heaviest.size:
        heaviest = 0.0
        for s in range(start, start + TILE):
            if clusters.weights[s] > heaviest:
                heaviest = clusters.weights[s]
        changed |= heaviest != index.heaviest[node]
        index.heaviest[node] = heaviest
    for e in range(n_extents(geometry)):
        low, high = np.inf, -np.inf
        for s in range(start, start + TILE):
            if not np.isnan(clusters.weights[s]):
                value = extent(geometry, clusters, s, e)
                low, high = min(low, value), max(high, value)
        k = 2 * n_features + 1 + 2 * e
        changed |= low != boxes[group, k, lane] or high != boxes[group, k + 1, lane]
        boxes[group, k, lane], boxes[group, k + 1, lane] = low, high
    return changed


@kernel
def _fit_node(index, geometry, clusters, node):
    """Fit the box of a node to those of its children; whether it changed."""
    boxes = index.boxes
    left, right, weight = 2 * node, 2 * node + 1, 2 * n_columns(clusters)
    changed = False
    for k in range(0, weight, 2):
        changed |= _fit_interval(boxes, node, k)
    for e in range(n_extents(geometry)):
        changed |= _fit_interval(boxes, node, weight + 1 + 2 * e)
    parts, lane = left // EIGHT, left % EIGHT
    lightest = min(boxes[parts, weight, lane], boxes[parts, weight, lane + 1])
    group, lane = node // EIGHT, node % EIGHT
    changed |= lightest != boxes[group, weight, lane]
    boxes[group, weight, lane] = lightest
    if index.heaviest.size:
        heaviest = max(index.heaviest[left], index.heaviest[right])
        changed |= heaviest != index.heaviest[node]
        index.heaviest[node] = heaviest
    return changed


@kernel
def _fit_interval(boxes, node, k):
    parts, lane = 2 * node // EIGHT, 2 * node % EIGHT
    low = min(boxes[parts, k, lane], boxes[parts, k, lane + 1])
    high = max(boxes[parts, k + 1, lane], boxes[parts, k + 1, lane + 1])
    group, lane = node // EIGHT, node % EIGHT
    changed = low != boxes[group, k, lane] or high != boxes[group, k + 1, lane]
    boxes[group, k, lane], boxes[group, k + 1, lane] = low, high
    return changed


@kernel
def _fit_above(index, geometry, clusters, leaf):
    """Fit the boxes of a leaf and of its ancestors, up to the first that stays as it is."""
    changed = _fit_leaf(index, geometry, clusters, leaf)
    node = (index.shape[1] + leaf) // 2
    while changed and node >= 1:
        changed = _fit_node(index, geometry, clusters, node)
        node //= 2


@kernel
def _fit_touched(index, geometry, clusters, part):
    """Fit what has been touched in one subtree: that of the node refit_parts + part."""
    n_parts, n_leaves, touched = refit_parts(index), index.shape[1], index.touched
    start, stop = part * n_leaves // n_parts, (part + 1) * n_leaves // n_parts
    for leaf in range(start, stop):
        if touched[n_leaves + leaf]:
            touched[n_leaves + leaf] = False
            if _fit_leaf(index, geometry, clusters, leaf):
                touched[(n_leaves + leaf) // 2] = True
    start, stop = (n_leaves + start) // 2, (n_leaves + stop) // 2
    while start >= n_parts:
        for node in range(start, stop):
            if touched[node]:
                touched[node] = False
                if _fit_node(index, geometry, clusters, node):
                    touched[node // 2] = True
        start, stop = start // 2, stop // 2


@kernel
def _empty(index, geometry, clusters, node):
    """The box of a leaf beyond the last slot."""
    boxes, group, lane = index.boxes, node // EIGHT, node % EIGHT
    weight = 2 * n_columns(clusters)
    for k in range(0, weight, 2):
        boxes[group, k, lane], boxes[group, k + 1, lane] = np.inf, -np.inf
    for k in range(weight + 1, weight + 1 + 2 * n_extents(geometry), 2):
        boxes[group, k, lane], boxes[group, k + 1, lane] = np.inf, -np.inf
    boxes[group, weight, lane] = np.inf
    if index.heaviest.size:
        index.heaviest[node] = 0.0


@inlined_kernel
def _beside(node):
    """Which of the eight nodes of its group are beside a node, at the same level, as bits."""
    # Of the first eight nodes 1, 2 to 3 and 4 to 7 are levels of their own.
    level = 0b11111111 if node >= EIGHT else 0b11110000 if node >= 4 else 0b1100
    return level & ~(1 << node % EIGHT)
