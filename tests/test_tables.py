"""Tables as people write them, with and without mistakes."""

from __future__ import annotations

import builtins
import gzip
import re

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array

from fastrbhc.cli.tables import read_table

VALUES = [[1.0, 2.0], [3.5, -4.0]]


@pytest.fixture
def write(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("1,2\n3.5,-4\n", ["1", "2"]),
        ("1,2\n3.5,-4", ["1", "2"]),
        ("1;2\n3.5;-4\n", ["1", "2"]),
        ("1\t2\n3.5\t-4\n", ["1", "2"]),
        ("1 2\n3.5   -4\n", ["1", "2"]),
        ("  1 2\n  3.5 -4\n", ["1", "2"]),
        ("1, 2\n3.5, -4\n", ["1", "2"]),
        ("x,y\n1,2\n3.5,-4\n", ["x", "y"]),
        ("x,2001\n1,2\n3.5,-4\n", ["x", "2001"]),
        ('"x","a, b"\n1,2\n3.5,-4\n', ["x", "a, b"]),
        ('"x" "a b"\n1 2\n3.5 -4\n', ["x", "a b"]),
        ('"1","2"\n"3.5","-4"\n', ["1", "2"]),
        ("x;y\r\n1;2\r\n3.5;-4\r\n", ["x", "y"]),
        ("\n\nx,y\n\n1,2\n\n3.5,-4\n\n\n", ["x", "y"]),
        ("# made by hand\n1,2\n3.5,-4\n", ["1", "2"]),
        ("#x,y\n1,2\n3.5,-4\n", ["x", "y"]),
        ("\ufeffx,y\n1,2\n3.5,-4\n", ["x", "y"]),
        ("\ufeff1,2\n3.5,-4\n", ["1", "2"]),
        ("größe,λ\n1,2\n3.5,-4\n", ["größe", "λ"]),
    ],
)
def test_layouts(write, content, columns):
    table = read_table(write(content))
    assert table.values.tolist() == VALUES
    assert table.values.dtype == np.float64
    assert table.columns == columns
    assert table.ids is None
    assert table.weights is None


def test_one_column_one_row_and_compressed(write):
    assert read_table(write("x\n1\n2\n")).values.tolist() == [[1.0], [2.0]]
    assert read_table(write("1,2\n")).values.tolist() == [[1.0, 2.0]]
    path = write(gzip.compress(b"x,y\n1,2\n3.5,-4\n"), "t.csv.gz")
    assert read_table(path).values.tolist() == VALUES


NAMED = "name,x,w,y\nfirst one,1,7,2\n'b',3.5,8,-4\n"


def test_ids_weights_and_dropped_columns_by_name_and_by_position(write):
    path = write(NAMED)
    for name, weight in (("name", "w"), ("1", "3")):
        table = read_table(path, name, weights=weight)
        assert table.values.tolist() == VALUES
        assert table.ids == ["first one", "'b'"]
        assert table.columns == ["x", "y"]
        assert table.weights.tolist() == [7.0, 8.0]
    assert read_table(path, "name", drop=["w", "4"]).columns == ["x"]
    table = read_table(write("1,5,2\n3.5,6,-4\n"), weights="2")
    assert table.values.tolist() == VALUES
    assert table.columns == ["1", "3"]
    assert table.values.flags.c_contiguous


def test_a_quoted_id_may_hold_the_delimiter(write):
    table = read_table(write('name,x\n"a, b",1\nc,2\n'), "name")
    assert table.ids == ["a, b", "c"]


def test_ids_without_header(write):
    assert read_table(write("a 1 2\nb 3.5 -4\n"), "1").ids == ["a", "b"]


def test_a_name_goes_before_a_position(write):
    assert read_table(write("x,1\n5,6\n7,8\n"), "1").ids == ["6", "8"]


def test_the_index_of_a_data_frame_is_taken_for_ids(write, tmp_path):
    frame = pandas.DataFrame(VALUES, index=["a", "b"])
    frame.to_csv(tmp_path / "frame.csv")
    table = read_table(tmp_path / "frame.csv")
    assert (table.values.tolist(), table.ids, table.columns) == (VALUES, ["a", "b"], ["0", "1"])


def test_a_header_that_counts(write):
    assert len(read_table(write("0,1,2,3,4\n5,6,7,8,9\n5,5,5,5,5\n")).values) == 2
    assert len(read_table(write("0,1\n5,6\n5,5\n")).values) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        ("x,y\n", "header and no rows"),
        ("1,2\n3\n", "line 2: 1 cells where 2"),
        ("1,2\n3,4,5\n", "line 2: 3 cells where 2"),
        ("x,y\n1,2\n3,4\n5,6,7\n", "line 4: 3 cells where 2"),
        ("x,y,z\n1,2\n3,4\n", "header, line 1, has 3 names and line 2 has 2 cells"),
        ("x,kind\n1,a\n2,b\n", "line 2, column 'kind': 'a' is not a number.*--id kind.*--drop"),
        ("a,1\nb,2\n", "line 1, column 1: 'a' is not a number.*--id 1"),
        ("x,y\n1,2\n,4\n", "line 3, column 'x': missing value"),
        ("x,y\n1,2\n3,NA\n", r"line 3, column 'y': missing value \('NA'\).*--drop y"),
        ("x,y\n1,2\n\n3,nan\n", r"line 4, column 'y': missing value"),
        ("NA,2\n3,4\n", "line 1, column 1: missing value"),
        ("x;y\n1,5;2\n", "line 2, column 'x': '1,5' has a decimal comma. Write 1.5"),
        ("1,2\n3,1_0\n", "line 2, column 2: '1_0' is not a number"),
        (b"x,y\n\xff\xfe1,2\n", "not a text in UTF-8"),
        (b"\0\0\n1,2\n", "not a text"),
    ],
)
def test_mistakes_are_named_with_their_place(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(content))


