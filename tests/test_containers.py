"""Data as they come: broken sparse matrices, frames of every kind, dates, masks, huge numbers."""

from __future__ import annotations

import datetime
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import fastrbhc
from fastrbhc import BHC, RBHC
from fastrbhc._containers import ColumnError, as_column, as_matrix
from fastrbhc.bhc import log_marginal_likelihood

ROWS = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0], [1.0, 1.0, 1.0]])
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def broken(form="csr", **parts):
    """A 4 × 3 matrix whose parts were exchanged after SciPy had looked at them."""
    X = sparse.csr_array(ROWS).asformat(form)
    for name, part in parts.items():
        setattr(X, name, part)
    return X


def out_of_bounds():
    X = broken()
    X.indices[0] = 10**9
    return X


# Sparse matrices


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_every_format_is_read(form, kind):
    found = as_matrix(kind(ROWS.astype(int)).asformat(form))
    np.testing.assert_array_equal(found.toarray(), ROWS)
    assert found.dtype == np.float64


def with_row(form, index):
    X = broken(form)
    if form == "coo":
        X.row[0] = index
    elif form == "lil":
        X.rows[0][0] = index
    elif form == "dok":
        # In older SciPy the matrix is itself a dict, whose own `X[index, 0] = 1.0` would check.
        dict.__setitem__(getattr(X, "_dict", X), (index, 0), 1.0)
    else:
        X.indices[0] = index
    return X


@pytest.mark.parametrize("index", [10**9, 4, -1])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok"])
def test_indices_that_lead_outside(form, index):
    with pytest.raises(ValueError, match=r"Input X is a sparse matrix with a broken structure"):
        as_matrix(with_row(form, index))


INT32 = np.int32
BROKEN = {
    "indptr decreases": {"indptr": np.array([0, 5, 2, 3, 8], INT32)},
    "indptr ends": {"indptr": np.array([0, 2, 3, 5, 99], INT32)},
    "indptr begins": {"indptr": np.array([1, 2, 3, 5, 8], INT32)},
    "indptr has 3 entries": {"indptr": np.array([0, 2, 8], INT32)},
    "indices is an array of float64": {"indices": np.zeros(8)},
    "indices is an array of uint8": {"indices": np.zeros(8, np.uint8)},
    "with 2 dimensions": {"indices": np.zeros((8, 1), INT32)},
    r"data has shape \(2,\)": {"data": np.ones(2)},
    r"data has shape \(8, 1\)": {"data": np.ones((8, 1))},
}


@pytest.mark.parametrize("fault", BROKEN)
def test_other_faults_of_structure(fault):
    with pytest.raises(ValueError, match=fault):
        as_matrix(broken(**BROKEN[fault]))


@pytest.mark.parametrize(
    ("form", "parts", "fault"),
    [
        ("dia", {"offsets": np.array([0, 0, 1], INT32)}, "offset"),
        ("dia", {"data": np.ones(3)}, "data has shape"),
        ("bsr", {"data": np.ones((2, 3, 3))}, "blocks of shape"),
        ("bsr", {"data": np.ones(8)}, "data has shape"),
        ("coo", {"data": np.ones(3)}, "row has 8 entries"),
    ],
)
def test_faults_of_other_formats(form, parts, fault):
    with pytest.raises(ValueError, match=fault):
        as_matrix(broken(form, **parts))


def test_lists_of_two_lengths():
    X = broken("lil")
    X.rows[1] = [0, 1, 2]
    with pytest.raises(ValueError, match="a row has more indices than values"):
        as_matrix(X)


