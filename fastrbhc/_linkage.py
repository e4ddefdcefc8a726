"""From rows to a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from fastrbhc._advice import warn_of_misfits
from fastrbhc._choosing import Guess, grow
from fastrbhc._connectivity import on_graph
from fastrbhc._options import LinkageOptions, layout_for
from fastrbhc._progress import compiling_shown
from fastrbhc._row_validation import check_rows, names_of_columns
from fastrbhc._table import placed
from fastrbhc._validation import check_weights
from fastrbhc.families._interface import FamilyLike
from fastrbhc.suggesting.automatic import resolve
from fastrbhc.tree.dendrogram import Dendrogram, forest_at
from fastrbhc.tree.origin import Chosen, remembering


def linkage(
    X: ArrayLike,
    family: FamilyLike | dict[Any, Any] = "auto",
    *,
    algorithm: str = "auto",
    neighbors: str = "auto",
    threshold: float | str | None = None,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    audit: bool | str = False,
    missing: str = "error",
    connectivity: Any = None,
    connect: bool = False,
) -> Dendrogram:
    """Relaxed Bayesian hierarchical clustering of the rows of X.

    Clusters are merged by the dissimilarity of their family,

        d(a, b) = n_a φ(t_a) + n_b φ(t_b) − (n_a + n_b) φ(t_ab),

    where n is the weight of a cluster, t its mean statistic and φ the convex conjugate of the
    family's log-partition function (Lee & Choi 2015, section 3.1).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of counts or measurements: an array of any layout, a data frame, or, for families of
        counts, a sparse matrix, which stays sparse if it is large and most of its values are zero.
    family : str, record or dict, default="auto"
        A record from `fastrbhc.families`, or its name: "spherical_gaussian" (or "ward"),
        "gaussian", "diagonal_gaussian", "von_mises_fisher" (or "cosine"), "poisson",
        "multinomial", "bernoulli", "exponential" and more: see the guide. "auto" is for
        measurements a Gaussian with full covariance whose smoothing is derived from the rows,
        ``Gaussian(smoothing="auto")``. If all values are counts, or zeros and ones, or a data
        frame has columns of text, it is what `suggest_family` says, and a warning names it.
        Columns of different kinds have a dict from families to columns,
        ``{"poisson": ["visits"], "gaussian": ["age", "income"]}``: see
        `fastrbhc.families.Product`.
    algorithm : {"auto", "greedy", "levels", "nn_chain"}, default="auto"
        "greedy" merges the nearest pair of all at every step, and is exact for every family.
        "levels" merges many pairs of reciprocal nearest neighbours at a time, on all threads. It
        is for reducible families, and its tree is the greedy one. "nn_chain" merges one such pair
        after another; if the family is not reducible, its tree can differ from the greedy one.
        "auto" is "levels" if the family is reducible, and "greedy" otherwise.
    neighbors : {"auto", "brute", "kd_tree", "inverted", "approximate"}, default="auto"
        How nearest clusters are found: "brute" scans all of them, or all blocks of near ones that
        their boxes do not rule out, "kd_tree" searches only small boxes that may contain a nearer
        one. The tree is the same, to the bit. "auto" chooses the kd-tree
        for few columns. Memory is O(n) with either, and both make sparse rows dense. "inverted"
        is for counts that are mostly zero. It makes rows sparse, and adds up what a cluster shares
        with all others column by column; heights agree with those of dense rows to about 13
        digits. "auto" chooses it for large sparse matrices with many columns.

        "approximate" builds another tree, for rows that are too wide and too many to scan: near
        neighbours merge first, found by pynndescent (``pip install "fastrbhc[approximate]"``), and
        some thousand clusters that are left merge exactly. Every height is the exact d of what was
        merged, but a nearer pair may have been missed: ``tree.approximate`` is True, and
        `Dendrogram.approximation` says how good the tree is. Not together with ``audit``, another
        ``algorithm``, ``missing`` or ``connectivity``; with λ the whole tree is built and cut. From
        about 45,000 rows of 50 columns on, the tree depends on ``n_jobs``, as what pynndescent
        finds does; the seed is fixed. See the page ``docs/wide-rows.md``.
    threshold : float or {"predictive", "gap", "evidence", "kmeans"}, optional
        λ: a pair is merged only if d < λ, and the result is a forest. By default the whole tree is
        built, which can be cut at any λ afterwards; a greedy tree cut at λ gives that forest. In a
        chain, a cluster without a neighbour below λ is finished, even if a later union is nearer
        to it. A name says how to choose λ, which is then the ``threshold`` of the tree. "kmeans"
        is `kmeans_threshold` with a guess of 8 clusters and a random seed; it costs a k-means
        before the tree. The others need the whole tree: it is built first and cut afterwards,
        so that it takes as long as without a threshold, and the forest is what is left of it. To
        keep the whole tree, call `predictive_threshold`, `gap_threshold` or `evidence_threshold`
        yourself. "predictive" builds trees of samples besides.
    sample_weight : array-like of shape (n,), optional
        A row with weight 3 counts as three copies. Rows with weight 0 join the nearest row, at
        height 0, and change nothing else.
    feature_names : sequence of str, optional
        Names of the columns, for X without any: a sparse matrix of words has those that
        ``get_feature_names_out()`` of its vectoriser returns. By default those of a data frame.
        Messages and `Dendrogram.summary` use them.
    n_jobs : int, optional
        Number of threads. None or -1 stands for NUMBA_NUM_THREADS, by default one per core that the
        process may use. The result does not depend on it, unless neighbors="approximate".
    progress : bool, default=False
        Show a progress bar, and the number of kernels compiled, if any.
    audit : bool or "sample", default=False
        Count violations of reducibility, in all triples of a merge and a third cluster or in a
        random sample of ten triples per row, and certify that the tree is the greedy one: see
        `fastrbhc.reducibility`. The report is the attribute ``audit`` of the tree. If λ is chosen
        from the whole tree, the report is on that.
    missing : {"error", "ignore"}, default="error"
        What NaN means. With "ignore" it is a cell that was not observed, and d is that of the
        observed cells: each column has a weight of its own in each cluster, and d is the sum over
        the columns that both clusters know. For families whose columns are separate, such as
        "ward", "poisson" and "categorical", also as blocks of a product, and dense rows. Two rows
        that have no observed column in common are at d = 0. The page ``docs/missing.md`` says more.

    connectivity : sparse matrix, array of edges, Grid or callable, optional
        Which rows are adjacent: then only adjacent clusters merge, and a cluster is a connected
        piece of the graph. A union is adjacent to whatever its parts were adjacent to. At every
        step the nearest of all adjacent pairs merges, so that the tree is exact for every family.
        The graph is a sparse matrix with a row and a column for each row of X, where entries other
        than 0 are edges, whatever their values; an array of edges, two rows of X in each line;
        ``fastrbhc.grid(height, width)`` for the pixels of an image, ``image.reshape(-1, d)``, or
        ``("grid", (height, width))``; or a function of X that returns one of these, such as
        ``sklearn.neighbors.kneighbors_graph`` with its parameters. Rows are not adjacent to
        themselves: such entries are ignored. A graph that is not symmetric counts both ways, with a
        warning. Not together with ``audit``, an ``algorithm`` other than "greedy", ``neighbors``,
        weights of 0, or threshold="predictive".
    connect : bool, default=False
        What becomes of a graph in several pieces. By default each has a tree of its own, and the
        result is a forest. If True, the pieces are joined once each of them is a single cluster, as
        if all were adjacent, and ``origin.connectivity`` of the tree is "joined".

    Returns
    -------
    Dendrogram
        Merges, heights and weights; ``cut`` gives labels. It remembers its family, the names of
        its columns and λ.

    Notes
    -----
    Ties: pairs at the same d are merged in the order of their smaller rank, then of their larger
    rank. The rank of a distinct row is its position in the order of a fixed hash of the values; the
    rank of a cluster is the largest among its rows. So a tree depends on the values of the rows,
    never on their order, their layout in memory or the number of threads. Repeated rows are merged
    first, at height 0.

    With a graph, a union can be nearer to a neighbour of one of its parts than that part was. So
    heights can fall with every family (``n_inversions``); cuts go by the order of merging. Repeated
    rows are different nodes of the graph and merge only if they are adjacent; ties between them are
    decided by the order of the rows. The time is nearly linear in the number of edges if no cluster
    absorbs very many neighbours one by one: it is compared with all the others each time.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[9, 1], [8, 2], [1, 9], [2, 7]]
    >>> tree = fastrbhc.linkage(X, "poisson")
    >>> tree.cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    >>> fastrbhc.linkage(X, "poisson", threshold=1.0).n_trees
    2
    >>> fastrbhc.linkage(X, "poisson", threshold="gap").n_trees
    2
    >>> X[0][1] = float("nan")
    >>> fastrbhc.linkage(X, "poisson", missing="ignore").cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    >>> hours = [[3], [4], [20], [22], [3]]
    >>> tree = fastrbhc.linkage(hours, "poisson", connectivity=fastrbhc.grid(5))
    >>> tree.cut(n_clusters=3).tolist()
    [1, 1, 0, 0, 2]
    """
    distribution, said, _ = resolve(family, X, sample_weight)
    distribution = placed(distribution, X, feature_names=feature_names)
    options = LinkageOptions(algorithm, neighbors, threshold, n_jobs, progress, audit, missing)
    checked, layout = options.checked(distribution), layout_for(neighbors)
    rows = [
        check_rows(X, distribution, layout=layout, feature_names=feature_names, missing=missing)
    ]
    weights = check_weights(sample_weight, rows[0].shape[0])
    checked = on_graph(checked, connectivity, connect, X, weights, rows[0].shape[0])
    names = names_of_columns(X, feature_names, rows[0].shape[1])
    warn_of_misfits(rows[0], distribution, names, said)
    with compiling_shown(checked.progress):
        grown = grow(rows, distribution, weights, checked, Guess())
    tree, level = grown.tree, grown.threshold
    if threshold is None:
        return remembering(tree, names)
    if level < tree.threshold:  # chosen from the whole tree
        tree = forest_at(tree, level)
    return remembering(tree, names, Chosen(level, checked.choice or "given"))
