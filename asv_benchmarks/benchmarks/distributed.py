"""Trees cell by cell, from a file: time over that of the tree in memory, peak memory, labels."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np

import fastrbhc

from .common import Few
from .datasets import uniform
from .memory import grown
from .timing import compare, warm_up

SIZES = [100_000, 1_000_000]
N_CELLS = 8


class FromFile(Few):
    """Ward's method in the plane, rows in an .npy file, 8 cells one after another."""

    params = (SIZES,)
    param_names = ("n",)

    def setup(self, n):
        """Compile, so that only the work is timed."""
        self.path = _written(n)

    def time_tree(self, n):
        """All n − 1 merges, which stay in files."""
        in_cells(self.path)

    def peakmem_tree(self, n):
        """Resident memory at its peak, with the interpreter and the libraries in it."""
        in_cells(self.path)

    def track_each_row(self, n):
        """What the tree takes at its peak over what was there before, a row; Linux only."""
        return grown(lambda: in_cells(self.path)) / n

    track_each_row.unit = "bytes / row"

    def track_over_memory(self, n):
        """The same rows by `linkage`, which has them in memory."""
        X = np.load(self.path)
        return compare(lambda: in_cells(self.path), lambda: fastrbhc.linkage(X, "ward")).ratio

    track_over_memory.unit = "time in cells / in memory"

    def track_left(self, n):
        """The clusters that the cells leave to be merged in one place."""
        return sum(stage.n_left for stage in in_cells(self.path).stages[:N_CELLS]) / n

    track_left.unit = "share of rows"


class Labels(Few):
    """Labels of all rows of such a tree, written to files."""

    params = (SIZES, [10, 10_000])
    param_names = ("n", "n_clusters")

    def setup(self, n, n_clusters):
        """The tree, once."""
        self.tree = _tree(n)

    def time_cut(self, n, n_clusters):
        """A number of clusters."""
        self.tree.cut(n_clusters=n_clusters)

    def time_top(self, n, n_clusters):
        """The tree above them, without labels of rows."""
        self.tree.top(n_clusters)


def in_cells(path, n_cells=N_CELLS):
    """The tree of the rows of a file, in files."""
    return _module().linkage(path, "ward", n_cells=n_cells, output="files")


def _module():
    try:
        import pyarrow  # noqa: F401

        import fastrbhc.distributed
    except ImportError as error:
        raise NotImplementedError("trees in files need pyarrow") from error
    return fastrbhc.distributed


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()  # removed at the end of the process


@functools.cache
def _written(n):
    X = uniform(n, 2)
    warm_up(X, "ward")
    path = Path(_folder().name) / f"{n}.npy"
    np.save(path, X)
    few = path.with_name("few.npy")
    for size in (1_000, 50_000):  # with and without kernels for two columns
        np.save(few, X[:size])
        in_cells(few).cut(n_clusters=2)
    return path


@functools.cache
def _tree(n):
    return in_cells(_written(n))
