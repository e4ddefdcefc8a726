"""Memory that kernels may write to, one set per thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import python_contract
from fastrbhc._engine.records import record

# Slots whose bounds are computed together, so that they stay in the L1 cache. Scans took a fifth
# longer with 64 slots, and the same time with 1024.
BLOCK = 256

# Queries that scan a block together, while it is in the cache.
GROUP = 64


class ScratchShapes(NamedTuple):
    """Scratch memory of one thread; returned by ``scratch_shapes``."""

    matrix: tuple[int, int] = (0, 0)  # for one evaluation
    lanes: tuple[int, int] = (0, 0)  # for many at a time
    spread: tuple[int, int] = (0, 0)  # sparse clusters, spread out
    bits: tuple[int, int] = (0, 0)  # these four for `float32_screen`
    packed_block: tuple[int, int] = (0, 0)
    query_block: tuple[int, int] = (0, 0)
    chosen_block: tuple[int, int] = (0, 0)
    pair_sums: tuple[int, int] = (0, 0)  # bounds of blocks of columns


@python_contract
def scratch_shapes(geometry: Any, n_features: int) -> ScratchShapes:
    """Scratch memory that only this geometry needs; by default none."""
    return ScratchShapes()


@record
class Scratch:
    """Memory that one thread may write to."""

    # For exact values.
    matrix: NDArray[np.float64]
    direction: NDArray[np.float64]  # (d,)
    # For bounds of many slots; exact values of a leaf are returned in ``bounds`` too.
    bounds: NDArray[np.float64]  # (BLOCK,)
    other_bounds: NDArray[np.float64]  # (BLOCK,)
    shares: NDArray[np.float64]  # (2, BLOCK)
    sums: NDArray[np.float32]  # (BLOCK,)
    float32_shares: NDArray[np.float32]  # (3, BLOCK)
    lanes: NDArray[np.float64]
    spread: NDArray[np.float64]  # sparse clusters, spread out; zero between two queries
    slots: NDArray[np.int64]  # (BLOCK,), candidates
    # For scans by a group of queries.
    group: NDArray[np.int64]  # (GROUP,), their slots
    wanted: NDArray[np.int64]  # (2, 8), which queries a box may concern, as bits
    pairs: NDArray[np.int64]  # (GROUP·BLOCK,), pairs of a query and a slot
    pair_bounds: NDArray[np.float32]  # (GROUP·BLOCK,), lower bounds of their d
    chosen: NDArray[np.int64]  # (GROUP,), places of the queries that are wanted
    bits: NDArray[np.int64]  # for `float32_screen`, as are the next three
    packed_block: NDArray[np.float32]
    query_block: NDArray[np.float32]
    chosen_block: NDArray[np.float32]
    pair_sums: NDArray[np.float64]  # bounds of blocks of columns
    # For searches of a tree.
    nodes: NDArray[np.int64]  # (128,), the stack of nodes to visit
    node_bounds: NDArray[np.float64]  # (128,), their bounds
    hits: NDArray[np.int64]  # (…,), slots found by an audit; empty otherwise


def new_scratch(geometry: Any, n_features: int, most_hits: int = 0) -> Scratch:
    """Scratch memory for one thread."""
    shapes = scratch_shapes(geometry, n_features)
    return Scratch(
        matrix=np.empty(shapes.matrix),
        direction=np.empty(n_features),
        bounds=np.empty(BLOCK),
        other_bounds=np.empty(BLOCK),
        shares=np.empty((2, BLOCK)),
        sums=np.empty(BLOCK, np.float32),
        float32_shares=np.empty((3, BLOCK), np.float32),
        lanes=np.zeros(shapes.lanes),
        spread=np.zeros(shapes.spread),
        slots=np.empty(BLOCK, np.int64),
        group=np.empty(GROUP, np.int64),
        wanted=np.zeros((2, 8), np.int64),
        pairs=np.empty(GROUP * BLOCK, np.int64),
        pair_bounds=np.empty(GROUP * BLOCK, np.float32),
        chosen=np.empty(GROUP, np.int64),
        bits=np.empty(shapes.bits, np.int64),
        packed_block=np.zeros(shapes.packed_block, np.float32),
        query_block=np.zeros(shapes.query_block, np.float32),
        chosen_block=np.zeros(shapes.chosen_block, np.float32),
        pair_sums=np.empty(shapes.pair_sums),
        nodes=np.empty(128, np.int64),
        node_bounds=np.empty(128),
        hits=np.empty(most_hits, np.int64),
    )
