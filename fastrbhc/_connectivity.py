"""Checks of ``connectivity=``, made once, at the border: any way to give a graph becomes lists."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse

from fastrbhc._advice import frames_to_the_user
from fastrbhc._engine.agglomeration.adjacency import MOST_ENTRIES, MOST_NODES, Graph
from fastrbhc._grid import Grid, checked_grid
from fastrbhc._options import CheckedOptions

_WAYS = (
    "connectivity has to be a sparse matrix with a row and a column for every row of X, an array "
    "of edges with two columns, fastrbhc.grid(height, width), or a function of X that returns one "
    "of these"
)


class Connections(NamedTuple):
    """Which rows are adjacent, and whether pieces without an edge between them join at last."""

    graph: Graph
    connect: bool


def on_graph(
    options: CheckedOptions,
    connectivity: Any,
    connect: bool,
    X: Any,
    weights: NDArray[np.float64] | None,
    n: int,
) -> CheckedOptions:
    """The options together with the graph of n rows, if one is given."""
    if not isinstance(connect, bool | np.bool_):
        raise TypeError(f"connect has to be True or False, got {connect!r}")
    if connectivity is None:
        if connect:
            raise ValueError("connect=True joins the pieces of a graph: give connectivity=")
        return options
    check_options_on_graph(options)
    if weights is not None and not weights.all():
        raise ValueError(
            "sample_weight is 0 in some rows, and with connectivity= they would connect their "
            "neighbours without being part of anything. Leave them out of X and of the graph: "
            "A[kept][:, kept] of a sparse matrix, such as fastrbhc.grid(height, width).matrix()."
        )
    graph = check_connectivity(connectivity, X, n)
    return replace(options, connections=Connections(graph, bool(connect)))


def check_options_on_graph(options: CheckedOptions, *, chosen: bool = False) -> None:
    """Reject options that have no meaning together with a graph.

    ``chosen`` is whether the number of clusters is given, so that no threshold is looked for.
    """
    if options.algorithm not in ("auto", "greedy"):
        raise ValueError(
            f"algorithm={options.algorithm!r} merges nearest neighbours in any order, and with "
            "connectivity= the order matters for every family: use 'greedy'"
        )
    if options.neighbors != "auto":
        raise ValueError(
            f"neighbors={options.neighbors!r} says how to search among all clusters, and with "
            "connectivity= the neighbours are those of the graph: leave it out"
        )
    if options.audit is not False:
        raise ValueError(
            "audit= counts triples in which the order of merges matters. With connectivity= it "
            "matters for every family, and the tree is the greedy one: leave it out"
        )
    if options.choice == "predictive" and not chosen:
        raise ValueError(
            "threshold='predictive' clusters samples of the rows, and samples have no graph. With "
            "connectivity= give n_clusters, a number for threshold, 'gap', 'evidence' or 'kmeans'."
        )


def check_connectivity(connectivity: Any, X: Any, n: int) -> Graph:
    """The graph for n rows; a function is called with the rows as they were given."""
    if callable(connectivity):
        connectivity = connectivity(X)
    if n > MOST_NODES:
        raise ValueError(f"connectivity= is for up to {MOST_NODES:,} rows, and X has {n:,}")
    if isinstance(connectivity, Grid) or _names_grid(connectivity):
        return _of_grid(connectivity, n)
    if isinstance(connectivity, str):
        raise ValueError(
            f"{_WAYS}; got {connectivity!r}. The shape of a grid has to be given: "
            "connectivity=fastrbhc.grid(height, width)"
        )
    if issparse(connectivity):
        return _of_matrix(connectivity, n)
    try:
        given = np.asarray(connectivity)
    except ValueError:  # lists of different lengths
        given = np.empty(0, object)
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{_WAYS}; got {type(connectivity).__name__}")
    if given.size == 0 and given.shape != (n, n):
        given = np.empty((0, 2), np.int64)
    # Two rows: whole numbers of this shape are taken for two edges. Truth values and real numbers
    # can only be a matrix.
    if given.ndim == 2 and given.shape == (n, n) and (n != 2 or given.dtype.kind not in "iu"):
        return _of_matrix(coo_array(given), n)
    if given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(f"{_WAYS}; got an array of shape {given.shape} for the {n} rows of X")
    return _of_edges(given, n)


def _names_grid(given: Any) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) > 0
        and isinstance(given[0], str)
        and given[0] == "grid"
    )


def _of_grid(given: Any, n: int) -> Graph:
    grid = given if isinstance(given, Grid) else checked_grid(given[1:])
    if grid.n_places != n:
        shape = " × ".join(map(str, grid.shape))
        raise ValueError(
            f"the grid has {shape} = {grid.n_places:,} places and X has {n:,} rows: X has to be "
            "image.reshape(height * width, n_channels), with a row for every place"
        )
    return grid.graph()


def _of_edges(edges: NDArray[Any], n: int) -> Graph:
    """From pairs of rows; pairs given twice or the other way round are the same edge."""
    if edges.dtype.kind not in "iu":
        raise TypeError(
            f"an array of edges has to hold whole numbers, the rows that are adjacent, and this "
            f"one is of {edges.dtype}"
        )
    for wrong, what in ((edges < 0, "negative"), (edges >= n, f"not one of the {n:,} rows")):
        if wrong.any():
            place = int(np.flatnonzero(wrong.any(axis=1))[0])
            pair = edges[place].tolist()
            raise ValueError(
                f"edge {place} of connectivity is {pair}, and a row is {what}: rows of X are "
                f"numbered from 0 to {n - 1:,}"
            )
    first, second = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64)
    different = first != second
    first, second = first[different], second[different]
    _check_size(2 * first.size)
    both = np.concatenate([first, second]), np.concatenate([second, first])
    matrix = coo_array((np.ones(both[0].size, np.bool_), both), shape=(n, n)).tocsr()
    return _as_graph(matrix)


def _of_matrix(given: Any, n: int) -> Graph:
    """From a matrix: entries other than 0 are edges, whatever they are."""
    if given.ndim != 2 or given.shape != (n, n):
        shape = " × ".join(map(str, given.shape))
        raise ValueError(
            f"connectivity is a matrix of {shape}, and X has {n:,} rows: it needs a row and a "
            "column for each of them"
        )
    if given.dtype.kind not in "biuf":
        raise TypeError(f"connectivity has to hold numbers or truth values, got {given.dtype}")
    matrix = given.tocoo()
    rows, columns, values = matrix.row, matrix.col, matrix.data
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"connectivity is {values[place]} for rows {rows[place]} and {columns[place]}: rows "
            "are adjacent where it is a number other than 0. Leave out the entries of all others."
        )
    kept = (values != 0) & (rows != columns)
    _check_size(2 * int(np.count_nonzero(kept)))
    edges = coo_array(
        (np.ones(int(np.count_nonzero(kept)), np.bool_), (rows[kept], columns[kept])), shape=(n, n)
    ).tocsr()
    edges.sum_duplicates()  # entries are in order afterwards
    mirrored = edges.T.tocsr()
    mirrored.sum_duplicates()
    if edges.nnz != mirrored.nnz or (
        (edges.indptr != mirrored.indptr).any() or (edges.indices != mirrored.indices).any()
    ):
        both = (edges + mirrored).tocsr()
        warnings.warn(
            f"connectivity is not symmetric: {both.nnz - edges.nnz:,} of {both.nnz // 2:,} edges "
            "are given in one direction only. They count as edges; A + A.T says so without this "
            "warning, and A.multiply(A.T) keeps those given in both.",
            UserWarning,
            stacklevel=frames_to_the_user(),
        )
        edges = both
    return _as_graph(edges)


def _check_size(n_entries: int) -> None:
    if n_entries > MOST_ENTRIES:
        raise ValueError(
            f"connectivity has {n_entries // 2:,} edges: up to {MOST_ENTRIES // 2:,} are possible"
        )


def _as_graph(matrix: csr_array) -> Graph:
    matrix.sum_duplicates()
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))
