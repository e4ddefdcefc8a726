"""Near neighbours of many wide rows: pynndescent for many, a comparison of all pairs for few."""

from __future__ import annotations

import importlib.util
import threading
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from threadpoolctl import threadpool_limits

from fastrbhc._cores import numba_threads
from fastrbhc._optional import require

# Up to so many pairs times columns, all are compared. pynndescent compiles for 20 to 40 s in
# every process, and 20,000 rows with 50 columns are compared in about one.
MOST_COMPARED = 100_000_000_000
# Choosing the nearest of all costs as much as so many columns.
_LEAST_COLUMNS = 50
_SEED = 0
# About so many rows are in no particular order.
_TOGETHER = 64
_PURPOSE = "neighbors='approximate'"
# One of Numba's threading layers ends the process if two threads run its parallel kernels.
_ONE_AT_A_TIME = threading.Lock()


def require_near_rows() -> None:
    """Raise an error that says what to install, if pynndescent is not there; quick if it is."""
    if importlib.util.find_spec("pynndescent") is None:
        require("pynndescent", _PURPOSE)


def order_by_place(places: Any) -> NDArray[np.intp] | None:
    """An order in which rows that are near tend to be near in memory; None if it does not matter.

    Halves of halves, each along a random direction. The search for neighbours took 3.4 s instead of
    4.4 s, and the merges 3.6 s instead of 4.2 s (200,000 × 50, one thread), for 0.2 s of sorting.
    """
    n, n_columns = places.shape
    if issparse(places) or _compares_all(places):
        return None
    levels = max(1, (n // _TOGETHER).bit_length())
    directions = np.random.default_rng(_SEED).normal(size=(n_columns, levels))
    along = (places @ directions.astype(np.float32)).T.astype(np.float64)
    half, order = np.zeros(n, np.int64), np.arange(n)
    for level, position in enumerate(along):
        # By half, and within each along the direction: the fraction of a number, so below 1.
        position -= position.min()
        order = np.argsort(half + position / (1.001 * position.max() or 1.0), kind="stable")
        half[order] = np.arange(n) * 2 ** (level + 1) // n
    return order


def _compares_all(places: Any) -> bool:
    """Whether all pairs of rows are compared, instead of calling pynndescent."""
    n, n_columns = places.shape
    width = places.nnz // max(n, 1) if issparse(places) else n_columns
    return bool(n * n * max(width, _LEAST_COLUMNS) <= MOST_COMPARED)


def near_rows(places: Any, k: int, n_threads: int) -> NDArray[np.int32]:
    """The k nearest rows of each row, or nearly so (n, k); −1 where fewer were found.

    Distances are Euclidean. The seed is fixed. What pynndescent finds depends on the number of
    threads.
    """
    k = min(k, places.shape[0] - 1)
    if _compares_all(places):
        from sklearn.neighbors import NearestNeighbors  # takes a while, and few need it

        with threadpool_limits(n_threads):
            found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(places)
            return found.kneighbors(return_distance=False).astype(np.int32)
    return _descend(places, k, n_threads)


def _descend(places: Any, k: int, n_threads: int) -> NDArray[np.int32]:
    descent: Any = require("pynndescent", _PURPOSE).NNDescent
    threads = min(n_threads, numba_threads())
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows for which it finds too few
        index = descent(places, n_neighbors=k + 1, random_state=_SEED, n_jobs=threads)
        found, _ = index.neighbor_graph
    own = found == np.arange(len(found))[:, None]
    # A row is its own nearest neighbour, unless others are at the same place.
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(len(found), k), np.int32)
