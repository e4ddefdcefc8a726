"""Kinds of columns, the family that is suggested, and what family="auto" does with it."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import fastrbhc
from fastrbhc import RBHC, families, linkage, suggest_family
from fastrbhc._advice import MisfitWarning
from fastrbhc.families import (
    Gaussian,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    SphericalGaussian,
)
from fastrbhc.suggesting.automatic import Resolved, resolve_auto
from fastrbhc.suggesting.columns import as_table, statistics_of
from fastrbhc.suggesting.dispersion import dispersion_of

DEFAULT = Gaussian(smoothing="auto")


def counts(dispersion, means, n=80, seed=0):
    """Rows of counts, n for each row of means."""
    rng = np.random.default_rng(seed)
    means = np.repeat(np.asarray(means, dtype=float), n, axis=0)
    if dispersion == 0.0:
        return rng.poisson(means).astype(float)
    size = 1.0 / dispersion
    return rng.negative_binomial(size, size / (size + means)).astype(float)


def kinds(X, **options):
    return [column.kind for column in suggest_family(X, **options).columns]


def customers(n=200, seed=0):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": np.arange(n) + 1000,
            "visits": rng.poisson(2.0, n),
            "orders": rng.negative_binomial(0.5, 0.05, n),
            "age": rng.integers(18, 90, n),
            "income": np.exp(rng.normal(10.0, 1.0, n)),
            "country": rng.choice(["de", "fr", "it"], n),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n)),
            "member": rng.random(n) < 0.3,
            "answer": rng.integers(1, 6, n),
            "since": pd.date_range("2020", periods=n),
            "name": [f"customer {i}" for i in range(n)],
            "planet": 3,
        }
    )


EXPECTED = [
    "identifier",
    "count",
    "count",
    "measurement",
    "positive, skewed",
    "category",
    "category",
    "binary",
    "measurement",
    "date or time",
    "identifier",
    "constant",
]


# Columns


def test_kinds_of_a_data_frame():
    frame = customers()
    found = suggest_family(frame)
    assert [column.kind for column in found.columns] == EXPECTED
    assert [column.name for column in found.columns] == list(frame.columns)
    why = {column.name: column.why for column in found.columns}
    assert "a rating?" in why["answer"]
    assert "'poisson'" in why["age"]
    assert "3 different" in why["country"]
    assert "skewness" in why["income"]


def test_kinds_of_other_frames():
    frame = customers()
    polars = pytest.importorskip("polars")
    assert kinds(polars.from_pandas(frame)) == EXPECTED
    pyarrow = pytest.importorskip("pyarrow")
    assert kinds(pyarrow.Table.from_pandas(frame, preserve_index=False)) == EXPECTED


def test_lists_with_text_and_gaps():
    rows = [["a", 1.5, True], ["b", 2.5, None], ["a", 3.5, False]]
    found = suggest_family(rows)
    assert [column.kind for column in found.columns] == ["category", "measurement", "binary"]
    measured = SphericalGaussian(scale=(1.0,))  # the deviation of 1.5, 2.5 and 3.5
    assert found.family == {"categorical": [0], measured: [1], "bernoulli": [2]}
    assert found.columns[2].why.endswith("; 1 missing")
    assert "1 cell is missing" in found.reason


def test_missing_cells_are_counted():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[:3, 1] = np.nan
    found = suggest_family(X)
    assert found.family == "auto"
    assert found.columns[1].why.endswith("; 3 missing")
    assert "3 cells are missing" in found.reason


def test_names_that_are_given():
    found = suggest_family(np.ones((3, 2)), feature_names=["a", "b"])
    assert [column.name for column in found.columns] == ["a", "b"]
    with pytest.raises(ValueError, match="feature_names"):
        suggest_family(np.ones((3, 2)), feature_names=["a"])


@pytest.mark.parametrize("X", [np.ones(3), [1.0, 2.0], np.ones((2, 2, 2))])
def test_what_is_no_table(X):
    with pytest.raises(ValueError, match="2D array"):
        suggest_family(X)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="infinity"):
        suggest_family([[1.0], [np.inf]])


def test_statistics_of_sparse_columns_are_those_of_dense_ones():
    X = np.random.default_rng(1).poisson([[0.2, 3.0, 0.0, 1.0]], (50, 4)).astype(float)
    X[4, 1] = np.nan
    X[:, 3] += 1.0
    dense, computed = statistics_of(X), statistics_of(sparse.csc_array(X))
    for name in dense._fields:
        if name not in ("levels", "all_different"):
            np.testing.assert_allclose(getattr(computed, name), getattr(dense, name), err_msg=name)


def test_sparse_matrices_stay_sparse(monkeypatch):
    rng = np.random.default_rng(2)
    X = sparse.random_array((300, 5_000), density=0.01, format="csr", rng=rng)
    X.data = rng.poisson(2.0, X.data.size) + 1.0
    monkeypatch.setattr(sparse.csc_array, "toarray", lambda *_: pytest.fail("made dense"))
    found = suggest_family(X)
    assert found.family == "multinomial"
    assert "99 % of them 0" in found.reason
    assert str(found).splitlines()[31].startswith("and 4,970 more: ")


# Tables


@pytest.mark.parametrize(
    ("X", "family"),
    [
        (np.random.default_rng(0).normal(size=(40, 3)), "auto"),
        (np.random.default_rng(0).random((40, 3)) < 0.3, "bernoulli"),
        ((np.random.default_rng(0).random((40, 3)) < 0.3).astype(int), "bernoulli"),
        (np.eye(4)[np.random.default_rng(0).integers(0, 4, 60)], "multinomial"),
        (np.random.default_rng(0).poisson(1.0, (100, 3)), "poisson"),
        (np.random.default_rng(0).multinomial(9, [0.1, 0.3, 0.6], 50), "multinomial"),
        (np.random.default_rng(0).dirichlet([1, 2, 3], 50), Multinomial(weight_by_total=False)),
        ([["a", "x"], ["b", "y"], ["a", "y"]], "categorical"),
        (np.full((30, 2), 7.0), "auto"),
    ],
)
def test_one_family_for_all_columns(X, family):
    assert suggest_family(X).family == family


def test_directions():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert suggest_family(X).family == "von_mises_fisher"
    assert suggest_family(sparse.csr_array(X)).family == "von_mises_fisher"


def test_skewed_columns_have_the_variance_of_their_clusters():
    rng = np.random.default_rng(0)
    logs = np.concatenate([rng.normal(0.0, 0.5, (200, 3)), rng.normal(3.0, 0.5, (100, 3))])
    family = suggest_family(np.exp(logs)).family
    assert isinstance(family, LogNormal)
    assert family.variance == pytest.approx(0.25, rel=0.2)
    assert logs.var(axis=0).min() > 2.0  # over all rows


def test_a_matrix_of_distances_has_no_rows():
    points = np.random.default_rng(0).normal(size=30)
    found = suggest_family(np.abs(points[:, None] - points))
    assert found.family is None
    assert "matrix of distances" in found.reason
    assert str(found).endswith("no family")


def test_columns_of_different_kinds_are_a_product():
    found = suggest_family(customers())
    family = found.family
    age, answer = family_of(found, "age"), family_of(found, "answer")
    measured = SphericalGaussian(scale=age.scale + answer.scale)
    assert list(family) == [
        "poisson",
        family_of(found, "orders"),
        measured,
        family_of(found, "income"),
        "categorical",
        "bernoulli",
        "ignore",
    ]
    assert family["poisson"] == ["visits"]
    assert family[measured] == ["age", "answer"]
    assert family["categorical"] == ["country", "size"]
    assert isinstance(family_of(found, "orders"), NegativeBinomial)
    assert "Leave out the columns 'number', 'since', 'name'" in found.reason


def family_of(found, name):
    return next(column.family for column in found.columns if column.name == name)


# Widths within clusters


def mixed(n=300, seed=0, apart=4.0):
    """Three clusters in two measurements, a count and a category, and a measurement of noise."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 3
    columns = [
        np.array([0.0, apart, 2.0 * apart])[z] + rng.normal(size=n),
        1000.0 * (np.array([apart, 0.0, apart])[z] + rng.normal(size=n)),
        10.0 * rng.normal(size=n),
        rng.poisson(np.array([1.0, 3.0, 9.0])[z]),
        np.array(["a", "b", "c"])[(z + (rng.random(n) < 0.1)) % 3],
    ]
    rows = [[column[row].item() for column in columns] for row in range(n)]
    return rows, z


