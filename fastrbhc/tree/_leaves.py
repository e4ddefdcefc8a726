"""Methods of a tree for its rows: their order, and the heights at which they are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.ancestors import joining_merges
from fastrbhc._engine.traversal import leaf_spans
from fastrbhc._validation import check_pairs

if TYPE_CHECKING:
    from fastrbhc.families import Family


class Leaves:
    """Base class of `Dendrogram`, with its methods for rows."""

    def leaves_order(
        self: Any,
        optimal: bool = False,
        X: ArrayLike | None = None,
        *,
        max_nodes: int = 1_000,
        family: str | Family | None = None,
    ) -> NDArray[np.int64]:
        """The order of the rows below a drawing of the tree, from left to right.

        The rows of every node are adjacent; the part of a merge with the smaller number is on
        the left, as in SciPy's ``leaves_list``. The trees of a forest are in the order of their
        first rows.

        Parameters
        ----------
        optimal : bool, default=False
            Turn the highest merges around so that neighbours are similar, as SciPy's
            ``optimal_leaf_ordering``. This needs X, as the tree does not know how far its rows are
            from one another.
        X : array-like of shape (n_leaves, d), optional
            The rows of the tree. Large sparse matrices stay sparse.
        max_nodes : int, default=1000
            The tree is seen down to this many nodes, at most 5,000; the rows of each of them stay
            in their order. Time grows as the cube of this number, and memory as its square.
        family : str or record, optional
            Another family of the distances than that of the tree.

        Returns
        -------
        ndarray of shape (n_leaves,), int64

        Notes
        -----
        Of all orders of the nodes it is the one with the smallest sum of distances between
        neighbours (Bar-Joseph, Gifford & Jaakkola 2001). The distance is d of the family, for
        nodes of weight 1 each, φ(s) + φ(t) − 2φ((s + t)/2): by d as it is, whose values grow with
        weights, light nodes would be near to everything. For Ward's method that is a quarter of the
        squared distance of the means, so the order need not be that of SciPy, which is given
        distances. Each tree of a forest is ordered by itself.

        References
        ----------
        Bar-Joseph, Gifford & Jaakkola (2001): Fast optimal leaf ordering for hierarchical
        clustering. Bioinformatics 17, S22–S29.

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[0.0], [5.0], [1.0], [7.0]]
        >>> tree = fastrbhc.linkage(X, "ward")
        >>> tree.leaves_order().tolist()
        [0, 2, 1, 3]
        >>> X = [[1.0], [0.0], [5.0], [7.0]]
        >>> fastrbhc.linkage(X, "ward").leaves_order(optimal=True, X=X).tolist()
        [1, 0, 2, 3]
        """
        if optimal:
            from fastrbhc.tree.leaf_order import optimal_order

            if X is None:
                raise ValueError(
                    "leaves_order(optimal=True) needs X, the rows of the tree: without them "
                    "nothing says which neighbours are similar"
                )
            return optimal_order(self, X, max_nodes=max_nodes, family=family)
        if X is not None:
            raise ValueError("X is for leaves_order(optimal=True); the order of merges needs no X")
        starts, _ = leaf_spans(self.merges, self.n_leaves)
        order = np.empty(self.n_leaves, np.int64)
        order[starts[: self.n_leaves]] = np.arange(self.n_leaves)
        return order

    def cophenetic(
        self: Any, pairs: ArrayLike, *, raw_heights: bool = False
    ) -> NDArray[np.float64]:
        """The heights at which pairs of rows are joined.

        Parameters
        ----------
        pairs : array-like of int, shape (m, 2)
            The rows of each pair, from 0. The last of any number of dimensions holds the two rows.
        raw_heights : bool, default=False
            By default the height is a level, the largest height in the subtree of the merge, by
            which trees are cut: the two rows are in one cluster for exactly the λ above it. With
            True it is the height of the merge itself, which is lower if there are inversions.

        Returns
        -------
        ndarray of shape (m,), float64
            The height of the first merge with both rows. Infinite for rows of different trees of a
            forest. For a row with itself it is that of the leaves: 0, or the lowest merge if that
            is negative.

        Notes
        -----
        Takes O(n + m log n) time and O(n + m) memory. SciPy's ``cophenet`` has the same values, of
        all n(n − 1)/2 pairs.

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.cophenetic([[0, 1], [0, 3], [2, 3], [2, 2]]).tolist()
        [0.25, 15.125, 1.0, 0.0]
        """
        given = check_pairs(pairs, self.n_leaves)
        found = joining_merges(self.merges, self.n_leaves, given.reshape(-1, 2))
        values = self.heights if raw_heights else self.levels
        leaves = min(0.0, float(self.levels[0])) if values.size else 0.0
        # The merge with the number m stands for none, and −1, the last one, for the leaves.
        joined: NDArray[np.float64] = np.concatenate([values, [np.inf, leaves]])[found]
        return joined.reshape(given.shape[:-1])
