"""Cells of an AnnData, with the real packages anndata and scanpy: see `make test-anndata`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.sparse import csc_matrix, csr_matrix
from trees import same_tree

import fastrbhc
from fastrbhc import RBHC, cli, linkage
from fastrbhc._advice import MisfitWarning
from fastrbhc._scanpy import scanpy_dendrogram, tree_of_clusters
from fastrbhc.families import Multinomial
from fastrbhc.suggesting.automatic import resolve_auto

# Parts of the tests do without the packages.
try:
    import anndata
except ImportError:
    anndata = None
needs_anndata = pytest.mark.skipif(anndata is None, reason="could not import 'anndata'")


def counts(n=25, seed=0):
    """Counts of 30 genes in four groups of n cells."""
    rng = np.random.default_rng(seed)
    return rng.poisson(3.0 * np.repeat(rng.gamma(1.0, 1.0, (4, 30)), n, axis=0)) + 0.0


def cells(X=None, container=csr_matrix):
    X = counts() if X is None else X
    adata = anndata.AnnData(container(X.astype(np.float32)))
    adata.obs_names = [f"cell{i}" for i in range(len(X))]
    adata.var_names = [f"gene{j}" for j in range(X.shape[1])]
    return adata


# The tree of the clusters


def test_brackets_are_those_of_scipy():
    X = counts()
    tree = linkage(X, "multinomial")
    labels = tree.cut(n_clusters=9)
    found = scanpy_dendrogram(tree, labels, X, "rbhc", "X")
    assert hierarchy.is_valid_linkage(found["linkage"])
    names = [str(label) for label in range(9)]
    reference = hierarchy.dendrogram(found["linkage"], labels=names, no_plot=True)
    computed = found["dendrogram_info"]
    assert computed["ivl"] == found["categories_ordered"] == reference["ivl"]
    assert found["categories_idx_ordered"] == reference["leaves"]
    assert computed.keys() == reference.keys()
    for part in ("icoord", "dcoord"):
        assert sorted(computed[part].tolist()) == sorted(reference[part])


def test_the_tree_of_clusters_is_the_top_of_the_tree():
    X = counts()
    tree = linkage(X, "multinomial")
    labels = tree.cut(n_clusters=7)
    merges, levels = tree_of_clusters(tree, labels)
    np.testing.assert_array_equal(levels, tree.levels[-6:])
    # Each merge joins the clusters of its rows.
    members = [{label} for label in range(7)]
    for merge, (left, right) in enumerate(merges):
        members.append(members[left] | members[right])
        node = tree.n_leaves + len(tree.merges) - 6 + merge
        assert set(labels[tree.members(node)]) == members[-1]


def test_brackets_of_a_chain_take_no_recursion():
    X = np.cumsum(np.arange(3000.0))[:, None]
    tree = linkage(X, "ward")
    labels = tree.cut(n_clusters=3000)
    found = scanpy_dendrogram(tree, labels, np.hstack([X, X]), "rbhc", "X")
    assert sorted(found["categories_idx_ordered"]) == list(range(3000))


def test_correlations_are_those_of_mean_rows():
    X = counts()
    tree = linkage(X, "multinomial")
    labels = tree.cut(n_clusters=4)
    means = np.array([X[labels == label].mean(axis=0) for label in range(4)])
    for rows in (X, csr_matrix(X)):
        computed = scanpy_dendrogram(tree, labels, rows, "rbhc", "X")["correlation_matrix"]
        np.testing.assert_allclose(computed, np.corrcoef(means))


# Labels and trees


@needs_anndata
@pytest.mark.parametrize("container", [csr_matrix, csc_matrix, np.asarray])
def test_labels_and_tree_are_stored(container):
    adata = cells(container=container)
    model = fastrbhc.anndata.cluster(adata)
    reference = RBHC("multinomial", compute_full_tree=True).fit(counts())
    assert reference.n_clusters_ == 4
    np.testing.assert_array_equal(adata.obs["rbhc"].cat.codes, reference.labels_)
    assert adata.obs["rbhc"].cat.categories.tolist() == ["0", "1", "2", "3"]
    assert same_tree(model.dendrogram_, reference.dendrogram_)
    tree = fastrbhc.anndata.dendrogram(adata)
    assert same_tree(tree, reference.dendrogram_)
    assert tree.chosen == reference.dendrogram_.chosen
    assert tree.family == Multinomial()
    assert tree.feature_names == tuple(adata.var_names)
    assert list(model.summary().columns[-30:]) == [f"mean_{name}" for name in adata.var_names]
    assert adata.uns["rbhc"]["params"] == {
        "family": str(Multinomial()),
        "layer": "X",
        "n_clusters": 4,
        "threshold": reference.threshold_,
        "chosen_by": "predictive",
    }


@needs_anndata
def test_a_file_keeps_everything(tmp_path):
    adata = cells()
    weights = np.arange(1.0, 101.0)
    model = fastrbhc.anndata.cluster(
        adata, Multinomial(0.5), n_clusters=5, key_added="fine", sample_weight=weights
    )
    adata.write_h5ad(tmp_path / "x.h5ad")
    again = anndata.read_h5ad(tmp_path / "x.h5ad")
    tree = fastrbhc.anndata.dendrogram(again, "fine")
    assert same_tree(tree, model.dendrogram_)
    np.testing.assert_array_equal(tree.leaf_weights, weights)
    assert tree.origin == model.dendrogram_.origin
    np.testing.assert_array_equal(tree.cut(), model.labels_)
    assert again.obs["fine"].tolist() == adata.obs["fine"].tolist()


@needs_anndata
def test_cells_on_disk(tmp_path):
    for container in (csr_matrix, np.asarray):
        cells(container=container).write_h5ad(tmp_path / "x.h5ad")
        adata = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
        model = fastrbhc.anndata.cluster(adata, n_clusters=4)
        adata.file.close()
        np.testing.assert_array_equal(
            model.labels_, linkage(counts(), "multinomial").cut(n_clusters=4)
        )


@needs_anndata
def test_layers_and_genes():
    X = counts()
    adata = cells(np.log1p(X))
    adata.layers["counts"] = csr_matrix(X)
    adata.var["chosen"] = np.arange(30) < 20
    reference = linkage(X[:, :20], "multinomial")
    for mask in ("chosen", adata.var["chosen"], [True] * 20 + [False] * 10):
        fastrbhc.anndata.cluster(adata, layer="counts", mask_var=mask, n_clusters=3)
        tree = fastrbhc.anndata.dendrogram(adata)
        assert same_tree(tree, reference)
        assert tree.feature_names == tuple(adata.var_names[:20])
    assert adata.uns["rbhc"]["params"]["layer"] == "counts"


@needs_anndata
def test_a_layer_of_counts_beside_normalised_numbers():
    adata = cells(np.log1p(counts()))
    adata.layers["counts"] = counts()
    with pytest.warns(UserWarning, match=r"not whole.*say layer='counts' to cluster that"):
        fastrbhc.anndata.cluster(adata, n_clusters=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastrbhc.anndata.cluster(adata, "ward", n_clusters=2)  # for measurements
        adata.X = adata.layers["counts"]
        fastrbhc.anndata.cluster(adata, n_clusters=2)


@needs_anndata
def test_one_cluster_has_no_tree_of_clusters():
    adata = cells()
    fastrbhc.anndata.cluster(adata, n_clusters=2)
    assert "dendrogram_rbhc" in adata.uns
    fastrbhc.anndata.cluster(adata, n_clusters=1)
    assert "dendrogram_rbhc" not in adata.uns
    assert set(adata.obs["rbhc"]) == {"0"}


@needs_anndata
@pytest.mark.parametrize("container", [csr_matrix, np.asarray])
def test_auto_is_what_suits_the_values(container):
    X = counts()
    with pytest.warns(MisfitWarning, match=r"family='auto' is .* for these rows"):
        computed = fastrbhc.anndata.cluster(cells(X, container), "auto", n_clusters=4)
    assert computed.dendrogram_.family == resolve_auto(X).family
    assert computed.dendrogram_.family.domain.takes_sparse
    measured = fastrbhc.anndata.cluster(cells(np.log1p(X), container), "auto", n_clusters=4)
    assert measured.dendrogram_.family.name == "gaussian"


@needs_anndata
def test_mistakes():
    adata = cells()
    for function in (RBHC().fit, linkage):
        with pytest.raises(TypeError, match=r"is an AnnData.*fastrbhc\.anndata\.cluster\(adata\)"):
            function(adata)
    cluster = fastrbhc.anndata.cluster
    with pytest.raises(TypeError, match=r"an anndata\.AnnData was expected"):
        cluster(counts())
    with pytest.raises(ValueError, match=r"adata has no layer 'raw'\. Its layers are: none"):
        cluster(adata, layer="raw")
    with pytest.raises(ValueError, match="adata has no X"):
        cluster(anndata.AnnData(obs=adata.obs, var=adata.var))
    with pytest.raises(ValueError, match=r"adata\.var has no column 'highly_variable'"):
        cluster(adata, mask_var="highly_variable")
    for mask in ([True], [1] * 30, [False] * 30):
        with pytest.raises(ValueError, match="mask_var has to hold 30 truth values"):
            cluster(adata, mask_var=mask)
    with pytest.raises(ValueError, match=r"adata is a sparse matrix .* family='multinomial' for"):
        cluster(anndata.AnnData(csr_matrix((100, 20_000))), "auto")
    with pytest.raises(ValueError, match="compute_full_tree has to be True"):
        cluster(adata, compute_full_tree=False)
    with pytest.raises(ValueError, match=r"no tree in adata\.uns\['rbhc'\]"):
        fastrbhc.anndata.dendrogram(adata)
    cluster(adata, n_clusters=2)
    with pytest.raises(ValueError, match="has 100 cells and adata has 50"):
        fastrbhc.anndata.dendrogram(adata[:50])
    adata.X[3, 4] = -2.0
    with pytest.raises(ValueError, match="row 3, column 'gene4' is -2"):
        cluster(adata)


# The command line


@pytest.fixture
def path(tmp_path):
    adata = cells(np.log1p(counts()))
    adata.layers["counts"] = csr_matrix(counts())
    adata.obs["donor"] = [f"d{i}" for i in range(100)]
    adata.obs["copies"] = np.arange(1, 101)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def read_labels(path):
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return [line[0] for line in lines], [int(line[1]) for line in lines]


@needs_anndata
def test_the_command_line(path, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    command = ["cluster", str(path), "--family", "multinomial", "--clusters", "4"]
    assert cli.main([*command, "--layer", "counts", "--labels", str(out)]) == 0
    printed, warned = capsys.readouterr()
    assert "cells.h5ad: 100 rows, 30 columns" in printed
    assert warned == ""
    reference = linkage(counts(), "multinomial").cut(n_clusters=4)
    assert read_labels(out) == ([f"cell{i}" for i in range(100)], reference.tolist())
    further = ["--id", "donor", "--weights", "copies", "--drop", "gene3"]
    assert cli.main([*command, "--layer", "counts", "--labels", str(out), *further]) == 0
    weights = np.arange(1.0, 101.0)
    X = np.delete(counts(), 3, axis=1)
    reference = linkage(X, "multinomial", sample_weight=weights).cut(n_clusters=4)
    assert read_labels(out) == ([f"d{i}" for i in range(100)], reference.tolist())


@needs_anndata
def test_the_command_line_knows_of_layers(path, tmp_path, capsys):
    command = ["cluster", str(path), "--clusters", "4"]
    assert cli.main([*command, "--family", "poisson"]) == 0
    assert "there is a layer 'counts': say --layer counts to cluster" in capsys.readouterr().err
    assert cli.main([*command, "--family", "ward"]) == 0
    assert "layer" not in capsys.readouterr().err
    assert cli.main([*command, "--layer", "raw"]) == 2
    assert "cells.h5ad has no layer 'raw'. Its layers are: 'counts'" in capsys.readouterr().err
    (tmp_path / "broken.h5ad").write_bytes(b"anything")
    assert cli.main(["cluster", str(tmp_path / "broken.h5ad")]) == 2
    assert "broken.h5ad cannot be read" in capsys.readouterr().err


# scanpy


@pytest.mark.filterwarnings("ignore")  # other people's
def test_scanpy_draws_it(tmp_path):
    scanpy = pytest.importorskip("scanpy")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    adata = cells(container=np.asarray)  # their function takes no sparse ones with few genes
    model = fastrbhc.anndata.cluster(adata, n_clusters=6)
    stored = adata.uns["dendrogram_rbhc"]
    scanpy.tl.dendrogram(adata, "rbhc", key_added="theirs")
    assert stored.keys() == adata.uns["theirs"].keys()
    adata.write_h5ad(tmp_path / "x.h5ad")
    genes = list(adata.var_names[:4])
    for container in (adata, anndata.read_h5ad(tmp_path / "x.h5ad")):
        ax = scanpy.pl.dendrogram(container, "rbhc", show=False)
        drawn = [line.get_ydata()[1] for line in ax.lines]
        np.testing.assert_allclose(drawn, model.dendrogram_.levels[-5:])
        assert [text.get_text() for text in ax.get_xticklabels()] == stored["categories_ordered"]
        scanpy.pl.heatmap(container, genes, "rbhc", dendrogram=True, show=False)
        scanpy.pl.dotplot(container, genes, "rbhc", dendrogram=True, show=False)
        scanpy.pl.matrixplot(container, genes, "rbhc", dendrogram=True, show=False)
        scanpy.pl.correlation_matrix(container, "rbhc", show=False)
        pyplot.close("all")