def test_duplicates_are_summed_and_zeros_are_zeros():
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 7.0, 0.0]), np.array([0, 0, 1, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )
    X.has_canonical_format = True  # which is not true
    reference = fastrbhc.linkage([[3.0, 0.0], [0.0, 7.0]], "poisson")
    assert fastrbhc.linkage(X, "poisson").heights.tolist() == reference.heights.tolist()


def test_indices_of_64_bits():
    reference = fastrbhc.linkage(ROWS, "poisson").heights
    wide = broken(indices=broken().indices.astype(np.int64))  # and indptr of 32
    np.testing.assert_array_equal(fastrbhc.linkage(wide, "poisson").heights, reference)


def followed(X):
    """The entries of a compressed matrix, one by one; IndexError where they lead outside."""
    dense = np.zeros(X.shape)
    target = dense if X.format == "csr" else dense.T
    for major in range(target.shape[0]):
        start, stop = int(X.indptr[major]), int(X.indptr[major + 1])
        if not 0 <= start <= stop <= min(X.indices.size, X.data.size):
            raise IndexError
        for place in range(start, stop):
            if X.indices[place] < 0:
                raise IndexError
            target[major, X.indices[place]] += X.data[place]
    return dense


def damaged(rng):
    """A matrix with a few of its indices changed, most often by a little."""
    X = broken(rng.choice(["csr", "csc"]))
    for _ in range(rng.integers(1, 4)):
        part = X.indices if rng.random() < 0.5 else X.indptr
        by = rng.choice([-1, 1, 2, 3, 7, 1000, -(2**31), 2**30])
        part[rng.integers(part.size)] = np.clip(int(part[0]) + by, -(2**31), 2**31 - 1)
    return X


def test_damaged_indices_are_refused_or_harmless():
    rng, taken = np.random.default_rng(0), 0
    for _ in range(2_000):
        X = damaged(rng)
        try:
            reference = followed(X)
        except IndexError:
            with pytest.raises(ValueError, match="broken structure"):
                as_matrix(X)
            continue
        try:
            found = as_matrix(X)
        except ValueError:  # such as rows that do not begin at 0
            continue
        np.testing.assert_array_equal(found.toarray(), reference)
        taken += 1
    assert taken > 50


@pytest.mark.skipif(sparse.coo_array(np.ones(3)).ndim == 2, reason="SciPy makes it a row")
def test_a_sparse_array_with_one_dimension():
    with pytest.raises(ValueError, match=r"Expected 2D array, got a sparse array of shape \(3,\)"):
        fastrbhc.linkage(sparse.coo_array(np.ones(3)), "poisson")


def test_a_huge_shape_with_little_data_takes_no_memory():
    X = sparse.csc_array(([1.0], [5], [0, 1, 1, 1]), shape=(10**12, 3))
    with pytest.raises(MemoryError, match=r"Input X has 1,000,000,000,000 rows"):
        fastrbhc.linkage(X, "poisson")


COUNTS = np.eye(4, 3) + 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda X: fastrbhc.linkage(X, "poisson"),
        lambda X: fastrbhc.linkage(X, "ward"),
        lambda X: RBHC("poisson").fit(X),
        lambda X: RBHC("poisson", n_clusters=2).fit(COUNTS).predict(X),
        lambda X: fastrbhc.dissimilarity(X, COUNTS, "poisson"),
        lambda X: fastrbhc.dissimilarity(COUNTS, X, "poisson"),
        lambda X: fastrbhc.taylor_dissimilarity(X, COUNTS, "poisson"),
        lambda X: fastrbhc.kmeans_threshold(X, "poisson", 2),
        lambda X: fastrbhc.linkage(COUNTS, "poisson").summary(X, family="poisson"),
        lambda X: fastrbhc.plotting.plot_clusters(X, [0, 1, 0, 1], family="poisson"),
        lambda X: fastrbhc.bhc_linkage(X, "poisson"),
        lambda X: BHC("poisson").fit(X),
        lambda X: BHC("poisson").fit(COUNTS).predict(X),
        lambda X: BHC("poisson").fit(COUNTS).score_samples(X),
        lambda X: log_marginal_likelihood(X, "poisson"),
    ],
)
def test_no_way_in_for_broken_indices(call):
    with pytest.raises(ValueError, match="broken structure: indices holds 1000000000"):
        call(out_of_bounds())


# Frames


