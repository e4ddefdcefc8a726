"""Draws the pictures of the gallery: `make gallery`. Look at them before you commit them."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("agg")

from fastrbhc import linkage
from fastrbhc.datasets import load_digit_counts

HERE = Path(__file__).parent


def save(figure, name):
    """Write a picture, the same bytes whenever it is drawn."""
    figure.savefig(HERE / f"gallery-{name}.png", dpi=90, metadata={"Software": None})


def main():
    """All of them."""
    X, y = load_digit_counts()
    tree = linkage(X, "poisson")
    save(tree.plot(n_clusters=10).figure, "tree")
    save(tree.plot(n_clusters=10, orientation="left", max_leaves=30).figure, "sideways")
    save(tree.plot_heights(n_clusters=10).figure, "heights")
    save(tree.plot_clusters(X, n_clusters=10).figure, "clusters")
    pixels = [f"({k // 8}, {k % 8})" for k in range(64)]
    inked = X.sum(axis=0) > 0
    own = linkage(X[:, inked], "poisson")
    names = np.array(pixels)[inked].tolist()
    found = own.plot_clustermap(X[:, inked], n_clusters=10, feature_names=names, max_columns=40)
    save(found.figure, "clustermap")
    tree.to_html(
        HERE / "_static" / "digits.html",
        X=X,
        labels=y,
        n_clusters=10,
        max_leaves=400,
        feature_names=[f"pixel {name}" for name in pixels],
        title="1,500 handwritten digits",
    )


if __name__ == "__main__":
    main()
