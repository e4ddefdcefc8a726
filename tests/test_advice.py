"""Warnings about rows that do not suit their family, and silence about those that do."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fastrbhc
from fastrbhc import RBHC, linkage
from fastrbhc._advice import MisfitWarning, deliberately, is_matrix_of_distances
from fastrbhc.families import DiagonalGaussian, Gaussian, SphericalGaussian

MEASURING = [
    "ward",
    Gaussian(smoothing="auto"),
    DiagonalGaussian(smoothing="auto"),
]
RIDGES = [Gaussian, DiagonalGaussian]


def warned(X, family, **options):
    """All that is said about a tree."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        linkage(X, family, **options)
    assert all(warning.category is MisfitWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def normal(n=40, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# Smoothing


@pytest.mark.parametrize("family", RIDGES)
def test_a_smoothing_beyond_all_variances(family):
    X = 0.02 * normal()
    largest = f"{X.var(axis=0).max():.2g}"
    (said,) = warned(X, family(0.01))
    assert said.startswith("the smoothing 0.01 is larger than the variance of every column")
    assert f"(largest {largest})" in said
    assert "smoothing='auto'" in said
    assert warned(X, family("auto")) == []
    assert warned(X, family(0.5 * X.var(axis=0).max())) == []


@pytest.mark.parametrize("family", RIDGES)
def test_a_smoothing_below_the_variance_of_one_column(family):
    assert warned(normal() * [1.0, 0.01, 0.01], family(0.01)) == []


def test_a_smoothing_found_by_itself_fits():
    X = 1e-4 * normal()
    found = linkage(X, Gaussian("auto")).family
    assert warned(X, found) == []


def test_rows_that_do_not_vary():
    assert warned(np.full((30, 2), 0.1), "gaussian") == []


# Scales


@pytest.mark.parametrize(
    ("family", "remedy"),
    [
        ("ward", "family='auto'"),
        ("gaussian", "smoothing='auto'"),
        ("diagonal_gaussian", "smoothing='auto'"),
    ],
)
def test_columns_of_very_different_scales(family, remedy):
    X = normal() * [1.0, 5_000.0, 20.0]
    (said,) = warned(X, family)
    assert said.startswith("column 1 has a standard deviation of ")
    assert "column 0 one of" in said
    assert "StandardScaler" in said
    assert remedy in said
    assert warned(normal() * [1.0, 500.0, 20.0], family) == []


def test_columns_have_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(normal(d=2) * [1e5, 1.0], columns=["income", "children"])
    with pytest.warns(UserWarning, match=r"column 'income' has .* column 'children' one of"):
        linkage(frame, "ward")
    with pytest.warns(UserWarning, match=r"column 'income' has .* column 'children' one of"):
        RBHC("ward", n_clusters=2).fit(frame)


def test_constant_columns_have_no_scale():
    X = np.column_stack([1e4 * normal(d=1), np.full(40, 0.1)])
    assert warned(X, "ward") == []


@pytest.mark.parametrize("family", ["auto", "von_mises_fisher", Gaussian("auto")])
def test_scales_do_not_matter_to_all(family):
    assert warned(normal() * [1.0, 5_000.0, 20.0], family) == []


# Distances


@pytest.mark.parametrize("family", ["ward", "auto", "poisson"])
def test_a_matrix_of_distances(family):
    points = np.random.default_rng(1).integers(0, 1_000, (40, 1))
    distances = np.abs(points - points.T).astype(float)
    (said,) = warned(distances, family)
    assert said.startswith("X looks like a matrix of distances")


@pytest.mark.parametrize("n", [3, 10, 256, 600])
def test_distances_are_told_from_other_squares(n):
    points = normal(n, 2)
    distances = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    assert is_matrix_of_distances(distances)
    changes = {"negative": -distances, "diagonal": distances + np.eye(n), "points": normal(n, n)}
    for place in [(0, 1), (n - 2, n - 1)]:
        changes[place] = distances.copy()
        changes[place][place] += 1e-3
    assert not any(is_matrix_of_distances(changed) for changed in changes.values())
    assert not is_matrix_of_distances(distances[:-1])
    assert not is_matrix_of_distances(np.zeros((n, n)))


def test_links_of_a_graph_are_no_distances():
    links = np.triu(np.random.default_rng(2).random((60, 60)) < 0.1, 1).astype(float)
    assert not is_matrix_of_distances(links + links.T)


# Counts


def test_counts_that_are_not_whole():
    X = np.random.default_rng(3).poisson(4.0, (40, 3)).astype(float)
    assert warned(X, "poisson") == []
    X[0, 0] = 2.5
    (said,) = warned(X, "poisson")
    assert "not whole, such as 2.5" in said
    assert "'exponential'" in said
    assert "'auto'" in said


@pytest.mark.parametrize("family", MEASURING)
def test_counts_taken_for_measurements(family):
    X = np.random.default_rng(4).poisson(1.0, (100, 4)).astype(float)
    (said,) = warned(X, family)
    assert f"{100 * (X == 0.0).mean():.0f} % of them 0" in said
    assert "'poisson'" in said
    assert "'multinomial'" in said
    assert warned(X, "poisson") == []
    assert warned(X, "cosine" if X.any(axis=1).all() else "poisson") == []


@pytest.mark.parametrize("family", MEASURING)
def test_zeros_and_ones_taken_for_measurements(family):
    X = (np.random.default_rng(5).random((100, 6)) < 0.3).astype(float)
    (said,) = warned(X, family)
    assert "'bernoulli'" in said
    assert warned(X, "bernoulli") == []


def ages(rng):
    return np.column_stack([rng.integers(0, 95, 500), rng.integers(1950, 2024, 500)])


def answers(rng):
    return rng.integers(1, 6, (500, 8))


def answers_from_zero(rng):
    return rng.binomial(4, 0.5, (500, 8))


def photo(rng):
    """Pixels of a night: one in ten black, a lamp in the middle."""
    dark = np.clip(rng.normal(20.0, 15.0, (3_000, 3)), 0.0, 255.0)
    dark[rng.choice(3_000, 30)] = 250.0
    return np.round(dark)


def grey_values(rng):
    """Pictures of which four fifths are white."""
    return np.where(rng.random((300, 49)) < 0.8, 0.0, rng.integers(1, 256, (300, 49)) / 255.0)


def grid(rng):
    return np.argwhere(np.ones((12, 12)))


def signed(rng):
    return rng.integers(-3, 4, (200, 3))


def dear(rng):
    return rng.poisson(30.0, (200, 3))


@pytest.mark.parametrize("family", ["ward", "auto"])
@pytest.mark.parametrize(
    "rows", [ages, answers, answers_from_zero, photo, grey_values, grid, signed, dear]
)
def test_whole_numbers_that_are_measurements(rows, family):
    assert warned(rows(np.random.default_rng(6)).astype(float), family) == []


def test_a_few_rows_typed_by_hand():
    assert warned([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [0.0, 8.0]], "ward") == []
    assert warned(np.eye(4)[[0, 1, 1]], "ward") == []


# Where, when and how


@pytest.mark.parametrize(
    "call",
    [
        lambda X: linkage(X, "ward"),
        lambda X: RBHC("ward", n_clusters=2).fit(X),
        lambda X: RBHC("ward", n_clusters=2).fit_predict(X),
        lambda X: RBHC("ward", n_clusters=2).fit_transform(X),
        lambda X: make_pipeline(FunctionTransformer(), RBHC("ward", n_clusters=2)).fit(X),
    ],
    ids=["linkage", "fit", "fit_predict", "fit_transform", "pipeline"],
)
def test_the_warning_points_at_the_call(call):
    with pytest.warns(UserWarning, match="standard deviation") as caught:
        call(normal() * [1.0, 1e4, 1.0])
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]


@pytest.mark.filterwarnings("ignore:X looks like counts")
def test_trees_of_samples_say_nothing():
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.poisson(0.5, (60, 3)), rng.poisson(9.0, (60, 3))]).astype(float)
    model = RBHC("ward", n_clusters=2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.assess(X, n_resamples=2)
        fastrbhc.predictive_threshold(model.dendrogram_, X)


def test_rows_of_the_package_itself_are_deliberate():
    X = normal() * [1.0, 1e4, 1.0]
    with deliberately():
        assert warned(X, "ward") == []
    assert len(warned(X, "ward")) == 1


def test_a_long_matrix_is_judged_by_a_sample():
    seen = []

    class Curious(SphericalGaussian):
        def advice(self, X, names):
            seen.append((X.shape, names))
            return ["curious"]

    for shape, most in [((25_000, 2), 10_000), ((5_000, 400), 2_500), ((30, 2), 30)]:
        with pytest.warns(UserWarning, match="curious"):
            fastrbhc._advice.warn_of_misfits(np.ones(shape), Curious(), None)
        rows, columns = seen[-1][0]
        assert columns == shape[1]
        assert most // 2 < rows <= most
