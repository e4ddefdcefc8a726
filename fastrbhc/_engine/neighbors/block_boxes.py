"""Boxes around runs of slots, and around eight runs each, for `blocks`.

A merge widens the boxes around its union, and rounds of many merges fit them again. A cluster that
has been merged may leave a box wider than it need be.
"""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.kd_tree import WIDENED
from fastrbhc._engine.simd import LANES

# Slots of a run.
RUN = 64


@kernel
def fit_run(index, clusters, run):
    """Fit the box of a run to its clusters."""
    boxes, group, lane = index.boxes, run // LANES, run % LANES
    start, stop = run * RUN, min((run + 1) * RUN, clusters.n_slots)
    for k in range(index.columns.size):
        low, high = np.inf, -np.inf
        for s in range(start, stop):
            mean = np.float64(index.coordinates[k, s])
            low = mean if mean < low else low
            high = mean if mean > high else high
        if low <= high:
            low, high = low - WIDENED * abs(low), high + WIDENED * abs(high)
        boxes[group, index.columns[k], lane] = low
        boxes[group, index.columns[k] + 1, lane] = high
    lightest, eldest = np.inf, 2**31 - 1
    for s in range(start, stop):
        if clusters.weights[s] <= lightest:
            lightest = clusters.weights[s]
        if clusters.weights[s] > 0.0 and index.ages[s] < eldest:
            eldest = np.int64(index.ages[s])
    for k in range(index.weights.size):
        boxes[group, index.weights[k], lane] = lightest
    index.eldest[run] = eldest
    for e in range(index.features.size):
        low, high = np.inf, -np.inf
        for s in range(start, stop):
            if not np.isnan(clusters.weights[s]):
                value = clusters.cached[s, index.features[e]]
                low, high = min(low, value), max(high, value)
        boxes[group, index.feature_rows[e], lane] = low
        boxes[group, index.feature_rows[e] + 1, lane] = high


@kernel
def fit_wide_box(index, group):
    """Fit the box around eight runs to their boxes."""
    for k in range(index.columns.size):
        _fit_interval(index, group, index.columns[k])
    for e in range(index.features.size):
        _fit_interval(index, group, index.feature_rows[e])
    lightest = np.inf
    for lane in range(LANES):
        lightest = min(lightest, index.boxes[group, index.weights[0], lane])
    for k in range(index.weights.size):
        index.wide_boxes[group // LANES, index.weights[k], group % LANES] = lightest


@kernel
def _fit_interval(index, group, row):
    low, high = np.inf, -np.inf
    for lane in range(LANES):
        low = min(low, index.boxes[group, row, lane])
        high = max(high, index.boxes[group, row + 1, lane])
    index.wide_boxes[group // LANES, row, group % LANES] = low
    index.wide_boxes[group // LANES, row + 1, group % LANES] = high


@kernel
def include(index, clusters, i):
    """Widen the boxes around slot i, if there is a cluster in it, to contain the cluster."""
    if np.isnan(clusters.weights[i]):
        return
    run = i // RUN
    _widen(index, clusters, i, index.boxes, run)
    _widen(index, clusters, i, index.wide_boxes, run // LANES)


@kernel
def _widen(index, clusters, i, boxes, place):
    group, lane = place // LANES, place % LANES
    for k in range(index.columns.size):
        row, mean = index.columns[k], np.float64(index.coordinates[k, i])
        boxes[group, row, lane] = min(boxes[group, row, lane], mean - WIDENED * abs(mean))
        boxes[group, row + 1, lane] = max(boxes[group, row + 1, lane], mean + WIDENED * abs(mean))
    for k in range(index.weights.size):
        row = index.weights[k]
        boxes[group, row, lane] = min(boxes[group, row, lane], clusters.weights[i])
    for e in range(index.features.size):
        row, value = index.feature_rows[e], clusters.cached[i, index.features[e]]
        boxes[group, row, lane] = min(boxes[group, row, lane], value)
        boxes[group, row + 1, lane] = max(boxes[group, row + 1, lane], value)
