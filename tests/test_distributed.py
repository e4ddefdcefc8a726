"""Trees made cell by cell: those of `linkage`, to the bit; beyond memory, the same answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrbhc
from fastrbhc import distributed

# Rows far apart in kind, of one length in each partition.
BLOCK = 97


def blocks(X, weights=None, size=BLOCK):
    for start in range(0, len(X), size):
        rows = X[start : start + size]
        yield rows if weights is None else (rows, weights[start : start + size])


def compare(X, n_cells, weights=None, family="ward", **options):
    reference = fastrbhc.linkage(X, family, sample_weight=weights)
    tree = distributed.linkage(blocks(X, weights), family, n_cells=n_cells, **options)
    np.testing.assert_array_equal(tree.merges, reference.merges)
    np.testing.assert_array_equal(tree.heights, reference.heights)
    np.testing.assert_array_equal(tree.weights, reference.weights)
    np.testing.assert_array_equal(tree.steps, reference.steps)


# The tree of linkage


@pytest.mark.parametrize("n_cells", [1, 2, 4, 16])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_tree_of_linkage(d, n_cells):
    compare(np.random.default_rng(d).normal(size=(500, d)), n_cells)


@pytest.mark.parametrize("n_cells", [2, 8])
def test_ties_and_repeated_rows_on_borders(n_cells):
    for seed in range(5):
        X = np.random.default_rng(seed).integers(-6, 6, (400, 2)).astype(float)
        compare(X, n_cells)


@pytest.mark.parametrize("n_cells", [2, 8])
def test_weights(n_cells):
    rng = np.random.default_rng(3)
    compare(rng.normal(size=(300, 2)), n_cells, rng.exponential(size=300))
    compare(rng.normal(size=(300, 2)), n_cells, 10.0 ** rng.uniform(-6, 6, 300))
    X = rng.integers(0, 5, (300, 2)).astype(float)
    compare(X, n_cells, rng.exponential(size=300))


def test_values_far_from_zero():
    compare(1e6 + np.random.default_rng(4).normal(size=(400, 2)), 8)


def test_cells_that_are_empty_or_one_row():
    X = np.concatenate([np.zeros((50, 1)), np.arange(1.0, 4.0)[:, None]])
    compare(X, 16)
    compare(np.zeros((20, 2)), 4)
    compare(np.array([[0.0, 1.0]] * 3 + [[5.0, 1.0]]), 8)
    compare(np.array([[1.0], [2.0]]), 4)


def test_threads_make_no_difference():
    compare(np.random.default_rng(5).normal(size=(3000, 2)), 4, n_jobs=2)


def test_widths_of_columns_and_transformed_rows():
    rng = np.random.default_rng(6)
    scaled = fastrbhc.families.SphericalGaussian(scale=(1.0, 20.0))
    compare(rng.normal(size=(300, 2)) * [1.0, 20.0], 4, family=scaled)
    compare(np.exp(rng.normal(size=(300, 2))), 4, family="log_normal")


@settings(max_examples=30)
@given(
    st.integers(1, 60),
    st.integers(1, 3),
    st.integers(1, 9),
    st.integers(1, 8),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_rows_cells_and_partitions(n, d, n_values, n_cells, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n + 1, d)).astype(float) * rng.choice([1.0, 0.1, 1e5])
    weights = rng.integers(1, 4, n + 1).astype(float) if weighted else None
    reference = fastrbhc.linkage(X, "ward", sample_weight=weights)
    size = int(rng.integers(1, n + 2))
    stored = distributed.linkage(
        blocks(X, weights, size), "ward", n_cells=n_cells, output="files", random_state=seed
    )
    tree = stored.to_dendrogram()
    np.testing.assert_array_equal(tree.merges, reference.merges)
    np.testing.assert_array_equal(tree.heights, reference.heights)
    k = int(rng.integers(1, n + 2))
    np.testing.assert_array_equal(stored.cut(n_clusters=k).to_numpy(), reference.cut(n_clusters=k))


def test_clusters_that_are_left_are_joined_two_by_two(monkeypatch):
    from fastrbhc.distributed import _job

    def little_memory(*arguments):
        return original(*arguments)._replace(in_one_place=50)

    original = _job.division_for
    monkeypatch.setattr("fastrbhc.distributed._linkage.division_for", little_memory)
    X = np.random.default_rng(7).normal(size=(2000, 3))
    compare(X, 16)
    tree = distributed.linkage(X, "ward", n_cells=16, output="files")
    assert [stage.of_rows for stage in tree.stages] == [True] * 16 + [False] * (8 + 4 + 2 + 1)
    assert tree.cut(n_clusters=30).to_numpy().tolist() == (
        fastrbhc.linkage(X, "ward").cut(n_clusters=30).tolist()
    )


# Families that are not reducible


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_merges_are_reciprocal_pairs(family):
    rng = np.random.default_rng(8)
    X = np.ceil(rng.gamma(2.0, 3.0, (60, 2)))
    tree = distributed.linkage(blocks(X), family, n_cells=4)
    assert tree.certified is False
    certify_pairs(tree, X, family)


def certify_pairs(tree, X, family):
    """Each merge joins two clusters that are each other's nearest, in the order of the steps."""
    active = {row: X[[row]] for row in range(len(X))}
    names = {row: row for row in range(len(X))}
    for merge in np.argsort(tree.steps):
        a, b = (names[int(node)] for node in tree.merges[merge])
        height = tree.heights[merge]
        assert height == pytest.approx(
            fastrbhc.dissimilarity(active[a], active[b], family), rel=1e-9, abs=1e-12
        )
        for part in (a, b):
            for other in active.keys() - {a, b}:
                value = fastrbhc.dissimilarity(active[part], active[other], family)
                assert value >= height * (1.0 - 1e-9)
        active[a] = np.concatenate([active[a], active.pop(b)])
        names[len(X) + int(merge)] = a
    assert len(active) == 1


def test_the_audit_is_that_of_the_same_merges():
    # With one cell the merges are those of `linkage`, and so is the report.
    rng = np.random.default_rng(9)
    X = rng.poisson(4.0, (120, 2)).astype(float)
    reference = fastrbhc.linkage(X, "poisson", audit=True).audit
    report = distributed.linkage(blocks(X), "poisson", n_cells=1, audit=True).audit
    assert report.certified
    for name in ("triples", "violations", "consequential", "premises", "worst", "inversions"):
        assert getattr(report, name) == getattr(reference, name), name
    divided = distributed.linkage(blocks(X), "poisson", n_cells=4, audit=True)
    assert divided.certified == (divided.audit.departure is None)
    assert divided.audit.triples == reference.triples
    assert distributed.linkage(blocks(X), "ward", audit=True).audit.method == "proof"


def test_families_that_nothing_bounds_are_refused():
    X = np.random.default_rng(10).normal(size=(30, 2))
    for family in ("gaussian", "auto", "von_mises_fisher", "diagonal_gaussian"):
        with pytest.raises(ValueError, match=r"cell by cell.*'ward'"):
            distributed.linkage(X, family)


def test_products_of_families_with_separate_columns():
    rng = np.random.default_rng(11)
    X = np.column_stack([rng.normal(size=80), rng.poisson(3.0, 80), rng.normal(size=80)])
    family = {"ward": [0, 2], "poisson": [1]}
    tree = distributed.linkage(blocks(X), family, n_cells=4)
    certify_pairs(tree, X, family)