def widths(X):
    family = suggest_family(X).family
    return np.array(next(one.scale for one in family if hasattr(one, "scale")))


def test_measurements_of_a_product_are_scaled_by_their_widths_within_clusters():
    rows, _ = mixed()
    np.testing.assert_allclose(widths(rows), [1.0, 1000.0, 10.0], rtol=0.15)
    over_all_rows = np.std([row[:3] for row in rows], axis=0)
    assert over_all_rows[0] > 3.0


def test_columns_that_go_together_are_not_cut_into_slices():
    rng = np.random.default_rng(1)
    common = rng.normal(size=400)
    rows = [
        [x + 0.2 * rng.normal(), x + 0.2 * rng.normal(), "ab"[int(rng.random() < 0.5)]]
        for x in common
    ]
    np.testing.assert_allclose(widths(rows), 1.0, rtol=0.15)


def test_equal_ratings_have_a_width():
    rng = np.random.default_rng(2)
    z = np.arange(200) % 2
    rows = [[int(1 + 4 * k), rng.normal(8.0 * k), "ab"[k]] for k in z]
    assert widths(rows)[0] == pytest.approx(2.0)  # half of the step between 1 and 5


def test_counts_beside_other_columns_have_the_dispersion_within_clusters():
    rng = np.random.default_rng(3)
    rows, z = mixed(600)
    drawn = rng.poisson(rng.gamma(2.0, 0.5, 600) * np.array([1.0, 4.0, 16.0])[z])  # α = 0.5
    found = suggest_family([[*row, count] for row, count in zip(rows, drawn.tolist(), strict=True)])
    assert found.columns[3].family == "poisson"
    over_all_rows = (drawn.var() - drawn.mean()) / drawn.mean() ** 2
    assert over_all_rows > 1.5
    assert 0.1 <= found.columns[5].family.dispersion <= 0.7


