"""Tables as people write them, with and without mistakes."""

from __future__ import annotations

import builtins
import datetime
import decimal
import gzip
import os
import re

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from scipy.sparse import csr_array, issparse, save_npz

from fastrbhc.cli import fast_text
from fastrbhc.cli.tables import read_table

VALUES = [[1.0, 2.0], [3.5, -4.0]]


def dense(values):
    return values.toarray() if issparse(values) else values


def not_installed(*_):
    raise ImportError


@pytest.fixture(params=["pyarrow", "pandas", "neither"])
def reader(request, monkeypatch):
    """One package after the other reads texts, or none."""
    for package in {"pyarrow", "pandas"} - {request.param}:
        monkeypatch.setattr(fast_text, f"_by_{package}", not_installed)
    return request.param


@pytest.fixture
def write(tmp_path, reader):
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


@pytest.mark.parametrize("words", [("True", "False"), ("true", "FALSE"), (" TRUE", "false ")])
def test_truth_values_are_ones_and_zeros(write, words):
    first, second = words
    table = read_table(write(f"x,flag\n1,{first}\n2,{second}\n"))
    assert table.values.tolist() == [[1.0, 1.0], [2.0, 0.0]]
    weighted = read_table(write(f"flag,x,w\n{first},1,5\n{second},2,6\n"), weights="w")
    assert weighted.values.tolist() == [[1.0, 1.0], [0.0, 2.0]]
    assert weighted.weights.tolist() == [5.0, 6.0]
    gaps = read_table(write(f"x,flag\n1,{first}\n2,\n3,{second}\n"), missing="ignore")
    np.testing.assert_array_equal(gaps.values[:, 1], [1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match="line 3, column 'flag': missing value"):
        read_table(write(f"x,flag\n1,{first}\n2,\n"))


def test_columns_of_text_if_the_cells_decide(write):
    table = read_table(write("kind,x,flag,w\na,1,True,3\nb,2,False,4\n"), weights="w", text=None)
    assert table.values.tolist() == [["a", 1.0, 1.0], ["b", 2.0, 0.0]]
    assert table.columns == ["kind", "x", "flag"]
    assert table.weights.tolist() == [3.0, 4.0]
    numbers = read_table(write("x,y\n1,2\n3,4\n"), text=None)
    assert numbers.values.dtype == np.float64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2\n3,oops\n5,6\n", "line 3, column 'y': 'oops' is not a number"),
        ("x;y\n1,5;a\n2,5;b\n", "line 2, column 'x': '1,5' has a decimal comma"),
        ("x,y\n1,a\n2,\n3,b\n", "line 3, column 'y': missing value"),
    ],
)
def test_a_few_words_among_numbers_are_mistakes(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(content), text=None)


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


def test_line_breaks_within_quotes(write):
    content = '"the\nname",x\n"a\n\nb",1\nc,2\n"d\ne",oops\n'
    table = read_table(write(content.replace("oops", "3")), "1")
    assert (table.values.tolist(), table.ids) == ([[1.0], [2.0], [3.0]], ["a\n\nb", "c", "d\ne"])
    assert table.columns == ["x"]
    with pytest.raises(ValueError, match="line 7, column 'x': 'oops' is not a number"):
        read_table(write(content), "1")
    with pytest.raises(ValueError, match="line 4, column 2: 'oops' is not a number"):
        read_table(write('"a\nb" 1\n"c" 2\nd oops\n'), "1")


def test_a_quotation_mark_within_a_cell_is_a_letter(write):
    assert read_table(write('name,x\n5" pipe,1\n6" pipe,2\n'), "name").ids == ['5" pipe', '6" pipe']


def test_damaged_compression_is_called_so(write):
    whole = gzip.compress(b"1,2\n3.5,-4\n" * 100)
    for content in (b"1,2\n3,4\n", whole[:-12], whole[:20] + b"\xff" * 9 + whole[29:]):
        with pytest.raises(ValueError, match=r"t\.csv\.gz is damaged, or not compressed by gzip"):
            read_table(write(content, "t.csv.gz"))
    path = write(gzip.compress(b"1,2\n3.5,-4\n"), "T.CSV.GZ")
    assert read_table(path).values.tolist() == VALUES


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv.bz2", "t.json", "t.h5", "t.pkl"])
def test_files_of_other_programs(write, name):
    with pytest.raises(ValueError, match=r"by its name .*which is not read: give a .csv"):
        read_table(write("anything", name))


