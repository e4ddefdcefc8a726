"""Data of all kinds: the tree is that of their rows."""

import sys
from itertools import pairwise

import numpy as np
import pytest

import fastrbhc
from fastrbhc import distributed

dask = pytest.importorskip("dask")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2)).round(1)
WEIGHTS = RNG.integers(1, 5, 300).astype(float)
STARTS = (0, 70, 70, 200, 300)  # the second partition is empty


def same(tree, rows=X, weights=None, names=None):
    reference = fastrbhc.linkage(rows, "ward", sample_weight=weights)
    np.testing.assert_array_equal(tree.merges, reference.merges)
    np.testing.assert_array_equal(tree.heights, reference.heights)
    np.testing.assert_array_equal(tree.weights, reference.weights)
    assert tree.feature_names == names


def linkage(data, **options):
    return distributed.linkage(data, "ward", n_cells=4, **options)


def parts(rows=X):
    return [rows[start:stop] for start, stop in pairwise(STARTS)]


@pytest.fixture
def small_partitions(monkeypatch):
    """Arrays and files have several partitions, as large ones have."""
    monkeypatch.setattr("fastrbhc.distributed._sources.rows_at_a_time", lambda *arguments: 70)


# Arrays and .npy files


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", ">f8"])
def test_files_of_any_numbers(tmp_path, small_partitions, dtype):
    rows = np.abs(10 * X).astype(dtype)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "weights.npy", WEIGHTS.astype("f4"))
    same(linkage(tmp_path / "rows.npy"), rows.astype(float))
    tree = linkage(str(tmp_path / "rows.npy"), sample_weight=tmp_path / "weights.npy")
    same(tree, rows.astype(float), WEIGHTS)


def test_memory_maps_and_their_slices(tmp_path, small_partitions):
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    same(linkage(stored))
    same(linkage(stored[50:][100:200]), X[150:250])
    same(linkage(np.asarray(stored)[1:]), X[1:])
    same(linkage(stored[::-1]), X[::-1])
    same(linkage(stored[::3, :1]), X[::3, :1])
    same(linkage(np.load(tmp_path / "columns.npy", mmap_mode="r")))
    same(linkage(tmp_path / "columns.npy"))
    same(linkage(stored, sample_weight=WEIGHTS), weights=WEIGHTS)
    same(linkage(stored * 2.0), 2.0 * X)


def test_memory_maps_that_differ_from_their_file(tmp_path, small_partitions):
    np.save(tmp_path / "rows.npy", X)
    changed = np.load(tmp_path / "rows.npy", mmap_mode="c")
    changed[0] = 7.0
    same(linkage(changed), np.asarray(changed))
    written = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    written[-1] = 8.0
    same(linkage(written), np.asarray(written))
    rows = np.array(written)
    np.save(tmp_path / "new.npy", X)
    (tmp_path / "new.npy").replace(tmp_path / "rows.npy")
    same(linkage(written), rows)
    (tmp_path / "rows.npy").unlink()
    same(linkage(written), rows)


def test_arrays_and_lists(small_partitions):
    same(linkage(X.tolist()))
    same(linkage(X, sample_weight=WEIGHTS.tolist()), weights=WEIGHTS)
    same(linkage(np.asfortranarray(X.astype("f4"))), X.astype("f4").astype(float))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.zeros(5), ValueError, "rows and columns were expected"),
        (np.zeros((3, 2), complex), ValueError, "numbers were expected"),
        (np.ma.masked_less(np.eye(3), 1.0), ValueError, "masked"),
        (3, ValueError, "rows and columns were expected"),
        ({"a": 1}, (TypeError, ValueError), "rows"),
        ("nowhere.npy", FileNotFoundError, "nowhere.npy does not exist"),
        ("s3://bucket/rows", ValueError, "Dask collection"),
    ],
)
def test_what_cannot_be_divided(data, error, message):
    with pytest.raises(error, match=message):
        linkage(data)


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_array

    for data in (csr_array(np.eye(4)), [csr_array(np.eye(4))]):
        with pytest.raises((TypeError, ValueError), match="csr_array"):
            linkage(data)


def test_columns_are_for_names(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    for data in (X, tmp_path / "rows.npy", iter([X])):
        with pytest.raises(
            ValueError, match=r"partition 0: names of columns|columns= is for names"
        ):
            linkage(data, columns=["a"])


# Parquet


def table(rows=X, **others):
    return pd.DataFrame({"a": rows[:, 0], "b": (10 * rows[:, 1]).astype(int), **others})


ROWS = table().to_numpy(float)


def test_parquet_files(tmp_path, small_partitions):
    path = tmp_path / "rows.parquet"
    table(w=WEIGHTS.astype("i2")).to_parquet(path, row_group_size=30)
    tree = linkage(path, sample_weight="w")
    same(tree, ROWS, WEIGHTS, ("a", "b"))
    same(linkage(path, columns=["b"]), ROWS[:, 1:], names=("b",))
    same(linkage(path, columns=["b", "a"]), ROWS[:, ::-1], names=("b", "a"))
    stored = distributed.linkage(path, "ward", columns=["a", "b"], output="files")
    assert stored.sizes == (60,) * 5
    with pytest.raises(ValueError, match=r"lacks the column 'c'.*'a', 'b', 'w'"):
        linkage(path, columns=["c"])
    with pytest.raises(ValueError, match="name of their column"):
        linkage(path, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="list of names"):
        linkage(path, columns="a")


def test_folders_of_parquet_files(tmp_path, monkeypatch):
    for number, part in enumerate(parts()):
        frame = table(part)
        # The order of columns does not matter.
        frame = frame[["b", "a"]] if number == 2 else frame
        frame.to_parquet(tmp_path / f"part-{number}.parquet")
    same(linkage(tmp_path), ROWS, names=("a", "b"))
    monkeypatch.chdir(tmp_path.parent)
    same(linkage(tmp_path.name), ROWS, names=("a", "b"))


def test_parquet_without_rows(tmp_path):
    with pytest.raises(FileNotFoundError, match="no parquet file"):
        linkage(tmp_path)
    table(X[:0]).to_parquet(tmp_path / "0.parquet")
    with pytest.raises(ValueError, match="no rows"):
        linkage(tmp_path)


# Blocks


def frames_of(kind, rows):
    if kind == "pandas":
        return table(rows)
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(table(rows))
    if kind == "record batch":
        return pa.RecordBatch.from_pandas(table(rows))
    return pa.Table.from_pandas(table(rows))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "record batch"])
