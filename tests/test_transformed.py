"""Families of transformed rows: another family of g(x), with results in the units of x."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from trees import same_tree

import fastrbhc
from fastrbhc import families
from fastrbhc.assessment.populations import populations

# Each with the rows that its base sees.
TRANSFORMED = [
    (families.LogNormal(variance=0.5), np.log),
    (families.Weibull(shape=1.5), lambda x: x**1.5),
    (families.Weibull(shape=0.7, smoothing=0.1), lambda x: x**0.7),
    (families.Rayleigh(), lambda x: x**2),
    (families.Pareto(minimum=0.25), lambda x: np.log(x / 0.25)),
]
every_transformed = pytest.mark.parametrize(
    ("family", "transform"), TRANSFORMED, ids=lambda f: str(f)[:20]
)


def three_groups(seed=0, n=30, d=2):
    rng = np.random.default_rng(seed)
    return np.repeat([[1.0], [12.0], [150.0]], n, axis=0) * rng.uniform(0.7, 1.4, (3 * n, d))


@every_transformed
def test_a_tree_is_that_of_the_base_for_transformed_rows(family, transform):
    X = three_groups()
    reference = fastrbhc.linkage(transform(X), family.base)
    computed = fastrbhc.linkage(X, family)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-8)
    assert fastrbhc.dissimilarity(X[:9], X[9:], family) == pytest.approx(
        fastrbhc.dissimilarity(transform(X[:9]), transform(X[9:]), family.base), rel=1e-12
    )


@pytest.mark.parametrize(("family", "transform"), [(families.Weibull(1.0), None)], ids=str)
def test_a_weibull_of_shape_one_is_exponential(family, transform):
    X = three_groups()
    assert same_tree(fastrbhc.linkage(X, family), fastrbhc.linkage(X, "exponential"))


def test_a_weibull_of_shape_two_is_that_of_rayleigh():
    X = three_groups()
    reference = fastrbhc.linkage(X, "rayleigh")
    assert same_tree(fastrbhc.linkage(X, families.Weibull(2.0)), reference)


@every_transformed
def test_means_are_in_the_units_of_the_rows(family, transform):
    pytest.importorskip("pandas")
    X = three_groups()
    tree = fastrbhc.linkage(X, family)
    frame = tree.summary(X, n_clusters=3)
    labels = tree.cut(n_clusters=3)
    for label in range(3):
        rows = X[labels == label]
        mean = frame.loc[label, ["mean_x0", "mean_x1"]].to_numpy(float)
        assert (rows.min(axis=0) < mean).all()
        assert (mean < rows.max(axis=0)).all()
        np.testing.assert_allclose(transform(mean), transform(rows).mean(axis=0), rtol=1e-12)


def test_means_of_log_normal_clusters_are_geometric():
    pytest.importorskip("pandas")
    X = [[1.0], [4.0], [100.0], [400.0]]
    frame = fastrbhc.linkage(X, "log_normal").summary(X, n_clusters=2)
    np.testing.assert_allclose(sorted(frame["mean_x0"]), [2.0, 200.0])


@every_transformed
def test_units_do_not_matter_without_a_unit_in_the_parameters(family, transform):
    if getattr(family, "smoothing", 0.0) > 0.0 or hasattr(family, "minimum"):
        return
    X = three_groups()
    reference, computed = fastrbhc.linkage(X, family), fastrbhc.linkage(1e6 * X, family)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


@every_transformed
def test_new_rows_files_and_pictures(family, transform):
    pytest.importorskip("matplotlib")
    X = three_groups()
    model = fastrbhc.RBHC(family, n_clusters=3).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    tree = fastrbhc.Dendrogram.from_json(model.dendrogram_.to_json())
    assert tree.family == families.as_family(family)
    axes = fastrbhc.plotting.plot_clusters(X, model.labels_, family=family)
    assert axes.get_xlabel() == "column 0, transformed"
    assert len(axes.patches) == 3


@every_transformed
def test_rows_without_clusters_are_in_the_domain(family, transform):
    X = three_groups()
    for draw in populations(X, None, families.as_family(family)):
        drawn = draw(np.random.default_rng(1))
        assert drawn.shape == X.shape
        assert drawn.min() > family.domain.lower or family.domain.includes_lower
        assert np.isfinite(transform(drawn)).all()


def test_sparse_rows_with_smoothing():
    rng = np.random.default_rng(2)
    X = rng.gamma(2.0, 3.0, (40, 60)) * (rng.random((40, 60)) < 0.1)
    family = families.Weibull(shape=1.5, smoothing=0.5)
    reference = fastrbhc.dissimilarity(X[:20], X[20:], family)
    observed = family.observe(sparse.csr_array(X))
    assert observed.shape == X.shape
    tree = fastrbhc.linkage(sparse.csr_array(X), family)
    dense = fastrbhc.linkage(X, family)
    np.testing.assert_allclose(tree.heights, dense.heights, rtol=1e-10)
    assert fastrbhc.dissimilarity(sparse.csr_array(X[:20]), X[20:], family) == pytest.approx(
        reference, rel=1e-10
    )


@pytest.mark.fast
def test_powers_beyond_double_precision_are_refused():
    X = np.array([[1e-70, 1.0], [1.0, 2.0]])
    for rows in (X, 1.0 / X):
        with pytest.raises(ValueError, match="whose squares are beyond double precision"):
            fastrbhc.linkage(rows, "rayleigh")
    assert fastrbhc.linkage(X, families.Weibull(0.5)).heights[0] > 0.0