@pytest.mark.skipif(os.name != "posix", reason="pipes of Unix")
def test_pipes_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device"):
        read_table(tmp_path / "pipe")


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
        (
            "x,y,\n1,2,\n",
            "line 2, column 3: missing value .*--drop 3. If every line ends with a deli",
        ),
        (
            "1,2,\n3,4,\n",
            "line 1, column 3: missing value .*--drop 3. If every line ends with a deli",
        ),
        ("x,y\n1,2,\n", "2 names and line 2 has 3 cells, the last of them empty"),
        ("my col,x\na,1\n", "say --id 'my col'; leave it out with --drop 'my col'"),
        ("-c,x\na,1\n", "say --id 1; leave it out with --drop 1"),
        ("x,x\na,1\n", "say --id 1; leave it out with --drop 1"),
        ("x,flag\n1,True\n2,yes\n", "'True' is not a number. Write 1 for true"),
        ("x,flag\n1,yes\n2,no\n", "'yes' is not a number. Write 1 for true"),
        ("x,flag,y\n1,True,a\n", "column 'y': 'a' is not a number.*ward:OTHERS categorical:y"),
        ('x;y\n"1,234";2\n', "'1,234' has a comma. Write 1234, or use a decimal point"),
        ('x,y\n1,"2\n3,4\n', "line 2: 2 cells|line 2, column 'y'|quotation mark left open"),
        ('x,y\n1,2\n"3,4\n5,6\n', "line 3: 1 cells where 2 .*is a quotation mark left open"),
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
        assert issparse(table.values) == (name == "csr.npz")
        assert dense(table.values).tolist() == VALUES
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
    with pytest.raises(ValueError, match=r"column 'n' of .*holds text.*--id n"):
        read_table(tmp_path / "plain.parquet")
    frame.assign(x=[1, None]).to_parquet(tmp_path / "missing.parquet")
    with pytest.raises(ValueError, match="row 1, column 'x': missing value"):
        read_table(tmp_path / "missing.parquet", "n")
    (tmp_path / "broken.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"broken\.parquet cannot be read"):
        read_table(tmp_path / "broken.parquet")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime.datetime(2020, 1, 1), "holds dates or times"),
        (datetime.date(2020, 1, 1), "holds dates or times"),
        (datetime.time(12), "holds dates or times"),
        (datetime.timedelta(1), "holds dates or times"),
        ("a", "holds text"),
        ([1, 2], "holds text or other things"),
        ({"a": 1}, "holds text or other things"),
    ],
    ids=str,
)
def test_columns_of_parquet_that_are_not_numbers(tmp_path, value, message):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2], "day off": [value] * 2}), path)
    advice = "say --id 'day off'; leave it out with --drop 'day off'"
    with pytest.raises(ValueError, match=f"column 'day off' of t.parquet {message}.*{advice}"):
        read_table(path)
    with pytest.raises(ValueError, match=message):
        read_table(path, weights="day off")
    assert read_table(path, drop=["day off"]).values.tolist() == [[1.0], [2.0]]
    assert len(read_table(path, "day off").ids) == 2