def test_rows_that_are_too_long_are_seen_when_columns_are_picked(write):
    with pytest.raises(ValueError, match="line 3: 4 cells where 3"):
        read_table(write("n,x,y\na,1,2\nb,3,4,5\n"), "n")


def test_columns_that_are_not_there(write):
    path = write("n,x,x\na,1,2\n")
    with pytest.raises(ValueError, match=r"no column 'z'\. Its 3 columns are 'n', 'x', 'x'"):
        read_table(path, "z")
    with pytest.raises(ValueError, match="several columns 'x'"):
        read_table(path, "x")
    with pytest.raises(ValueError, match="no column '4'"):
        read_table(path, "4")
    with pytest.raises(ValueError, match="no column of values left"):
        read_table(path, "n", drop=["2", "3"])


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*no\.csv"):
        read_table(tmp_path / "no.csv")
    with pytest.raises(ValueError, match="is a directory"):
        read_table(tmp_path)


def test_arrays(tmp_path):
    array = np.array(VALUES)
    np.save(tmp_path / "a.npy", array.astype(np.float32))
    np.savez(tmp_path / "x.npz", X=array, y=[0, 1])
    np.savez(tmp_path / "one.npz", array)
    sparse = csr_array(array)
    np.savez(
        tmp_path / "csr.npz",
        data=sparse.data,
        indices=sparse.indices,
        indptr=sparse.indptr,
        shape=sparse.shape,
        y=[0, 1],
    )
    for name in ("a.npy", "x.npz", "one.npz", "csr.npz"):
        table = read_table(tmp_path / name)
        assert table.values.tolist() == VALUES
        assert table.values.dtype == np.float64
        assert table.columns == ["1", "2"]
    table = read_table(tmp_path / "a.npy", "1")
    assert (table.values.tolist(), table.ids) == ([[2.0], [-4.0]], ["1.0", "3.5"])


def test_arrays_that_are_no_table(tmp_path):
    np.save(tmp_path / "flat.npy", np.arange(3))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}, None]], object))
    np.savez(tmp_path / "two.npz", a=VALUES, b=VALUES)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and nothing more")
    for name, message in {
        "flat.npy": r"shape \(3,\)",
        "text.npy": "numbers were expected",
        "objects.npy": "cannot be read",
        "two.npz": "none of its arrays a, b is named X",
        "broken.npz": "cannot be read",
    }.items():
        with pytest.raises(ValueError, match=f"{re.escape(name)}.*{message}"):
            read_table(tmp_path / name)


def test_parquet(tmp_path):
    frame = pandas.DataFrame({"n": ["a", "b"], "x": [1, 3.5], "y": [2, -4]})
    frame.to_parquet(tmp_path / "plain.parquet")
    table = read_table(tmp_path / "plain.parquet", "n")
    assert (table.values.tolist(), table.ids, table.columns) == (VALUES, ["a", "b"], ["x", "y"])
    frame[["x", "y"]].set_axis(["a", "b"]).to_parquet(tmp_path / "index.parquet")
    table = read_table(tmp_path / "index.parquet")
    assert (table.values.tolist(), table.ids, table.columns) == (VALUES, ["a", "b"], ["x", "y"])
    with pytest.raises(ValueError, match=r"column 'n' holds .*string, not numbers.*--id n"):
        read_table(tmp_path / "plain.parquet")
    frame.assign(x=[1, None]).to_parquet(tmp_path / "missing.parquet")
    with pytest.raises(ValueError, match="row 1, column 'x': missing value"):
        read_table(tmp_path / "missing.parquet", "n")
    (tmp_path / "broken.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"broken\.parquet cannot be read"):
        read_table(tmp_path / "broken.parquet")


def test_parquet_without_pyarrow(write, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match="pip install pyarrow"):
        read_table(write("anything", "t.parquet"))


def test_a_long_table_is_read_whole(write):
    values = np.random.default_rng(0).integers(0, 100, (120_000, 2))
    lines = "\n".join(f"r{i},{a},{b}" for i, (a, b) in enumerate(values.tolist()))
    table = read_table(write(f"name,x,y\n{lines}\n"), "name")
    assert np.array_equal(table.values, values)
    assert table.ids[-1] == "r119999"