def frames(values):
    """A column of these values after a column of numbers, in every kind of frame."""
    table = pa.table({"n": [1, 2], "x": values})
    return {
        "pandas": pd.DataFrame({"n": [1, 2], "x": values}),
        "polars": pl.DataFrame({"n": [1, 2], "x": values}, strict=False),
        "pyarrow": table,
        "pandas of pyarrow": table.to_pandas(types_mapper=pd.ArrowDtype),
    }


every_frame = pytest.mark.parametrize("kind", list(frames([1, 2])))


@every_frame
@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([1, 2], [1.0, 2.0]),
        ([1.5, None], [1.5, np.nan]),
        ([1, None], [1.0, np.nan]),
        ([True, False], [1.0, 0.0]),
        ([True, None], [1.0, np.nan]),
        ([Decimal("1.5"), Decimal(2)], [1.5, 2.0]),
        ([Decimal("1.5"), None], [1.5, np.nan]),
        (["1", "2.5"], [1.0, 2.5]),
        ([None, None], [np.nan, np.nan]),
    ],
    ids=str,
)
def test_columns_that_are_numbers(kind, values, numbers):
    np.testing.assert_array_equal(as_matrix(frames(values)[kind])[:, 1], numbers)


DAY = datetime.datetime(2020, 1, 1)


@every_frame
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (DAY, "holds dates or times"),
        (DAY.replace(tzinfo=datetime.UTC), "holds dates or times"),
        (DAY.date(), "holds dates or times"),
        (DAY.time(), "holds dates or times"),
        (datetime.timedelta(1), "holds dates or times"),
        ("a", "holds text"),
        (b"\xff", "holds text"),
        ([1, 2], "holds text or other things"),
        ({"a": 1}, "holds text or other things|several values"),
    ],
    ids=str,
)
def test_columns_that_are_not(kind, value, message):
    frame = frames([value, value])[kind]
    with pytest.raises(ValueError, match=f"column 'x' of X {message}"):
        fastrbhc.linkage(frame, "ward")
    with pytest.raises(ValueError, match=f"column 'x' of X {message}"):
        RBHC("ward").fit(frame)


@pytest.mark.parametrize(
    "column",
    [
        pd.period_range("2020", periods=2),
        pd.date_range("2020", periods=2, tz="UTC"),
        pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_of_the_frames_own_kinds(column):
    frame = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    with pytest.raises(ColumnError, match=r"column 'x' of X holds (dates|several values)"):
        as_matrix(frame({"x": column}))


def test_other_kinds_of_pandas_that_are_numbers():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None], "Int64"),
            "sparse": pd.arrays.SparseArray([0.0, 3.0]),
            "category": pd.Categorical([2, 1]),
        }
    )
    np.testing.assert_array_equal(as_matrix(frame), [[1.0, 0.0, 2.0], [np.nan, 3.0, 1.0]])


def test_two_columns_of_one_name():
    frame = pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"])
    with pytest.raises(ValueError, match="column 'x' of X holds text"):
        fastrbhc.linkage(frame)
    assert as_matrix(frame.assign(x=1.0)).shape == (2, 2)


def test_pyarrow_tables_are_taken():
    columns = {"a": [1.0, 2.0, 9.0], "b": [2.0, 2.0, 7.0]}
    table, X = pa.table(columns), np.array(list(columns.values())).T
    reference = RBHC("ward", n_clusters=2).fit(X)
    model = RBHC("ward", n_clusters=2).fit(table)
    np.testing.assert_array_equal(model.distances_, reference.distances_)
    np.testing.assert_array_equal(model.predict(table), reference.labels_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="row 1, column 'b' is -2"):
        fastrbhc.linkage(pa.table({"a": [1, 2], "b": [2, -2]}), "poisson")
    batch = table.to_batches()[0]
    assert fastrbhc.linkage(batch, "ward").n_leaves == 3
    model = RBHC("ward", n_clusters=2).fit(batch)
    np.testing.assert_array_equal(model.predict(batch), reference.labels_)