def test_truth_values_and_decimals_of_parquet(tmp_path):
    columns = {"a": [True, False], "b": [decimal.Decimal("1.5"), decimal.Decimal(2)]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").values.tolist() == [[1.0, 1.5], [0.0, 2.0]]


def test_dates_in_arrays(tmp_path):
    np.save(tmp_path / "x.npy", np.array([["2020", "2021"]], "M8[D]"))
    with pytest.raises(ValueError, match=r"x\.npy holds dates or times"):
        read_table(tmp_path / "x.npy")


CSR = {"data": np.ones(3), "indices": [0, 1, 2], "indptr": [0, 1, 2, 3], "shape": [3, 3]}


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_as_scipy_saves_them(tmp_path, form):
    matrix = csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    save_npz(tmp_path / "x.npz", matrix.asformat(form))
    table = read_table(tmp_path / "x.npz")
    assert table.values.format == "csr"
    assert table.values.toarray().tolist() == matrix.toarray().tolist()
    table = read_table(tmp_path / "x.npz", weights="3", drop=["2"])
    assert table.values.toarray().tolist() == [[1.0], [0.0]]
    assert (table.weights.tolist(), table.columns) == ([2.0, 0.0], ["1"])
    assert read_table(tmp_path / "x.npz", "1").ids == ["1.0", "0.0"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 10**9, 1]}, "indices holds 1000000000, expected 0 to 2"),
        ({"indices": [0, -1, 1]}, "indices holds -1"),
        ({"indices": [0.5, 1.0, 2.0]}, "indices is an array of float64"),
        ({"indptr": [0, 5, 2, 3]}, "indptr decreases"),
        ({"indptr": [0, 1, 2, 30]}, "index pointer"),
        ({"indptr": [0, 1, 2]}, "index pointer"),
        ({"shape": [3, 3, 3]}, "expected two whole numbers"),
        ({"shape": [-3, 3]}, "expected two whole numbers"),
        ({"shape": [10**12, 3]}, "index pointer"),
        ({"shape": [3, 10**12]}, "states 3 rows, 1,000,000,000,000 columns"),
        ({"data": np.ones(2)}, "same size"),
        ({"data": np.array(["a", "b", "c"])}, "data is an array of <U1"),
        ({"data": np.array([1, None, 2], object)}, "Python objects"),
        ({"format": b"csc", "indices": [0, 1, 9]}, "indices holds 9"),
        ({"format": b"coo"}, "no row and no col of a coo matrix"),
        ({"format": b"xyz"}, "its format 'xyz' is none of"),
    ],
    ids=str,
)
def test_broken_sparse_matrices(tmp_path, changes, message):
    np.savez(tmp_path / "b.npz", **{**CSR, **changes})
    with pytest.raises((ValueError, MemoryError), match=rf"b\.npz.*{message}"):
        read_table(tmp_path / "b.npz")


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


def table_of_cells(seed, delimiter):
    """A text with numbers as people write them, a column of names, gaps, and sometimes a fault."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(2, 8), rng.integers(1, 5)
    cells = ["1", "-2.5", "3e-7", " 4 ", '"5"', "0.1", "123456789.123456789", "1e300", ".5", "6."]
    odd = ["+7", "inf", "nan", "", "NA", "1_0", "x", "1,5", "True", "1e400", '"8', "9\t", "\ufeff1"]
    lines = []
    for _ in range(n_rows):
        numbers = rng.choice(cells, n_columns).tolist()
        names = [rng.choice(["a", '"b c"', " d", 'e"f', '"g""h"', "i;j,k", '" l"'])]
        lines.append([*names, *numbers])
    if rng.random() < 0.6:
        lines[rng.integers(n_rows)][rng.integers(1, n_columns + 1)] = rng.choice(odd)
    if rng.random() < 0.2:
        lines[rng.integers(n_rows)].append("9")
    if rng.random() < 0.1:
        lines[rng.integers(n_rows)].pop()
    ends = rng.choice(["\n", "\r\n", "\n\n"])
    header = delimiter.join(["name", *(f"x{k}" for k in range(n_columns))])
    return ends.join([header, *(delimiter.join(line) for line in lines)]) + "\n"


def outcome(path, **options):
    """The table of a text, or the message of its first fault."""
    try:
        table = read_table(path, "name", **options)
    except ValueError as error:
        return str(error)
    return table.values.tobytes(), table.ids


@pytest.mark.parametrize("missing", ["error", "ignore"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_any_reader_finds_the_same(tmp_path, monkeypatch, delimiter, missing):
    for seed in range(200):
        path = tmp_path / f"{seed}.csv"
        path.write_text(table_of_cells(seed, delimiter), newline="")
        found = {}
        for package in ("pyarrow", "pandas", "neither"):
            with monkeypatch.context() as patch:
                for other in {"pyarrow", "pandas"} - {package}:
                    patch.setattr(fast_text, f"_by_{other}", not_installed)
                found[package] = outcome(path, missing=missing)
        assert found["pyarrow"] == found["neither"], (seed, path.read_text())
        assert found["pandas"] == found["neither"], (seed, path.read_text())
