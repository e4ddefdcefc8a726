"""Bad input is rejected before any work, with a message that says where it is and what to do."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from certificates import certify_greedy
from scipy import sparse

import fastrbhc
from fastrbhc import RBHC, families
from fastrbhc import _validation as validation

GOOD = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])


def with_value(value, row=1, column=1):
    X = GOOD.copy()
    X[row, column] = value
    return X


def entry_points(family, good=GOOD):
    """Every function that takes rows."""
    return {
        "linkage": lambda X: fastrbhc.linkage(X, family),
        "dissimilarity": lambda X: fastrbhc.dissimilarity(good, X, family),
        "kmeans_threshold": lambda X: fastrbhc.kmeans_threshold(X, family, 1),
        "fit": lambda X: RBHC(family).fit(X),
    }


every_entry = pytest.mark.parametrize("entry", list(entry_points("ward")))


@pytest.fixture
def no_work(monkeypatch):
    """Makes any step beyond the checks fail."""

    def worked(*arguments, **keywords):
        raise AssertionError("work began before the input was checked")

    monkeypatch.setattr(sys.modules["fastrbhc._choosing"], "build", worked)
    monkeypatch.setattr(sys.modules["fastrbhc.selection.held_out"], "sample_of", worked)
    monkeypatch.setitem(sys.modules["fastrbhc.thresholds"].FROM_ROWS, "kmeans", worked)
    monkeypatch.setattr(sys.modules["fastrbhc.thresholds"], "_kmeans_threshold", worked)
    monkeypatch.setattr(
        sys.modules["fastrbhc._engine.clusters.build"], "clusters_of_groups", worked
    )


# Rows

REFUSED = [
    ("ward", np.nan, r"contains NaN: row 1, column 1 is nan\. Drop such rows or fill in"),
    ("ward", np.inf, r"contains infinity: row 1, column 1 is inf\. Drop such rows"),
    ("ward", -np.inf, r"contains infinity: row 1, column 1 is -inf"),
    ("ward", 1e200, r"squares overflow.*: row 1, column 1 is 1e\+200.* in a larger unit"),
    ("gaussian", -1e200, r"squares overflow.*: row 1, column 1 is -1e\+200"),
    ("poisson", -1.0, r"Negative values .*: row 1, column 1 is -1\. .*'poisson' .*\[0, inf\)"),
    ("poisson", np.nan, r"contains NaN: row 1, column 1"),
    ("multinomial", -0.5, r"Negative values .*: row 1, column 1 is -0\.5"),
    ("exponential", -2.0, r"Negative values .*: row 1, column 1 is -2\. .*\(0, inf\)"),
    ("exponential", 0.0, r"reaches 0: row 1, column 1 is 0\. .*positive smoothing"),
]


@every_entry
@pytest.mark.parametrize(("family", "value", "message"), REFUSED)
def test_values_that_are_refused(entry, family, value, message, no_work):
    with pytest.raises(ValueError, match=message):
        entry_points(family)[entry](with_value(value))


@every_entry
def test_shares_above_one(entry, no_work):
    X = np.full((3, 2), 0.5)
    X[2, 0] = 1.5
    message = r"Too large values .*: row 2, column 0 is 1\.5\. .*'bernoulli' .*\[0, 1\]"
    with pytest.raises(ValueError, match=message):
        entry_points("bernoulli", good=X[:2])[entry](X)


@every_entry
def test_rows_without_any_count(entry, no_work):
    X = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    message = r"2 rows without any count, the first being row 1\. .* drop such rows"
    with pytest.raises(ValueError, match=message):
        entry_points("multinomial")[entry](X)


@pytest.mark.parametrize("X", [[[0.0], [-7e15]], [[1e118, 1e118], [1.1e118, 1e118]]])
def test_smoothing_too_small_for_the_data(X, no_work):
    with pytest.raises(ValueError, match=r"Column 0 .* choose a larger smoothing"):
        fastrbhc.linkage(X, families.Gaussian(smoothing=1e-294))


@pytest.mark.parametrize("family", [families.Poisson(1e100), families.Exponential(1e100)])
def test_smoothing_beside_which_differences_vanish(family, no_work):
    with pytest.raises(ValueError, match=r"vanish beside the smoothing 1e\+100\. .*smaller"):
        fastrbhc.linkage([[1e-99, 0.0], [2e-99, 1e-100], [1e-99, 1e-99]], family)


TINY = np.array([[0, 7, 0], [1, 4, 8], [2, 2, 8], [4, 5, 1.0], [9, 9, 9]]) * 1e-310


@pytest.mark.parametrize("family", ["ward", "gaussian", "diagonal_gaussian", "poisson"])
@pytest.mark.parametrize("algorithm", ["auto", "greedy", "nn_chain"])
@pytest.mark.parametrize("neighbors", ["auto", "brute", "kd_tree"])
@pytest.mark.parametrize("offset", [0.0, np.array([1.0, 0.0, 0.0])])
def test_differences_whose_squares_underflow(family, algorithm, neighbors, offset, no_work):
    """The same answer from all algorithms and backends, also next to a constant column."""
    X = offset + TINY * (np.asarray(offset) == 0.0)
    with pytest.raises(ValueError, match=r"differ by at most 9e-310.* in a smaller unit"):
        fastrbhc.linkage(X, family, algorithm=algorithm, neighbors=neighbors)


@every_entry
@pytest.mark.parametrize(
    ("family", "X", "message"),
    [
        ("exponential", [[1e-130, 1.0], [2.0, 3.0]], r"as small as 1e-130, whose reciprocals"),
        ("multinomial", [[1.0, 2.0], [1e-130, 1e-131]], r"row 1 adds up to 1\.1e-130"),
        ("von_mises_fisher", [[1.0, 2.0], [1e-130, 0.0]], r"row 1 has no value above 1e-120"),
    ],
)
def test_rows_whose_reciprocals_overflow(entry, family, X, message, no_work):
    with pytest.raises(ValueError, match=message):
        entry_points(family)[entry](np.array(X))


@pytest.mark.parametrize("family", ["ward", "gaussian", "poisson", "bernoulli", "multinomial"])
@pytest.mark.parametrize("algorithm", ["auto", "greedy", "nn_chain"])
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_tiny_values_beside_ordinary_ones(family, algorithm, neighbors):
    """As probabilities often are: their differences count as 0."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1e-320, 1e-200, 1e-100, 0.5, 1.0], (40, 3))
    X[:, 0] = 0.25 * rng.integers(1, 5, 40)
    tree = fastrbhc.linkage(X, family, algorithm=algorithm, neighbors=neighbors)
    assert tree.n_trees == 1
    if algorithm != "nn_chain":
        certify_greedy(tree, X, None, family)