def test_widths_are_those_of_copies_and_of_any_order():
    rng = np.random.default_rng(4)
    rows, _ = mixed(90)
    frame = pytest.importorskip("pandas").DataFrame(rows, columns=list("abcde"))
    copies = rng.integers(1, 4, 90)
    expected = resolve_auto(frame, copies).family
    shuffled = frame.iloc[rng.permutation(np.repeat(np.arange(90), copies))]
    assert resolve_auto(shuffled).family == expected
    assert resolve_auto(frame).family != expected


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_gaps_leave_widths(share):
    rng = np.random.default_rng(5)
    rows, _ = mixed(300)
    for row in rows:
        for column in range(3):
            row[column] = None if rng.random() < share else row[column]
    found = widths(rows)
    assert np.isfinite(found).all()
    assert found[2] == pytest.approx(10.0, rel=0.2)


def test_a_sparse_table_of_different_kinds():
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.poisson(1.0, 100), rng.normal(size=100) * (rng.random(100) < 0.5)])
    family = suggest_family(sparse.csr_array(X)).family
    assert family == suggest_family(X).family
    assert next(iter(family)) == "poisson"


def test_the_suggested_product_finds_what_measurements_of_its_own_variance_do_not():
    """Clusters that differ a little in every column, in another unit each."""
    pd = pytest.importorskip("pandas")
    rows, z = mixed(240, seed=7, apart=3.0)
    frame = pd.DataFrame(rows, columns=["x", "y", "noise", "count", "level"])
    with pytest.warns(MisfitWarning, match="columns are of different kinds"):
        labels = linkage(frame).cut(n_clusters=3)
    old = {DEFAULT: ["x", "y", "noise"], "poisson": ["count"], "categorical": ["level"]}
    before = linkage(frame, old).cut(n_clusters=3)
    assert adjusted_rand_score(z, labels) > adjusted_rand_score(z, before)
    assert adjusted_rand_score(z, labels) > 0.9


@pytest.mark.parametrize("X", [customers, lambda: counts(0.5, [[2, 30], [40, 3]]), lambda: [[0.5]]])
def test_the_last_line_can_be_pasted(X):
    found = suggest_family(X())
    last = str(found).splitlines()[-1]
    pasted = eval(last.removeprefix("family="), vars(families).copy())
    assert pasted == found.family


def test_the_table_is_aligned():
    found = suggest_family(customers())
    lines = str(found).splitlines()
    start = lines[0].index("why")
    for line, column in zip(lines[1:], found.columns, strict=False):
        assert line[start:] == column.why
    assert "<table" in found._repr_html_()
    frame = found.to_pandas()
    assert frame["kind"].tolist() == EXPECTED
    assert frame.index.name == "column"


# Dispersion


