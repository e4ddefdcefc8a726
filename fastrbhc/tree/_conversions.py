"""Methods of a tree for other libraries and formats.

`Dendrogram` inherits them. What is not an array is made by `exports` and `json_format`, which are
imported when they are called.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.traversal import merged_sums


class Conversions:
    """Base class of `Dendrogram`, with its methods that begin with ``to_``."""

    def to_numpy(self: Any) -> NDArray[np.float64]:
        """The merges as one array: two nodes, height, weight.

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0]], "ward").to_numpy().tolist()
        [[0.0, 1.0, 0.25, 2.0]]
        """
        return np.column_stack([self.merges, self.heights, self.weights])

    def to_scipy(self: Any) -> NDArray[np.float64]:
        """A linkage matrix for ``scipy.cluster.hierarchy``, valid for every tree.

        SciPy requires one tree whose heights never decrease. If this tree has inversions, each
        merge is placed at its level, the largest height in its subtree; if it is a forest, its
        trees are joined at the threshold. A warning states the number of merges affected. The
        fourth column counts rows, without weights.

        Returns
        -------
        Z : ndarray of shape (n_leaves - 1, 4), float64

        Examples
        --------
        >>> import fastrbhc
        >>> from scipy.cluster.hierarchy import fcluster
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> fcluster(tree.to_scipy(), 2, "maxclust").tolist()
        [1, 1, 2, 2]
        """
        changes = []
        levels = self.levels
        raised = int(np.count_nonzero(levels > self.heights))
        if raised:
            changes.append(
                f"raised {raised} of {len(levels)} merges to the height of an earlier one "
                "(inversions; tree.heights has the raw values)"
            )
        merges = self.merges
        if self.n_trees > 1:
            changes.append(f"joined {self.n_trees} trees at the threshold {self.threshold:g}")
            merges = np.concatenate([merges, self._joins()])
            levels = np.append(levels, np.full(self.n_trees - 1, self.threshold))
        if changes:
            warnings.warn(f"to_scipy {' and '.join(changes)}", UserWarning, stacklevel=2)
        counts = merged_sums(merges, np.ones(self.n_leaves))
        return np.column_stack([merges, levels, counts])

    def to_pandas(self: Any) -> Any:
        """The merges as a DataFrame; `fastrbhc.exports.to_pandas` describes the columns.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
        >>> tree.to_pandas()["size"].tolist()
        [2, 3]
        """
        from fastrbhc.tree import exports

        return exports.to_pandas(self)

    def to_networkx(self: Any, names: Sequence[Any] | None = None) -> Any:
        """A directed graph from root to leaves; more in `fastrbhc.exports.to_networkx`.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows.

        Returns
        -------
        networkx.DiGraph

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
        >>> sorted(tree.to_networkx().successors(4))
        [2, 3]
        """
        from fastrbhc.tree import exports

        return exports.to_networkx(self, names)

    def to_newick(self: Any, names: Sequence[Any] | None = None) -> str:
        """The tree in the Newick format; more in `fastrbhc.exports.to_newick`.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows; by default their numbers.

        Returns
        -------
        str
            One tree per line.

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward").to_newick()
        '(2:6.75,(0:0.25,1:0.25):6.5);'
        """
        from fastrbhc.tree import exports

        return exports.to_newick(self, names)

    def to_json(self: Any, names: Sequence[Any] | None = None) -> str:
        """The tree as JSON; `fastrbhc.exports.to_json` describes the format.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows, to include in the output.

        Returns
        -------
        str

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0]], "ward").to_json()[:33]
        '{"format": "fastrbhc.dendrogram",'
        """
        from fastrbhc.tree import json_format

        return json_format.to_json(self, names)

    def to_html(self: Any, path: str | Path | None = None, **options: Any) -> str | None:
        """The tree as a page for browsers, to zoom, collapse and cut: one file, without network.

        Drag the dashed line to cut; the page says how many clusters that gives, numbered as
        ``tree.cut`` numbers them. Everything can be done with the keyboard as well.

        Parameters
        ----------
        path : str or Path, optional
            The file to write. It is written whole or not at all. Without it the page is returned.
        **options
            ``X``, the rows of the tree: then the page names the columns by which a node differs
            most from all other rows. Means of nodes are those of their parts, by weight.
            ``labels``, anything known of the rows, such as classes or batches: then it counts
            them. ``names`` of the rows. ``threshold`` or ``n_clusters``, the cut at first.
            ``max_leaves``, by default 2,000 and at most 20,000: of larger trees the highest merges
            are shown, with the sizes of what is below them. ``title``. ``scale`` of the heights,
            "sqrt", "linear" or "log". ``feature_names`` and ``family`` as in `summary`.

        Returns
        -------
        str or None
            The page, if there is no path.

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[0.0], [1.0], [5.0], [7.0]]
        >>> tree = fastrbhc.linkage(X, "ward")
        >>> page = tree.to_html(X=X, names=["ant", "bee", "cat", "dog"], title="Animals")
        >>> page.splitlines()[0], "<title>Animals</title>" in page
        ('<!DOCTYPE html>', True)
        """
        from fastrbhc.plotting.interactive import to_html

        return to_html(self, path, **options)

    def _joins(self: Any) -> NDArray[np.int64]:
        """Merges that would join the trees of the forest, root after root."""
        n, m = self.n_leaves, len(self.merges)
        is_root = np.ones(n + m, bool)
        is_root[self.merges] = False
        roots = np.flatnonzero(is_root)
        joins = np.empty((roots.size - 1, 2), np.int64)
        joins[:, 0] = roots[1:]
        joins[0, 1] = roots[0]
        joins[1:, 1] = n + m + np.arange(roots.size - 2)
        return np.sort(joins, axis=1)