def test_how_many_more_values_are_wrong(no_work):
    X = GOOD.copy()
    X[1:] = np.nan
    with pytest.raises(ValueError, match=r"row 1, column 0 is nan \(and 3 more\)"):
        fastrbhc.linkage(X, "ward")


def test_smoothing_lets_zeros_in():
    smoothed = families.Exponential(smoothing=0.1)
    assert fastrbhc.linkage(with_value(0.0), smoothed).n_trees == 1


def test_values_at_the_edges_are_taken():
    assert fastrbhc.linkage([[0.0, 1.0], [1.0, 1.0]], "bernoulli").n_trees == 1
    assert fastrbhc.linkage([[0.0, 0.0], [1.0, 0.0]], "poisson").n_trees == 1
    assert fastrbhc.linkage([[1e100], [-1e100], [0.0]], "ward").n_trees == 1


@every_entry
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_of_data_frames_are_named(entry, frame, no_work):
    data = frame({"length": [1.0, 2.0, 3.0], "width": [1.0, -4.0, 2.0]})
    with pytest.raises(ValueError, match="row 1, column 'width' is -4"):
        entry_points("poisson")[entry](data)


def test_missing_values_of_a_data_frame(no_work):
    data = pd.DataFrame({"length": [1.0, None, 3.0], "width": [1.0, 4.0, 2.0]})
    with pytest.raises(ValueError, match="contains NaN: row 1, column 'length'"):
        fastrbhc.linkage(data, "ward")


def test_which_of_two_groups_is_wrong():
    with pytest.raises(ValueError, match="Input X0 contains NaN"):
        fastrbhc.dissimilarity(with_value(np.nan), GOOD, "ward")
    with pytest.raises(ValueError, match="Input X1 contains NaN"):
        fastrbhc.dissimilarity(GOOD, with_value(np.nan), "ward")
    with pytest.raises(ValueError, match="X0 has 2 columns and X1 has 1"):
        fastrbhc.dissimilarity(GOOD, GOOD[:, :1], "ward")


# Shapes and types


