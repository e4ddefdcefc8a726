"""The rows of `bench_peers` for trees of which only adjacent clusters merge: pixels of an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.datasets import image
from benchmarks.timing import compare
from numpy.typing import NDArray
from rows import Row
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.cluster import ward_tree
from sklearn.feature_extraction.image import grid_to_graph

import fastrbhc

Size = Callable[[int], int]
# Height and width of the photo among the real data.
_PHOTO = (1600, 2560)


def against_ward_tree(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """How many times as long scikit-learn's tree of the same pixels takes."""
    side = size(512)
    pixels, graph = image(side), grid_to_graph(side, side)
    _tree(image(64), (64, 64))
    found = compare(
        lambda: _tree(pixels, (side, side)),
        lambda: ward_tree(pixels, connectivity=graph),
        patience=60.0,
    )
    times = 1.0 / found.ratio
    work = f"{side} × {side} pixels × 3, Ward, adjacent pixels only, whole tree"
    row = of_ratio(work, "scikit-learn's ward_tree ÷ time", found, "≥ 15")
    yield row._replace(reached=f"{times:.3g}", value=times)


def against_spanning_tree(
    photo: Callable[[int], NDArray[np.float64]], size: Size, of_ratio: Callable[..., Row]
) -> Iterator[Row]:
    """All pixels of a photo, against a minimum spanning tree of the same graph."""
    height, width = size(_PHOTO[0]), _PHOTO[1]
    pixels = photo(height * width)
    graph = _with_distances(pixels, (height, width))
    _tree(image(64), (64, 64))
    found = compare(lambda: _tree(pixels, (height, width)), lambda: minimum_spanning_tree(graph))
    work = f"{height} × {width} pixels of a photo, Ward, adjacent pixels only, whole tree"
    yield of_ratio(work, "time ÷ scipy.sparse.csgraph.minimum_spanning_tree", found, "≤ 40")


def growth_with_pixels(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """Sixteen times as many pixels."""
    few, many = size(256), size(1024)
    small, large = image(few), image(many)
    _tree(small, (few, few))
    found = compare(lambda: _tree(large, (many, many)), lambda: _tree(small, (few, few)))
    work = f"{few} × {few} to {many} × {many} pixels × 3, Ward, adjacent pixels only"
    yield of_ratio(work, "growth of the time", found, "≤ 20")


def _tree(pixels: NDArray[np.float64], shape: tuple[int, int]) -> Any:
    return fastrbhc.linkage(pixels, "ward", connectivity=fastrbhc.grid(*shape))


def _with_distances(pixels: NDArray[np.float64], shape: tuple[int, int]) -> csr_array:
    """The graph of a grid, each edge once, with the distance between its pixels."""
    graph = grid_to_graph(*shape).tocoo()
    once = graph.row < graph.col
    row, column = graph.row[once], graph.col[once]
    # No distance is 0, which would be no edge.
    distances = np.linalg.norm(pixels[row] - pixels[column], axis=1) + 1e-9
    return csr_array((distances, (row, column)), shape=graph.shape)
