"""Sparse matrices in files, read and clustered without making them dense."""

from __future__ import annotations

import gzip
import re
import sys

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array, issparse, save_npz

import fastrbhc
from fastrbhc import _containers, cli
from fastrbhc.cli import matrices
from fastrbhc.cli.tables import read_table

# Cells in rows, genes in columns.
COUNTS = np.array([[5, 0, 1], [0, 0, 3], [2, 7, 0], [0, 1, 0]])
CELLS = ["AAAC-1", "AAAG-1", "AACC-1", "AACT-1"]
GENES = ["CD3E", "MS4A1", "CD3E"]
FEATURES = [f"ENSG{i}\t{name}\tGene Expression" for i, name in enumerate(GENES)]


def write_lines(path, lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_market(path, values):
    plain = path.with_name("plain.mtx")
    mmwrite(plain, csr_array(values), symmetry="general")
    content = plain.read_bytes()
    plain.unlink()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_folder(folder, *, values=COUNTS.T, cells=CELLS, features=FEATURES, gz="", prefix=""):
    folder.mkdir(exist_ok=True, parents=True)
    write_market(folder / f"{prefix}matrix.mtx{gz}", values)
    write_lines(folder / f"{prefix}barcodes.tsv{gz}", cells)
    write_lines(folder / f"{prefix}features.tsv{gz}", features)
    return folder


def assert_cells(table):
    assert issparse(table.values)
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values.toarray(), COUNTS)
    assert (table.ids, table.columns) == (CELLS, GENES)


# Matrix Market


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "X.MTX"])
def test_rows_of_a_market_file_are_rows(tmp_path, name):
    write_market(tmp_path / name, COUNTS)
    table = read_table(tmp_path / name)
    assert issparse(table.values)
    np.testing.assert_array_equal(table.values.toarray(), COUNTS)
    assert (table.ids, table.columns) == (None, ["1", "2", "3"])


def test_kinds_of_market_files(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n")
    assert read_table(path).values.toarray().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    path.write_text("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 4\n2 1 5\n")
    assert read_table(path).values.toarray().tolist() == [[4.0, 5.0], [5.0, 0.0]]
    path.write_text("%%MatrixMarket matrix array real general\n2 2\n1.5\n2\n3\n4\n")
    assert read_table(path).values.tolist() == [[1.5, 3.0], [2.0, 4.0]]


HEADER = "%%MatrixMarket matrix coordinate"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{HEADER} complex general\n1 1 1\n1 1 1 2\n", "complex numbers. Take real and imaginary"),
        (f"{HEADER} real general\n2 2 3\n1 1 1\n", "cannot be read as Matrix Market"),
        (f"{HEADER} real general\n2 2 1\n3 1 1\n", "cannot be read as Matrix Market"),
        (f"{HEADER} real general\n2 2 1\n1 1 one\n", "cannot be read as Matrix Market"),
        (f"{HEADER} integer general\n9 9 1000\n1 1 1\n", "cut short: it states 1,000 entries"),
        ("1,2\n3,4\n", "cannot be read as Matrix Market"),
    ],
)
def test_mistakes_in_market_files(tmp_path, content, message):
    path = tmp_path / "x.mtx"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"x\.mtx.*{message}"):
        read_table(path)


