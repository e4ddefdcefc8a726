"""Merges of a tree made again, to compare some of them with all clusters of their time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.record import Clusters, side_by_side
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import compact_slots, lacks_room
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import Job, record
from fastrbhc._engine.threads import Threads


@record
class Replay:
    """The clusters at some time, and the two that are compared with all others."""

    geometry: Any
    clusters: Clusters
    nodes: NDArray[np.int64]  # (n,), the node in each slot
    slots: NDArray[np.int64]  # (nodes,), the slot of each node
    first: int  # the slots that merge next
    second: int
    height: float  # d of these two
    values: NDArray[np.float64]  # (n,), the smaller d of each slot to the two, or their height


def nearest_at(
    geometry: Any,
    points: Any,
    children: NDArray[np.int64],
    sample: NDArray[np.int64],
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """d of sampled merges, and the smallest d at that time between either part and any cluster.

    Merges are made in the order in which they are listed; the sample is in ascending order.
    """
    clusters = clusters_of_points(geometry, points, mirrored=False)
    n, d = clusters.n_slots, clusters.means.shape[0]
    slots = np.full(n + len(children), -1)
    slots[clusters.ranks[:n]] = np.arange(n)  # sparse points have another order
    clusters = side_by_side(clusters)
    task = Replay(
        geometry=geometry,
        clusters=clusters,
        nodes=np.empty(0, np.int64),
        slots=slots,
        first=0,
        second=0,
        height=0.0,
        values=np.empty(n),
    )
    heights, smallest = np.empty(sample.size), np.empty(sample.size)
    done = 0
    with Threads([new_scratch(geometry, d) for _ in range(n_threads)]) as threads:
        scratch = threads.scratches[0]
        compare = Job(_compare, task, scratch)
        for k, place in enumerate(sample):
            done = _merge_until(task, children, done, int(place), scratch)
            a, b = children[place]
            task.first, task.second = int(slots[a]), int(slots[b])
            heights[k] = _height(task, scratch)
            task.height = heights[k]
            threads.run(compare, n, 2e-8 * clusters.width)
            smallest[k] = task.values.min()
    return heights, smallest


def _merge_until(
    task: Replay, children: NDArray[np.int64], done: int, stop: int, scratch: Any
) -> int:
    """Make the merges up to one of them; the sparse entries of clusters are compacted as needed."""
    while done < stop:
        done = int(_merge_some(task, children, done, stop, scratch))
        if done < stop:
            alive = np.flatnonzero(~np.isnan(task.clusters.weights[: task.clusters.n_slots]))
            compact_slots(task.clusters.segments, alive)
    return done


@kernel
def _merge_some(task, children, first, stop, scratch):
    """Make merges from the first on, as long as there is room; the number of the next one."""
    clusters, slots = task.clusters, task.slots
    n = clusters.weights.size
    for place in range(first, stop):
        if lacks_room(clusters.segments):
            return place
        i, j = slots[children[place, 0]], slots[children[place, 1]]
        merge(task.geometry, clusters, i, j, scratch)
        slots[n + place] = i
    return stop


@kernel
def _height(task, scratch):
    return dissimilarity(task.geometry, task.clusters, task.first, task.second, np.inf, scratch)


@kernel
def _compare(task, start, stop, scratch):
    """Compare the two with a range of slots."""
    clusters, a, b = task.clusters, task.first, task.second
    for x in range(start, stop):
        task.values[x] = task.height
        if x != a and x != b and not np.isnan(clusters.weights[x]):
            best = task.height
            for side in range(2):
                own = a if side == 0 else b
                value = dissimilarity(task.geometry, clusters, own, x, best, scratch)
                if value < best:
                    best = value
            task.values[x] = best
