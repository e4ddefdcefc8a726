"""Clusters of cells in the containers of the package anndata, for scanpy.

Nothing here imports anndata: an AnnData brings along what is needed.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from fastrbhc._advice import MisfitWarning
from fastrbhc._containers import as_matrix, is_anndata
from fastrbhc._optional import require
from fastrbhc._row_validation import dense_if_needed, refuse_without_a_family
from fastrbhc._scanpy import scanpy_dendrogram
from fastrbhc.estimators import RBHC
from fastrbhc.families import Family, as_family
from fastrbhc.families._interface import FamilyLike
from fastrbhc.suggesting.automatic import resolve
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.json_format import ARRAYS, content_of, from_content

__all__ = ["cluster", "dendrogram"]


def cluster(
    adata: Any,
    family: FamilyLike = "multinomial",
    *,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = None,
    key_added: str = "rbhc",
    n_clusters: int | None = None,
    threshold: float | str | None = "predictive",
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> RBHC:
    """Cluster the cells of an AnnData, and store labels and tree in it.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells in rows, genes in columns. It may be backed by a file.
    family : str or record, default="multinomial"
        A record from `fastrbhc.families`, or its name. The default compares the proportions of raw
        counts, so that they need no normalisation. "auto" takes what suits the values, as in
        `fastrbhc.linkage`: a family of counts, or that for measurements.
    layer : str, optional
        The layer with the counts, by default X.
    mask_var : str or array-like of bool, optional
        The genes to use: one truth value for each, or the name of a column of ``adata.var``, such
        as "highly_variable". By default all.
    key_added : str, default="rbhc"
        Under which name to store labels and tree.
    n_clusters, threshold : int, float or str, optional
        The number of clusters, or λ, or how to choose λ: see `RBHC`.
    sample_weight : array-like of shape (n_obs,), optional
        A cell with weight 3 counts as three copies.
    **options
        Other parameters of `RBHC`, such as ``n_jobs`` and ``progress``.

    Returns
    -------
    RBHC
        The fitted estimator, with the whole tree. ``summary()`` is a table of the clusters, and
        ``predict`` finds the clusters of other cells.

    Notes
    -----
    These are stored, and written by ``adata.write_h5ad``:

    ``adata.obs[key_added]``
        The cluster of each cell, as a category "0", "1", …; the heaviest is "0".
    ``adata.uns[key_added]``
        Under "params" what was chosen, under "tree" the tree, which `dendrogram` reads.
    ``adata.uns["dendrogram_" + key_added]``
        The merges above the clusters, for ``scanpy.pl.dendrogram(adata, key_added)`` and for
        ``dendrogram=True`` in other plots of scanpy. Heights are those of the tree, or its levels
        where it has inversions. Correlations are those of the mean rows of the clusters. A single
        cluster has no such entry.

    See Also
    --------
    dendrogram : Reads the tree again.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> rates = np.repeat([[9, 1, 1], [1, 1, 9]], 50, axis=0)
    >>> adata = anndata.AnnData(rng.poisson(rates).astype(float))
    >>> model = fastrbhc.anndata.cluster(adata)
    >>> adata.obs["rbhc"].value_counts().tolist()
    [50, 50]
    """
    pd = require("pandas", "cluster")
    if not is_anndata(adata):
        raise TypeError(
            f"adata is of the type {type(adata).__name__}: an anndata.AnnData was expected. For "
            "other rows call fastrbhc.RBHC().fit(X)"
        )
    left_open = isinstance(family, str) and family == "auto"
    as_family(family)  # refused before anything is read
    genes = _genes(adata, mask_var)
    X = rows_of(adata, layer)
    names = [str(name) for name in adata.var_names]
    if genes is not None:
        X, names = X[:, genes], [names[gene] for gene in genes]
    distribution, sentence, _ = resolve(family, X, sample_weight)
    if sentence is not None:
        warnings.warn(sentence, MisfitWarning, stacklevel=2)
    if layer is None and "counts" in adata.layers:
        warn_of_other_counts(X, distribution, "say layer='counts'")
    if left_open and not distribution.domain.takes_sparse:
        refuse_without_a_family(X, "adata", "family='{}'")
    X = dense_if_needed(X, distribution, "adata")
    options = {"compute_full_tree": True, **options}
    if not options["compute_full_tree"]:
        raise ValueError("compute_full_tree has to be True: the merges above λ are stored too")
    model = RBHC(distribution, n_clusters=n_clusters, threshold=threshold, **options)
    model.fit(X, sample_weight=sample_weight, feature_names=names)
    categories = [str(label) for label in range(model.n_clusters_)]
    adata.obs[key_added] = pd.Categorical.from_codes(model.labels_, categories)
    adata.uns[key_added] = {"params": _params(model, layer), "tree": _stored(model.dendrogram_)}
    adata.uns.pop(f"dendrogram_{key_added}", None)
    if model.n_clusters_ > 1:
        adata.uns[f"dendrogram_{key_added}"] = scanpy_dendrogram(
            model.dendrogram_, model.labels_, X, key_added, layer or "X"
        )
    return model


def dendrogram(adata: Any, key: str = "rbhc") -> Dendrogram:
    """The tree that `cluster` has stored in an AnnData.

    Parameters
    ----------
    adata : anndata.AnnData
        With the same cells in the same order as when they were clustered.
    key : str, default="rbhc"
        The name that was given as ``key_added``.

    Returns
    -------
    Dendrogram
        The whole tree, which remembers its family, the names of the genes, and λ.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import fastrbhc
    >>> adata = anndata.AnnData(np.array([[9.0, 1.0], [8.0, 2.0], [1.0, 9.0], [2.0, 7.0]]))
    >>> model = fastrbhc.anndata.cluster(adata, n_clusters=2)
    >>> fastrbhc.anndata.dendrogram(adata).cut(n_clusters=3).tolist()
    [0, 0, 1, 2]
    """
    stored = adata.uns.get(key)
    if stored is None or "tree" not in stored:
        raise ValueError(
            f"there is no tree in adata.uns[{key!r}]: call fastrbhc.anndata.cluster(adata, "
            f"key_added={key!r}) first"
        )
    stored = stored["tree"]
    content = json.loads(str(stored["about"]))
    content |= {name: np.asarray(stored[name]) if name in stored else None for name in ARRAYS}
    content["feature_names"] = [str(name) for name in stored["feature_names"]]
    tree = from_content(content)
    if tree.n_leaves != adata.n_obs:
        raise ValueError(
            f"the tree in adata.uns[{key!r}] has {tree.n_leaves:,} cells and adata has "
            f"{adata.n_obs:,}: some were left out or added since. Cluster them again"
        )
    return tree


def rows_of(adata: Any, layer: str | None, name: str = "adata") -> Any:
    """X of an AnnData or one of its layers, in memory, as floats; sparse if it is."""
    others = ", ".join(map(repr, adata.layers)) or "none"
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"{name} has no layer {layer!r}. Its layers are: {others}")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError(f"{name} has no X. Say which layer to cluster; its layers are: {others}")
    if hasattr(X, "to_memory"):  # sparse, and still on disk
        X = X.to_memory()
    elif type(X).__module__.startswith("h5py"):
        X = X[()]
    rows = as_matrix(X, name, fits_memory=False)
    return rows.tocsr() if issparse(rows) else rows.astype(np.float64, copy=False)


def warn_of_other_counts(X: Any, family: Family, remedy: str) -> None:
    """Warn that a family of counts gets numbers that are not whole, beside a layer of counts."""
    values = X.data if issparse(X) else X
    if family.domain.takes_sparse and (values != np.floor(values)).any():
        warnings.warn(
            f"X has numbers that are not whole, as after normalisation, the family {family.name!r} "
            f"is for counts, and there is a layer 'counts': {remedy} to cluster that",
            UserWarning,
            stacklevel=3,
        )


def _genes(adata: Any, mask: Any) -> NDArray[np.int64] | None:
    """The positions of the genes to use; None for all."""
    if mask is None:
        return None
    if isinstance(mask, str) and mask not in adata.var:
        known = ", ".join(map(repr, adata.var.columns)) or "none"
        raise ValueError(f"adata.var has no column {mask!r}. Its columns are: {known}")
    wanted = np.asarray(adata.var[mask] if isinstance(mask, str) else mask)
    if wanted.dtype != bool or wanted.shape != (adata.n_vars,) or not wanted.any():
        raise ValueError(
            f"mask_var has to hold {adata.n_vars:,} truth values, one for each gene, and some of "
            f"them true; got {wanted.dtype} of shape {wanted.shape}"
        )
    return np.flatnonzero(wanted)


def _params(model: RBHC, layer: str | None) -> dict[str, Any]:
    chosen = model.dendrogram_.chosen
    assert chosen is not None
    return {
        "family": str(model.dendrogram_.family),
        "layer": layer or "X",
        "n_clusters": model.n_clusters_,
        "threshold": chosen.threshold,
        "chosen_by": chosen.by,
    }


def _stored(tree: Dendrogram) -> dict[str, Any]:
    """A tree as arrays, and the rest of it as one text: forms that every .h5ad file can hold."""
    content = content_of(tree)
    arrays = {name: content.pop(name) for name in ARRAYS}
    names = np.array(content.pop("feature_names"), object)
    kept = {name: values for name, values in arrays.items() if values is not None}
    return {**kept, "feature_names": names, "about": json.dumps(content, allow_nan=False)}
