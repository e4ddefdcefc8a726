"""What cells leave: the picture of docs/beyond-one-machine.md.

PYTHONPATH=tests python -m calibration.cells docs/cells.png
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from fastrbhc import distributed
from fastrbhc._engine.traversal import roots_after

N_ROWS = 20_000
COLOURS = ("#2a6f97", "#e09f3e", "#6a994e", "#9e2a2b", "#7b5ea7", "#4f9d9d", "#c06c84", "#7f7f7f")


def clusters_left(X, n_cells):
    """For each cell the rows of the clusters that it leaves."""
    tree = distributed.linkage(X, "ward", n_cells=n_cells, output="files")
    for stage in tree.stages[:n_cells]:
        rows = stage.read_leaves().firsts
        nodes = roots_after(stage.read_children(), stage.n_leaves, stage.n_merges)
        order = np.argsort(nodes, kind="stable")
        yield np.split(rows[order], np.flatnonzero(np.diff(nodes[order])) + 1)


def outlines(X, clusters):
    """The convex hulls of clusters of three rows or more."""
    for rows in clusters:
        try:
            yield X[rows[ConvexHull(X[rows]).vertices]]
        except (QhullError, ValueError):  # fewer rows, or all on a line
            continue


def draw(X, path):
    """Clusters left by eight cells, and by two."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.0), layout="constrained")
    for ax, n_cells in zip(axes, (8, 2), strict=True):
        count = 0
        for clusters, colour in zip(clusters_left(X, n_cells), COLOURS, strict=False):
            hulls = list(outlines(X, clusters))
            ax.add_collection(
                PolyCollection(hulls, facecolor=colour, edgecolor="white", lw=0.3, alpha=0.9)
            )
            few = np.concatenate([rows for rows in clusters if rows.size < 3] or [np.empty(0, int)])
            ax.scatter(*X[few].T, s=0.5, color=colour, lw=0)
            count += len(clusters)
        ax.set_title(f"{n_cells} cells leave {count:,} of {len(X):,}", loc="left", fontsize=10)
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="where the picture is written")
    draw(np.random.default_rng(0).random((N_ROWS, 2)), parser.parse_args().path)


if __name__ == "__main__":
    main()