@pytest.mark.parametrize("entry", ["linkage", "kmeans_threshold", "fit"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (GOOD[:1], r"1 sample.* minimum of 2 is required"),
        (GOOD[:0], r"0 sample.* minimum of 2 is required"),
        (GOOD[:, :0], r"0 feature.* minimum of 1 is required"),
        (GOOD[0], "Expected 2D array, got 1D array instead"),
        (GOOD[None], r"[Ff]ound array with dim 3"),
        (5.0, "Expected 2D array, got scalar array instead"),
        ([["a", "b"], ["c", "d"]], "could not convert string to float: 'a'"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous|setting an array element"),
        (GOOD * 1j, "Complex data not supported"),
    ],
    ids=["one row", "no row", "no column", "1-D", "3-D", "scalar", "strings", "ragged", "complex"],
)
def test_shapes_and_types_that_are_refused(entry, X, message, no_work):
    with pytest.raises(ValueError, match=message):
        entry_points("ward")[entry](X)


def test_one_row_is_a_group():
    assert fastrbhc.dissimilarity(GOOD[:1], GOOD[1:2], "ward") > 0.0
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        fastrbhc.dissimilarity(GOOD[:0], GOOD, "ward")


@every_entry
def test_sparse_rows_where_zero_is_nothing_special(entry, no_work):
    with pytest.raises(TypeError, match=r"dense rows only\. Families of counts take sparse rows"):
        entry_points("ward")[entry](sparse.csr_matrix(GOOD))


@every_entry
def test_sparse_rows_are_checked_too(entry, no_work):
    with pytest.raises(ValueError, match="row 1, column 1 is -3"):
        entry_points("poisson")[entry](sparse.csr_matrix(with_value(-3.0)))


# Weights


@pytest.mark.parametrize("entry", ["linkage", "kmeans_threshold", "fit"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, np.nan, 1.0], "sample_weight is not finite in row 1: nan"),
        ([1.0, 1.0, np.inf], "sample_weight is not finite in row 2: inf"),
        ([1.0, -2.0, 1.0], "sample_weight is negative in row 1: -2"),
        ([1.0, 1e200, 1.0], "sample_weight is larger than .* in row 1"),
        ([0.0, 0.0, 0.0], "sample_weight is zero in every row"),
        ([1.0, 1.0], r"sample_weight has shape \(2,\), expected \(3,\)"),
        ([[1.0], [1.0], [1.0]], r"sample_weight has shape \(3, 1\), expected \(3,\)"),
        (["a", "b", "c"], "could not convert string to float"),
    ],
    ids=["nan", "inf", "negative", "huge", "zero", "short", "2-D", "strings"],
)
def test_weights_that_are_refused(entry, weights, message, no_work):
    functions = {
        "linkage": lambda: fastrbhc.linkage(GOOD, "ward", sample_weight=weights),
        "kmeans_threshold": lambda: fastrbhc.kmeans_threshold(
            GOOD, "ward", 1, sample_weight=weights
        ),
        "fit": lambda: RBHC("ward").fit(GOOD, sample_weight=weights),
    }
    with pytest.raises(ValueError, match=message):
        functions[entry]()


def test_one_weight_for_all_rows():
    one = fastrbhc.linkage(GOOD, "ward", sample_weight=2)
    all_rows = fastrbhc.linkage(GOOD, "ward", sample_weight=[2.0, 2.0, 2.0])
    np.testing.assert_array_equal(one.heights, all_rows.heights)


# Parameters


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"threshold": -1.0}, ValueError, "threshold has to be at least 0, got -1"),
        ({"threshold": np.nan}, ValueError, "threshold has to be at least 0, got nan"),
        (
            {"threshold": "1"},
            ValueError,
            "one of 'predictive', 'gap', 'evidence', 'kmeans' or a number, got '1'",
        ),
        ({"threshold": True}, TypeError, "threshold has to be a number or None, got True"),
        ({"n_jobs": 0}, ValueError, "n_jobs has to be positive"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs has to be a whole number or None, got 1.5"),
        ({"n_jobs": True}, TypeError, "n_jobs has to be a whole number or None, got True"),
        ({"algorithm": "fast"}, ValueError, "algorithm has to be one of 'auto', .*, got 'fast'"),
        ({"algorithm": None}, ValueError, "algorithm has to be one of 'auto', .*, got None"),
        ({"neighbors": "ball"}, ValueError, "neighbors has to be one of 'auto', .*, got 'ball'"),
        ({"family": "poison"}, ValueError, "unknown family 'poison': did you mean 'poisson'"),
        ({"family": "gausian"}, ValueError, "did you mean .*'gaussian'"),
        ({"family": 3}, TypeError, "family has to be a name or a record"),
        ({"family": families.Poisson(-1.0)}, ValueError, "smoothing has to be .*, got -1"),
    ],
    ids=str,
)
def test_parameters_that_are_refused(parameters, error, message, no_work):
    with pytest.raises(error, match=message):
        fastrbhc.linkage(GOOD, **{"family": "ward", **parameters})