def test_lazy_frames_are_explained():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"a query that has not been run.*X\.collect\(\)"):
            fastrbhc.linkage(pl.LazyFrame({"a": [1, 2]}))


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(ColumnError("no numbers", 3)))
    assert (str(error), error.column) == ("no numbers", 3)


# Lists and arrays


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.datetime64("2020")], [np.datetime64("2021")]], "holds dates or times"),
        (np.array([[np.timedelta64(1, "D")]], object), "holds dates or times"),
        ([[DAY], [DAY]], "holds dates or times"),
        ([[pd.NaT], [1.0]], "holds dates or times"),
        ([[10**400, 1], [1, 2]], "too large for double precision"),
        ([np.ma.array([1.0, 2.0], mask=[0, 1]), [1, 2]], "masked values"),
        (np.zeros((2, 2), [("a", float)]), "named fields"),
        ("counts.csv", "the text 'counts.csv'.* read that first"),
        (None, "is None"),
        ({"a": [1, 2]}, "of the type dict"),
    ],
    ids=str,
)
def test_what_is_no_matrix(X, message):
    for call in (fastrbhc.linkage, lambda data: RBHC().fit(data)):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_lists_within_lists():
    nested = 1.0
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(ValueError, match="dimension"):
        fastrbhc.linkage(nested)


def test_missing_objects_are_missing_values():
    with pytest.raises(ValueError, match="contains NaN: row 1, column 0"):
        fastrbhc.linkage(np.array([[1, 2], [pd.NA, 3]], object))


def test_numbers_beyond_double_precision_are_infinite_without_a_warning():
    X = np.full((2, 1), 1e300, np.longdouble) * np.longdouble(1e300)
    with pytest.raises(ValueError, match="contains infinity"):
        fastrbhc.linkage(X, "ward")


# Weights and other numbers


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "sample_weight has masked values"),
        ([1.0, np.ma.masked], "sample_weight has masked values"),
        (np.array(["2020", "2021"], "M8[D]"), "sample_weight holds dates or times"),
        (np.array([1, 2], "m8[s]"), "sample_weight holds dates or times"),
        (pd.Series(pd.date_range("2020", periods=2, tz="UTC")), "sample_weight holds dates"),
        ([10**400, 1], "sample_weight contains a whole number too large"),
        (10**400, "sample_weight contains a whole number too large"),
        (pd.Series([1, None], dtype="Int64"), "not finite in row 1"),
        (sparse.csr_array(np.ones((1, 2))), "sample_weight is a sparse matrix"),
        ("ab", "sample_weight holds text"),
    ],
    ids=str,
)
def test_weights_that_are_refused(weights, message):
    X = [[0.0], [1.0]]
    for call in (fastrbhc.linkage, lambda *a, **k: RBHC("ward").fit(a[0], **k)):
        with pytest.raises(ValueError, match=message):
            call(X, sample_weight=weights)


def test_columns_of_weights():
    for given in (
        [1, 2],
        np.ma.array([1, 2]),
        pd.Series([1, 2]),
        pl.Series([1, 2]),
        pa.array([1, 2]),
    ):
        assert as_column(given, "w").tolist() == [1, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda huge: fastrbhc.linkage(ROWS, "ward", threshold=huge),
        lambda huge: fastrbhc.linkage(ROWS, "ward").cut(threshold=huge),
        lambda huge: fastrbhc.linkage(ROWS, fastrbhc.families.Poisson(huge)),
        lambda huge: fastrbhc.bhc_linkage(ROWS, "poisson", huge),
        lambda huge: fastrbhc.bhc_linkage(ROWS, "poisson", hyperparameters={"shape": huge}),
    ],
)
def test_parameters_beyond_double_precision(call):
    with pytest.raises(ValueError, match=r"too large (for double precision)?"):
        call(10**400)


def test_a_million_threads_are_not_started():
    X = np.random.default_rng(0).normal(size=(300, 2))
    reference = fastrbhc.linkage(X, "ward", n_jobs=1).heights
    np.testing.assert_array_equal(fastrbhc.linkage(X, "ward", n_jobs=10**6).heights, reference)
