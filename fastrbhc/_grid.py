"""Grids: pixels of images, voxels of volumes, hours of years, as graphs of neighbours."""

from __future__ import annotations

import itertools
import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fastrbhc._engine.agglomeration.adjacency import MOST_ENTRIES, Graph


class Grid(NamedTuple):
    """The places of a grid, each adjacent to the next one along every axis; see `grid`.

    Attributes
    ----------
    shape : tuple of int
        Number of places along each axis. Rows of X are in the order of ``X.reshape(-1, d)``, the
        last axis first.
    diagonals : bool
        Whether places that touch at a corner are adjacent too.
    """

    shape: tuple[int, ...]
    diagonals: bool = False

    @property
    def n_places(self) -> int:
        """The number of places, and of rows."""
        return math.prod(self.shape)

    def matrix(self) -> csr_array:
        """The graph as a sparse matrix, to take some places out of it.

        Returns
        -------
        csr_array of shape (n, n)
            True where two places are adjacent.

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> land = np.array([[True, True, False], [True, False, True]]).ravel()
        >>> graph = fastrbhc.grid(2, 3).matrix()[land][:, land]
        >>> graph.shape, graph.nnz // 2
        ((4, 4), 2)
        """
        graph = self.graph()
        ones = np.ones(graph.neighbors.size, np.bool_)
        return csr_array((ones, graph.neighbors, graph.starts), shape=(graph.n_nodes,) * 2)

    def graph(self) -> Graph:
        """The same as lists of neighbours."""
        steps = self._steps()
        if self.n_places * len(steps) > MOST_ENTRIES:
            raise ValueError(f"a grid of {self.n_places:,} places is too large: see connectivity")
        places = np.arange(self.n_places, dtype=np.int32).reshape(self.shape)
        neighbors = np.full((*self.shape, len(steps)), -1, np.int32)
        for k, step in enumerate(steps):
            moves = list(zip(step, self.shape, strict=True))
            here = tuple(slice(max(0, -s), min(m, m - s)) for s, m in moves)
            there = tuple(slice(max(0, s), min(m, m + s)) for s, m in moves)
            neighbors[..., k][here] = places[there]
        entries: NDArray[np.int32] = neighbors.reshape(self.n_places, -1)
        there_is_one = entries >= 0
        starts = np.zeros(self.n_places + 1, np.int64)
        np.cumsum(np.count_nonzero(there_is_one, axis=1), out=starts[1:])
        return Graph(starts, entries[there_is_one])

    def _steps(self) -> list[tuple[int, ...]]:
        """The steps from a place to its neighbours, in the order of their numbers."""
        every = itertools.product((-1, 0, 1), repeat=len(self.shape))
        most = len(self.shape) if self.diagonals else 1
        return [step for step in every if 0 < sum(map(abs, step)) <= most]


def grid(*shape: int, diagonals: bool = False) -> Grid:
    """The graph of a grid, for ``connectivity=``: each pixel is adjacent to those beside it.

    Parameters
    ----------
    *shape : int
        Numbers of places along the axes: height and width of an image, three numbers for a volume,
        one for a series in time. The rows of X are the places in the order of
        ``image.reshape(-1, n_channels)``.
    diagonals : bool, default=False
        Whether places that touch at a corner are adjacent too: eight neighbours of a pixel instead
        of four.

    Returns
    -------
    Grid
        To be passed as ``connectivity=`` to `linkage` or `RBHC`. Its method ``matrix()`` is the
        graph as a sparse matrix, of which places can be left out.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> image = np.array([[[9.0], [8.0], [1.0]], [[9.0], [2.0], [9.0]]])
    >>> tree = fastrbhc.linkage(image.reshape(-1, 1), "ward", connectivity=fastrbhc.grid(2, 3))
    >>> tree.cut(n_clusters=3).reshape(2, 3)
    array([[0, 0, 2],
           [0, 1, 1]])
    """
    return checked_grid(shape, diagonals)


def checked_grid(shape: Any, diagonals: Any = False) -> Grid:
    """A grid of positive numbers of places along at least one axis."""
    lengths = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    for length in lengths:
        if isinstance(length, bool | np.bool_) or not isinstance(length, numbers.Integral):
            raise TypeError(f"the shape of a grid has to be whole numbers, got {length!r}")
        if int(length) < 1:
            raise ValueError(f"a grid needs at least 1 place along every axis, got {length}")
    if not lengths:
        raise ValueError("a grid needs a shape, such as grid(1600, 2560) for an image")
    if not isinstance(diagonals, bool | np.bool_):
        raise TypeError(f"diagonals has to be True or False, got {diagonals!r}")
    return Grid(tuple(int(length) for length in lengths), bool(diagonals))
