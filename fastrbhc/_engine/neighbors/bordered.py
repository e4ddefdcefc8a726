"""Nearest neighbours within a cell of space, as long as none outside can be nearer.

Rows are divided among cells, and each cell is merged by itself. A cluster of this cell has the mean
of rows of this cell, and a cluster of another cell one inside the box of that cell's rows, because
boxes are convex. So d to the box of another cell, with the smallest weight of a row there, is a
lower bound of d to all clusters that ever form there. A neighbour inside counts only if it is
nearer than all these bounds. A cluster without such a neighbour is left alone, and stays so: its
bounds do not change, and if d is reducible its neighbours do not come nearer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.geometry.contract import box_bounds, box_rows
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    NONE_LOWERED,
    Lowered,
    hint_of,
    nearest,
    touch,
)
from fastrbhc._engine.neighbors.kd_tree import box_layout, widened
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import LANES, lowest_set_bit
from fastrbhc._engine.threads import Threads


@record
class Bordered:
    """An index of the clusters in a cell, and boxes around the rows of all other cells."""

    inside: Any
    outside: NDArray[np.float64]  # (groups, rows of a box, LANES), as in a kd-tree
    rebuild_below: float
    n_parts: int
    one_sided: bool
    unions_in_new_slots: bool = False
    lowered: Lowered = NONE_LOWERED

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots: NDArray[np.int64] = self.inside.rebuild(clusters, threads)
        return slots

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        bound = _outside(index.outside, geometry, clusters, i, cutoff, scratch)
        value, slot = nearest(index.inside, geometry, clusters, i, hint, bound, scratch)
        return value if slot >= 0 else cutoff, slot

    def find(index, geometry, clusters, queries, first, last, scratch):
        values, slots, cutoff = queries.values, queries.neighbors, queries.cutoff
        for q in range(first, last):
            i = np.int64(queries.queue[q])
            hint = hint_of(np.int64(slots[i]))
            values[i], slots[i] = nearest(index, geometry, clusters, i, hint, cutoff, scratch)

    def touch(index, i, j):
        touch(index.inside, i, j)


def without_border(inside: Any, geometry: Any, n_features: int) -> Bordered:
    """An index of all clusters, of the same type as those of cells."""
    return bordered(inside, np.empty((0, box_rows(geometry, n_features), LANES)))


def bordered(inside: Any, outside: NDArray[np.float64]) -> Bordered:
    """An index whose neighbours are nearer than anything in the boxes outside."""
    one_sided = outside.shape[0] > 0
    return Bordered(inside, outside, inside.rebuild_below, inside.n_parts, one_sided)


def boxes_around(
    geometry: Any,
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    lightest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Boxes of cells as `Bordered` has them, from ranges of columns and smallest weights.

    Parameters
    ----------
    geometry : record
        Without features of boxes.
    lowest, highest : ndarray of shape (cells, d)
        Ranges of the means in each cell.
    lightest : ndarray of shape (cells,)
        The smallest weight; infinite for an empty cell.
    """
    count, d = lowest.shape
    layout = box_layout(geometry, d)
    boxes = np.full((-(-count // LANES), box_rows(geometry, d), LANES), np.inf)
    group, lane = np.divmod(np.arange(count), LANES)
    taken = np.isfinite(lightest)
    group, lane = group[taken], lane[taken]
    low, high = widened(lowest[taken], highest[taken])
    for k, row in enumerate(layout.columns):
        boxes[group, row, lane], boxes[group, row + 1, lane] = low[:, k], high[:, k]
    for row in layout.weights:
        boxes[group, row, lane] = lightest[taken]
    return boxes


@kernel
def _outside(boxes, geometry, clusters, i, cutoff, scratch):
    """A lower bound of d from slot i to all clusters outside, or the cutoff if that is smaller."""
    for group in range(boxes.shape[0]):
        near = box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch)
        while near:
            s = lowest_set_bit(near)
            near &= near - 1
            cutoff = min(cutoff, scratch.bounds[s])
    return cutoff