@pytest.mark.parametrize(
    ("n_clusters", "error", "message"),
    [
        (4, ValueError, "n_clusters=4 is more than the number of rows, 3"),
        (0, ValueError, "n_clusters has to be at least 1, got 0"),
        (1.5, TypeError, "n_clusters has to be a whole number, got 1.5"),
        (True, TypeError, "n_clusters has to be a whole number, got True"),
    ],
)
def test_numbers_of_clusters_that_are_refused(n_clusters, error, message):
    tree = fastrbhc.linkage(GOOD, "ward")
    with pytest.raises(error, match=message):
        tree.cut(n_clusters=n_clusters)
    with pytest.raises(error, match=message):
        RBHC("ward", n_clusters=n_clusters).fit(GOOD)


@pytest.mark.fast
def test_threads_count_from_all(monkeypatch):
    monkeypatch.setattr(validation, "available_cores", lambda: 4)
    counted = {jobs: validation.check_threads(jobs) for jobs in (1, 3, -1, -2, -9, None)}
    assert counted == {1: 1, 3: 3, -1: 4, -2: 3, -9: 1, None: 4}


@pytest.mark.fast
def test_numbers_from_numpy_are_numbers():
    assert validation.check_count(np.int32(3), "k") == 3
    assert validation.check_threshold(np.float32(0.5)) == 0.5
    assert validation.check_threshold(None) == np.inf


# Kinds of data that would be misread


def test_text_in_a_data_frame_is_named():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": ["x", "y", "z"]})
    for call in (fastrbhc.linkage, lambda data: RBHC().fit(data)):
        with pytest.raises(ValueError, match=r"column 'kind' of X holds text.*drop it"):
            call(frame)


def test_dates_are_refused():
    dates = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    for data in (dates[:, None], pd.DataFrame({"day": dates})):
        with pytest.raises(ValueError, match="holds dates or times"):
            fastrbhc.linkage(data)


def test_masked_values_are_missing_values():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="masked values"):
        fastrbhc.linkage(np.ma.masked_array(X, mask=X > 4.0))
    unmasked = fastrbhc.linkage(np.ma.masked_array(X, mask=False))
    np.testing.assert_array_equal(unmasked.heights, fastrbhc.linkage(X).heights)


def test_a_variance_that_makes_everything_overflow():
    family = families.SphericalGaussian(1e-150)
    with pytest.raises(ValueError, match="Choose a larger variance"):
        fastrbhc.linkage([[0.0], [1e100]], family)


def test_the_name_of_a_built_in_family_is_not_given_away():
    with pytest.raises(ValueError, match="the name 'poisson' belongs to fastrbhc"):

        @families.family("poisson", separable=True, reducible=False, domain=families.Domain())
        class Taken(NamedTuple):
            def divergence(self, value, mean, step):
                return step * step

    assert families.registered()["poisson"] is families.Poisson


# Long jobs


@pytest.fixture
def every_job_is_long(monkeypatch):
    module = sys.modules["fastrbhc._engine.planning.cost_model"]
    monkeypatch.setattr(module, "_LONG_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WORTH_A_PILOT", 1_000)


def test_a_long_job_is_announced_and_done(every_job_is_long):
    X = np.random.default_rng(0).normal(size=(250, 2))
    message = r"linkage of 250 distinct rows with 2 columns may take about .* minutes.*threshold"
    with pytest.warns(UserWarning, match=message) as caught:
        tree = fastrbhc.linkage(X, "ward")
    assert tree.n_trees == 1
    assert [warning.filename for warning in caught] == [__file__]  # refers to the caller's line


def test_a_long_fit_is_announced_and_done(every_job_is_long):
    X = np.random.default_rng(0).normal(size=(250, 2))
    with pytest.warns(UserWarning, match="250 distinct rows") as caught:
        model = RBHC("ward", n_clusters=3).fit(X)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_clusters_ == 3


def test_a_short_job_is_not_announced(recwarn):
    fastrbhc.linkage(np.random.default_rng(0).normal(size=(50, 2)), "ward")
    assert not recwarn.list