def test_market_files_that_promise_too_much(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text(f"{HEADER} real general\n1000000000000 2 1\n1 1 1\n")
    with pytest.raises(MemoryError, match=r"x\.mtx states 1,000,000,000,000 rows"):
        read_table(path)


def test_damaged_compression(tmp_path):
    path = tmp_path / "x.mtx.gz"
    whole = gzip.compress(f"{HEADER} real general\n2 2 1\n1 1 1\n".encode())
    for content in (whole[:-12], b"not compressed"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.mtx\.gz"):
            read_table(path)


# 10x Genomics


def test_damaged_names(tmp_path):
    folder = write_folder(tmp_path, gz=".gz")
    path = folder / "barcodes.tsv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(ValueError, match="is damaged, or not compressed by gzip"):
        read_table(folder)


@pytest.mark.parametrize("gz", ["", ".gz"])
def test_a_folder_has_cells_in_rows(tmp_path, gz):
    assert_cells(read_table(write_folder(tmp_path / "f", gz=gz)))
    assert_cells(read_table(tmp_path / "f" / f"matrix.mtx{gz}"))


def test_files_of_a_sample_begin_with_its_name(tmp_path):
    folder = write_folder(tmp_path, prefix="GSM1_", gz=".gz")
    assert_cells(read_table(folder))
    write_folder(tmp_path, prefix="GSM2_", values=COUNTS.T[:, :2], cells=CELLS[:2])
    with pytest.raises(ValueError, match=r"several matrices: give one of them.*GSM1_matrix"):
        read_table(folder)
    assert_cells(read_table(folder / "GSM1_matrix.mtx.gz"))
    assert read_table(folder / "GSM2_matrix.mtx").ids == CELLS[:2]


def test_older_folders_have_genes(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "features.tsv").unlink()
    write_lines(folder / "genes.tsv", [line.rpartition("\t")[0] for line in FEATURES])
    assert_cells(read_table(folder))
    write_lines(folder / "genes.tsv", GENES)  # without ids
    assert_cells(read_table(folder))


def test_cells_may_be_in_rows_already(tmp_path):
    assert_cells(read_table(write_folder(tmp_path, values=COUNTS)))


def test_features_that_are_no_genes_are_left_out(tmp_path):
    features = [*FEATURES, "CD3\tCD3\tAntibody Capture"]
    values = np.column_stack([COUNTS, [9, 9, 9, 9]]).T
    folder = write_folder(tmp_path, values=values, features=features)
    with pytest.warns(UserWarning, match=r"1 of 4 features are left out.*\(Antibody Capture\)"):
        assert_cells(read_table(folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": CELLS[:3]}, r"barcodes\.tsv has 3 names, and matrix\.mtx has 4 columns"),
        ({"cells": ["barcode", *CELLS]}, "first line a header"),
        ({"features": FEATURES[:2]}, r"features\.tsv has 2 names, and matrix\.mtx has 3 rows"),
        ({"cells": [], "features": []}, "do they belong together"),
    ],
)
def test_numbers_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_table(write_folder(tmp_path, **changes))


@pytest.mark.parametrize("name", ["barcodes.tsv", "features.tsv"])
def test_folders_without_names(tmp_path, name):
    folder = write_folder(tmp_path)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"matrix\.mtx in .*, but no {re.escape(name)}"):
        read_table(folder)


def test_folders_without_a_matrix(tmp_path):
    with pytest.raises(ValueError, match=r"is a directory without matrix\.mtx.*Give a file"):
        read_table(tmp_path)
    inner = write_folder(tmp_path / "outs" / "filtered_feature_bc_matrix", gz=".gz")
    with pytest.raises(ValueError, match=f"look in {re.escape(str(inner))}"):
        read_table(tmp_path)


# The command line


def words(n, d, seed):
    """Sparse counts in two groups, none of them empty."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.2, (n, d))
    X[: n // 2, : d // 2] += rng.poisson(0.7, (n // 2, d // 2))
    X[:, 0] += X.sum(axis=1) == 0
    return X


@pytest.mark.parametrize("kind", ["npz", "mtx", "folder"])
def test_the_command_line_clusters_them(tmp_path, capsys, kind):
    X = words(60, 20, 0)
    names = [f"cell{i}" for i in range(60)]
    if kind == "npz":
        path, names = tmp_path / "x.npz", list(map(str, range(60)))
        save_npz(path, csr_array(X))
    elif kind == "mtx":
        path, names = tmp_path / "x.mtx", list(map(str, range(60)))
        write_market(path, X)
    else:
        path = write_folder(
            tmp_path, values=X.T, cells=names, features=[f"g{i}" for i in range(20)]
        )
    out = tmp_path / "labels.csv"
    options = ["--family", "multinomial", "--clusters", "2", "--labels", str(out)]
    assert cli.main(["cluster", str(path), *options]) == 0
    assert f"{path.name}: 60 rows, 20 columns" in capsys.readouterr().out
    reference = fastrbhc.linkage(X, "multinomial").cut(n_clusters=2)
    found = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert found == [[name, str(label)] for name, label in zip(names, reference, strict=True)]


def test_large_ones_are_never_dense(tmp_path, monkeypatch):
    X = words(60, 20, 1)
    save_npz(tmp_path / "x.npz", csr_array((X[X > 0], np.nonzero(X)), shape=(60, 100_000)))
    # A machine with as much memory as the names of the columns take, and not half the dense matrix.
    monkeypatch.setattr(_containers, "memory", lambda: 20_000_000)
    seen = []
    true_fit = fastrbhc.RBHC.fit

    def fit(model, rows, **options):
        seen.append(rows)
        return true_fit(model, rows, **options)

    monkeypatch.setattr(fastrbhc.RBHC, "fit", fit)
    path = str(tmp_path / "x.npz")
    assert cli.main(["cluster", path, "--family", "multinomial", "--clusters", "2"]) == 0
    assert issparse(seen[0])


def test_families_without_sparse_rows_make_them_dense(tmp_path, monkeypatch, capsys):
    save_npz(tmp_path / "x.npz", csr_array(words(200, 100, 2)))
    command = ["cluster", str(tmp_path / "x.npz"), "--family", "ward", "--clusters", "2"]
    assert cli.main(command) == 0
    capsys.readouterr()
    monkeypatch.setattr(_containers, "memory", lambda: 120_000)  # 160,000 if dense
    assert cli.main(command) == 2
    assert (
        "Families of counts, such as multinomial and poisson, take sparse"
        in capsys.readouterr().err
    )


def test_large_measurements_need_a_family(tmp_path, capsys):
    """The default would begin with a covariance of all columns."""
    X = 0.5 * words(60, 20, 3)
    small, large = tmp_path / "small.npz", tmp_path / "large.npz"
    save_npz(small, csr_array(X))
    save_npz(large, csr_array((X[X > 0], np.nonzero(X)), shape=(60, 20_000)))
    assert cli.main(["cluster", str(small), "--clusters", "2"]) == 0
    capsys.readouterr()
    assert cli.main(["cluster", str(large), "--clusters", "2"]) == 2
    said = capsys.readouterr().err
    assert "large.npz is a sparse matrix of 60 rows and 20,000 columns" in said
    assert "--family multinomial for words or genes" in said
    assert cli.main(["cluster", str(large), "--clusters", "2", "--family", "poisson"]) == 0
    assert cli.main(["cluster", str(large), "--clusters", "2", "--family", "ward"]) == 0


def test_large_counts_have_a_family(tmp_path, capsys):
    X = words(60, 20, 3)
    path = tmp_path / "words.npz"
    save_npz(path, csr_array((X[X > 0], np.nonzero(X)), shape=(60, 20_000)))
    assert cli.main(["cluster", str(path), "--clusters", "2"]) == 0
    said = capsys.readouterr()
    assert "family poisson" in said.out
    assert "--family auto is poisson for words.npz (counts" in said.err


# Columns as rows


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "x.npz", "x.npy"])
def test_columns_may_be_the_rows(tmp_path, name):
    path = tmp_path / name
    if name == "x.npy":
        np.save(path, COUNTS.T)
    elif name == "x.npz":
        save_npz(path, csr_array(COUNTS.T))
    else:
        write_market(path, COUNTS.T)
    table = read_table(path, transpose=True)
    assert issparse(table.values) == (name != "x.npy")
    values = table.values.toarray() if issparse(table.values) else table.values
    np.testing.assert_array_equal(values, COUNTS)
    assert (table.ids, table.columns) == (None, ["1", "2", "3"])


def test_files_that_name_their_rows_are_not_turned(tmp_path):
    folder = write_folder(tmp_path / "f")
    with pytest.raises(ValueError, match=r"--transpose is for \.mtx, .*, and f is none"):
        read_table(folder, transpose=True)
    with pytest.raises(ValueError, match=r"matrix\.mtx has the files of 10x .* cells are rows"):
        read_table(folder / "matrix.mtx", transpose=True)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"--transpose is for .*, and x\.csv is none"):
        read_table(tmp_path / "x.csv", transpose=True)


def test_the_command_line_turns_them(tmp_path, capsys):
    X = words(60, 20, 4)
    write_market(tmp_path / "x.mtx", X.T)
    options = ["--family", "multinomial", "--clusters", "2", "--transpose"]
    assert cli.main(["cluster", str(tmp_path / "x.mtx"), *options]) == 0
    assert "x.mtx: 60 rows, 20 columns" in capsys.readouterr().out


# Rows of zeros


def test_empty_rows_are_left_out_if_that_is_wanted(tmp_path, capsys):
    X = words(60, 20, 5)
    X[[0, 7, 59]] = 0
    path, labels, tree = (tmp_path / name for name in ("x.npz", "labels.csv", "tree.nwk"))
    save_npz(path, csr_array(X))
    command = ["cluster", str(path), "--family", "multinomial", "--clusters", "2"]
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "3 rows without any count, the first being row 0" in said
    assert said.endswith("drop such rows. --drop-empty-rows does that\n")
    outputs = ["--labels", str(labels), "--tree", str(tree)]
    assert cli.main([*command, "--drop-empty-rows", *outputs]) == 0
    out = capsys.readouterr().out
    assert "x.npz: 57 rows, 20 columns" in out
    assert "left out: 3 of 60 rows, which are all zeros" in out
    kept = np.flatnonzero(X.any(axis=1))
    expected = np.full(60, "", object)
    expected[kept] = fastrbhc.linkage(X[kept], "multinomial").cut(n_clusters=2).astype(str)
    found = [line.split(",") for line in labels.read_text().splitlines()[1:]]
    assert found == [[str(i), label] for i, label in enumerate(expected)]
    leaves = re.findall(r"[(,](\d+)", tree.read_text())
    assert sorted(map(int, leaves)) == kept.tolist()


def test_nothing_is_said_if_no_row_is_empty(tmp_path, capsys):
    save_npz(tmp_path / "x.npz", csr_array(words(60, 20, 6)))
    command = ["cluster", str(tmp_path / "x.npz"), "--family", "multinomial", "--clusters", "2"]
    assert cli.main([*command, "--drop-empty-rows"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_names_and_weights_of_the_rows_that_are_left(tmp_path, capsys):
    path, labels = tmp_path / "x.csv", tmp_path / "labels.csv"
    path.write_text("name,a,b,copies\nr0,9,1,2\nr1,0,0,5\nr2,8,1,1\nr3,1,9,3\n")
    options = ["--id", "name", "--weights", "copies", "--clusters", "2", "--labels", str(labels)]
    command = ["cluster", str(path), "--family", "multinomial", *options, "--drop-empty-rows"]
    assert cli.main(command) == 0
    # The heaviest cluster is 0: three copies of 10 counts.
    assert labels.read_text().splitlines()[1:] == ["r0,1", "r1,", "r2,1", "r3,0"]
    path.write_text("a,b\n1,2\n0,0\n0,0\n")
    assert cli.main(["cluster", str(path), "--drop-empty-rows"]) == 2
    assert "x.csv has 1 rows that are not empty: at least 2 are needed" in capsys.readouterr().err


def test_columns_have_their_names_in_messages(tmp_path, capsys):
    path = write_folder(tmp_path, values=-COUNTS.T)
    assert cli.main(["cluster", str(path), "--family", "multinomial"]) == 2
    assert "row 0, column 'CD3E' is -5" in capsys.readouterr().err


def test_only_h5ad_files_have_layers(tmp_path, capsys):
    path = write_folder(tmp_path)
    assert cli.main(["cluster", str(path), "--layer", "counts"]) == 2
    assert "--layer is for .h5ad files" in capsys.readouterr().err


def test_h5ad_files_without_anndata(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    (tmp_path / "x.h5ad").write_bytes(b"anything")
    with pytest.raises(ValueError, match=r'pip install anndata, or "fastrbhc\[anndata\]"'):
        matrices.read_h5ad(tmp_path / "x.h5ad", None)