def test_blocks_of_frames(kind):
    blocks = [frames_of(kind, part) for part in parts()]
    same(linkage(blocks), ROWS, names=("a", "b"))
    same(linkage(iter(blocks), columns=["b"]), ROWS[:, 1:], names=("b",))
    pairs = zip(blocks, parts(WEIGHTS), strict=True)
    same(linkage(pairs), ROWS, WEIGHTS, ("a", "b"))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_weights_are_a_column_of_frames(kind):
    frame = frames_of("pandas", X).assign(w=WEIGHTS)
    if kind != "pandas":
        frame = pa.Table.from_pandas(frame)
    if kind == "polars":
        frame = pytest.importorskip("polars").from_arrow(frame)
    same(linkage(frame, sample_weight="w"), ROWS, WEIGHTS, ("a", "b"))
    same(linkage([frame], sample_weight="w", columns=["b"]), ROWS[:, 1:], WEIGHTS, ("b",))
    same(linkage(frame, columns=["a", "b"]), ROWS, names=("a", "b"))
    with pytest.raises(ValueError, match="there is no column 'v'"):
        linkage(frame, sample_weight="v")


def test_blocks_of_arrays():
    same(linkage(parts()))
    same(linkage(part.tolist() for part in parts() if len(part)))
    same(linkage(list(zip(parts(), parts(WEIGHTS), strict=True))), weights=WEIGHTS)


def test_columns_in_another_order_are_refused():
    blocks = [table(X[:50]), table(X[50:])[["b", "a"]]]
    with pytest.raises(ValueError, match=r"partition 1 has the columns \('b', 'a'\)"):
        linkage(blocks)


# Dask, without a client


@pytest.mark.parametrize("chunks", [(70, 2), (70, 1), ((100, 0, 200), (1, 1))])
def test_dask_arrays(chunks):
    da = pytest.importorskip("dask.array")
    same(linkage(da.from_array(X, chunks=chunks)))
    weights = da.from_array(WEIGHTS, chunks=chunks[0])
    same(linkage(da.from_array(X, chunks=chunks), sample_weight=weights), weights=WEIGHTS)


def test_dask_arrays_of_unknown_lengths():
    da = pytest.importorskip("dask.array")
    array, weights = da.from_array(X, chunks=(70, 1)), da.from_array(WEIGHTS, chunks=70)
    chosen = X[:, 0] > 0.0
    some = array[array[:, 0] > 0.0]
    assert np.isnan(some.chunks[0]).all()
    same(linkage(some), X[chosen])
    tree = linkage(some, sample_weight=weights[array[:, 0] > 0.0])
    same(tree, X[chosen], WEIGHTS[chosen])


def test_faulty_dask_arrays():
    da = pytest.importorskip("dask.array")
    array = da.from_array(X, chunks=(100, 2))
    with pytest.raises(ValueError, match=r"array with rows and columns.*\(300,\)"):
        linkage(array[:, 0])
    with pytest.raises(ValueError, match=r"2 chunks, and the rows have 3"):
        linkage(array, sample_weight=da.from_array(WEIGHTS, chunks=150))
    with pytest.raises(ValueError, match="Dask array with one axis"):
        linkage(array, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="columns= is for data frames"):
        linkage(array, columns=["a"])
    weights = da.from_array(WEIGHTS, chunks=((99, 101, 100),))
    with pytest.raises(ValueError, match=r"partition 0: sample_weight has shape \(99,\)"):
        linkage(array, sample_weight=weights)


def test_dask_frames():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(table(w=WEIGHTS, row=np.arange(300)), npartitions=4)
    some = frame[frame["row"] >= 200]  # the first partitions are empty
    same(linkage(some, columns=["a", "b"]), ROWS[200:], names=("a", "b"))
    frame = frame[["a", "b", "w"]]
    same(linkage(frame, sample_weight="w"), ROWS, WEIGHTS, ("a", "b"))
    same(linkage(frame, columns=["b"], sample_weight="w"), ROWS[:, 1:], WEIGHTS, ("b",))
    with pytest.raises(ValueError, match="there is no column 'c'"):
        linkage(frame, columns=["c"])
    with pytest.raises(ValueError, match="name of its column"):
        linkage(frame, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="array with rows and columns or a data frame"):
        linkage(frame["a"])


# Without the packages


def hide(monkeypatch, *packages):
    for name in [*sys.modules]:
        if name.split(".")[0] in packages:
            monkeypatch.setitem(sys.modules, name, None)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


def test_without_pyarrow(monkeypatch, tmp_path):
    hide(monkeypatch, "pyarrow")
    with pytest.raises(ImportError, match=r"needs pyarrow.*fastrbhc\[distributed\]"):
        linkage(X, scratch=tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()


def test_without_dask(monkeypatch):
    labels = linkage(X, output="files").cut(n_clusters=3)
    hide(monkeypatch, "dask", "distributed")
    same(linkage(X))
    with pytest.raises(ImportError, match=r"needs dask.*fastrbhc\[distributed\]"):
        labels.to_dask()