@pytest.mark.parametrize("dispersion", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("n_clusters", [1, 3, 8])
def test_dispersion_is_told_from_clusters(dispersion, n_clusters):
    means = np.exp(np.random.default_rng(n_clusters).normal(2.0, 1.0, (n_clusters, 6)))
    found = dispersion_of(counts(dispersion, means))
    assert found.together == pytest.approx(dispersion, rel=0.3, abs=0.02)


def test_clusters_in_a_single_column():
    X = counts(0.0, [[4, 2, 3], [60, 2, 3]])
    assert X.var(axis=0)[0] > 20.0 * X.mean(axis=0)[0]
    assert suggest_family(X).family == "poisson"


def test_overdispersed_counts():
    family = suggest_family(counts(0.5, [[2, 15, 9, 1], [20, 3, 5, 10]])).family
    assert isinstance(family, NegativeBinomial)
    assert family.dispersion == pytest.approx(0.5, rel=0.3)


def test_dispersion_of_one_column_among_others():
    X = np.column_stack([counts(0.0, [[2.0]], 300), counts(2.0, [[9.0]], 300, seed=1)])
    found = dispersion_of(X)
    assert found.n_clusters == 1
    assert found.alphas[0] < 0.1
    assert found.alphas[1] == pytest.approx(2.0, rel=0.3)


def test_ages_beside_counts_are_no_counts():
    rng = np.random.default_rng(9)
    X = np.column_stack([rng.poisson(1.0, (100, 2)), rng.integers(18, 90, 100)])
    assert kinds(X) == ["count", "count", "measurement"]
    assert resolve_auto(X) == Resolved(families.as_family("auto"))


def test_dispersion_knows_neither_order_nor_copies():
    X = counts(0.3, [[2, 5], [9, 1]], n=400)
    reference = dispersion_of(X)
    shuffled = dispersion_of(X[np.random.default_rng(3).permutation(len(X))])
    rows, times = np.unique(X, axis=0, return_counts=True)
    weighted = dispersion_of(rows, times.astype(float))
    for computed in (shuffled, weighted):
        np.testing.assert_array_equal(computed.alphas, reference.alphas)


def test_zeros_and_ones_among_counts():
    rng = np.random.default_rng(4)
    rare, even = rng.random((200, 1)) < 0.05, rng.random((200, 1)) < 0.5
    X = np.hstack([rng.poisson(2.0, (200, 3)), rare, even]).astype(float)
    assert kinds(X) == ["count"] * 4 + ["binary"]


# "auto"


def said_of(X, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = linkage(X, **options)
    assert all(warning.category is MisfitWarning for warning in caught)
    return tree, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("X", "family"),
    [
        (counts(0.0, [[1, 1, 1], [9, 1, 4]]), "poisson"),
        ((np.random.default_rng(5).random((100, 6)) < 0.3).astype(float), "bernoulli"),
        (np.random.default_rng(5).multinomial(6, [0.2, 0.3, 0.5], 60), "multinomial"),
    ],
)
def test_auto_follows_the_suggestion_and_says_so(X, family):
    tree, (said,) = said_of(X)
    assert tree.family == families.as_family(family)
    assert suggest_family(X).family == family
    assert said.startswith(f"family='auto' is {family!r} for these rows")
    np.testing.assert_array_equal(tree.heights, linkage(X, family).heights)
    with pytest.warns(MisfitWarning, match="family='auto' is"):
        model = RBHC(n_clusters=2).fit(X)
    assert model._family == tree.family


def test_auto_takes_the_dispersion():
    X = counts(0.5, [[2, 15, 9, 1], [20, 3, 5, 10]])
    resolved = resolve_auto(X)
    assert resolved.family == suggest_family(X).family
    assert "NegativeBinomial(dispersion=" in resolved.sentence


def test_auto_takes_sparse_counts():
    X = counts(0.0, [[1, 1, 1], [9, 1, 4]])
    _, (said,) = said_of(sparse.csr_array(X))
    assert "'poisson'" in said


def test_auto_with_weights_is_auto_with_copies():
    rows = counts(0.5, [[1, 4], [9, 2]], n=30)
    weights = np.random.default_rng(6).integers(0, 4, len(rows)).astype(float)
    copies = np.repeat(rows, weights.astype(int), axis=0)
    for X, given in ((rows, weights), (sparse.csr_array(rows), weights)):
        assert resolve_auto(X, given) == resolve_auto(copies)
    assert resolve_auto(copies).sentence is not None


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(7).normal(size=(60, 3)),
        np.exp(np.random.default_rng(7).normal(size=(60, 3))),
        np.random.default_rng(7).dirichlet([1, 2, 3], 60),
        np.random.default_rng(7).integers(1, 6, (60, 4)),
        np.random.default_rng(7).integers(0, 95, (60, 2)),
        np.argwhere(np.ones((12, 12))),
        np.arange(60.0)[:, None],
        np.random.default_rng(7).poisson(1.0, (19, 3)),
        np.zeros((30, 2)),
        [["a", "b"]],
        "rows.csv",
        None,
        np.array([[np.nan, 1.0]] * 30),
    ],
    ids=str,
)
def test_auto_leaves_all_else_to_measurements(X):
    assert resolve_auto(X) == Resolved(families.as_family("auto"))


def test_columns_of_different_kinds_are_measurements_for_auto():
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.poisson(1.0, 100), rng.normal(size=100), rng.random(100) < 0.5])
    assert resolve_auto(X).family == DEFAULT
    assert isinstance(suggest_family(X).family, dict)


def test_it_is_public():
    assert fastrbhc.suggest_family is suggest_family
    assert len(as_table([[1.0]], None).names or []) == 0
