"""Saved trees on the command line, standard input and output, JSON, graphs, and BHC."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

import fastrbhc
from fastrbhc import cli
from fastrbhc._restored import restored

FAMILY = ["--family", "poisson"]


def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.poisson(4, (30, 3)), rng.poisson(40, (20, 3))])


def text_of(X, header="name,a,b,c"):
    lines = [f"row{i}," + ",".join(map(str, row)) for i, row in enumerate(X.tolist())]
    return "\n".join([header, *lines]) + "\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(text_of(rows()))
    return str(path)


@pytest.fixture
def saved(table, tmp_path, capsys):
    """Trees of the table, in JSON and as a linkage matrix."""
    paths = {suffix: str(tmp_path / f"tree.{suffix}") for suffix in ("json", "npy")}
    for path in paths.values():
        run("cluster", table, "--id", "name", *FAMILY, "--clusters", 3, "--tree", path)
    capsys.readouterr()
    return paths


def run(*words):
    assert cli.main([str(word) for word in words]) == 0


def failure(capsys, *words):
    """The single line that an error prints."""
    try:
        code = cli.main([str(word) for word in words])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    return err


def labels_in(text, delimiter=","):
    header, *lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    assert header == ["id", "cluster"]
    return [line[0] for line in lines], [int(line[1]) for line in lines]


def give(monkeypatch, content):
    """Put bytes on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# Standard input and output, JSON and silence.


def test_standard_input_and_output(table, capsys, monkeypatch):
    give(monkeypatch, text_of(rows()).encode())
    run("cluster", "-", "--id", "name", *FAMILY, "--clusters", 2, "--labels", "-")
    out, err = capsys.readouterr()
    ids, labels = labels_in(out)
    assert ids == [f"row{i}" for i in range(50)]
    assert labels == [0] * 30 + [1] * 20
    assert "standard input: 50 rows, 3 columns" in err
    assert "2 clusters; rows in each: 30, 20" in err


@pytest.mark.parametrize("form", ["npy", "npz", "mtx", "gz", "parquet"])
def test_standard_input_of_any_format(tmp_path, capsys, monkeypatch, form):
    X = rows()
    path = tmp_path / f"x.{form}"
    if form == "npy":
        np.save(path, X)
    elif form == "npz":
        save_npz(path, csr_array(X))
    elif form == "mtx":
        mmwrite(path, csr_array(X))
    elif form == "gz":
        np.savetxt(path, X, fmt="%d")
    else:
        columns = {name: X[:, k] for k, name in enumerate("abc")}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    give(monkeypatch, path.read_bytes())
    run("cluster", "-", *FAMILY, "--clusters", 2, "--json")
    assert json.loads(capsys.readouterr().out)["sizes"] == [30, 20]


def test_mistakes_in_standard_input_are_named(capsys, monkeypatch):
    give(monkeypatch, b"a,b\n1,2\n3,x\n")
    message = failure(capsys, "cluster", "-", *FAMILY)
    assert "standard input, line 3, column 'b': 'x' is not a number" in message
    give(monkeypatch, b"")
    assert "standard input is empty" in failure(capsys, "cluster", "-", *FAMILY)


def test_json_is_all_of_the_result(table, capsys):
    run("cluster", table, "--id", "name", *FAMILY, "--clusters", 2, "--json", "--audit")
    out, err = capsys.readouterr()
    found = json.loads(out)
    tree = fastrbhc.linkage(rows(), "poisson", audit=True)
    assert found["labels"] == tree.cut(n_clusters=2).tolist()
    assert found["ids"][:2] == ["row0", "row1"]
    assert (found["n_rows"], found["columns"]) == (50, ["a", "b", "c"])
    assert found["family"] == {"name": "poisson", "parameters": {"smoothing": 0.01}}
    assert found["threshold"] == tree.heights[-1]
    assert found["threshold_by"] == "n_clusters"
    assert found["audit"] == tree.audit.sentence
    assert "2 clusters; rows in each: 30, 20" in err
    run("cluster", table, "--id", "name", *FAMILY, "--clusters", 1, "--json", "--quiet")
    out, err = capsys.readouterr()
    assert json.loads(out)["threshold"] is None  # infinite
    assert err == ""


def test_rows_left_out_have_no_label_in_json(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n0,0\n9,1\n1,3\n")
    options = ["--family", "multinomial", "--clusters", 2, "--drop-empty-rows", "--json", "-q"]
    run("cluster", path, *options)
    found = json.loads(capsys.readouterr().out)
    assert found["labels"][1] is None
    assert (found["n_left_out"], len(found["labels"])) == (1, 4)


def test_quiet_prints_nothing_but_errors(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(f"{i % 7},{i % 5}" for i in range(60)))
    run("cluster", path, "--clusters", 2, "--quiet")  # it is counts, which would be noted
    assert capsys.readouterr() == ("", "")
    assert "at least 1" in failure(capsys, "cluster", path, "--clusters", 0, "--quiet")


@pytest.mark.parametrize("form", ["json", "newick", "npy"])
def test_trees_to_standard_output(table, tmp_path, capfdbinary, form):
    option = [] if form == "json" else ["--tree-format", form]
    run("cluster", table, "--id", "name", *FAMILY, "--clusters", 2, "--tree", "-", *option)
    out = capfdbinary.readouterr().out
    tree = fastrbhc.linkage(rows(), "poisson")
    names = [f"row{i}" for i in range(50)]
    if form == "json":
        read = fastrbhc.Dendrogram.from_json(out)
        np.testing.assert_array_equal(read.heights, tree.heights)
    elif form == "newick":
        assert out.decode() == tree.to_newick(names) + "\n"
    else:
        np.testing.assert_array_equal(np.load(io.BytesIO(out)), tree.to_scipy())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "-", "--tree", "-"], "only one of FILE, --labels, --tree and --plot can be"),
        (["--labels", "-", "--json"], "--json prints to standard output, and so does -"),
        (["--plot", "-"], "pictures are not written to -"),
        (["--labels", "out.png"], "labels are not written as .png"),
        (["--tree", "out.csv"], "trees are not written as .csv"),
        (["--tree-format", "json"], "--tree-format is the format of --tree"),
        (["--clusters", 0], "n_clusters has to be at least 1"),
        (["--threshold", "gab"], "threshold has to be one of"),
        (["--seed", -1], "seed has to be at least 0"),
        (["--algorithm", "levels", "--family", "poisson"], "is for reducible families"),
        (["--connect"], "give --connectivity or --grid"),
        (["--grid", 5, 10], "samples have no graph"),
        (["--grid", 5, 10, "--clusters", 2, "--audit"], "audit= counts triples"),
        (["--connectivity", "no.npz", "--clusters", 2], "there is no file no.npz"),
        (["--connectivity", "no.npz", "--grid", 2], "not allowed with argument"),
        (["--drop-empty-rows", "--grid", 5, "--clusters", 2], "a place for each of them"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_rows_are_read(tmp_path, capsys, options, message):
    # The file is a mistake too, and would be found first if it were read.
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3,x\n")
    assert message in failure(capsys, "cluster", tmp_path / "broken.csv", *options)


def test_too_many_clusters_are_refused_before_anything_is_clustered(table, capsys, monkeypatch):
    monkeypatch.setattr(fastrbhc, "RBHC", None)
    message = failure(capsys, "cluster", table, "--id", "name", "--clusters", 51)
    assert "more than the number of rows, 50" in message


def test_names_of_columns_from_a_file(tmp_path, capsys):
    np.save(tmp_path / "x.npy", rows())
    (tmp_path / "words.txt").write_text("red\ngreen\nblue\n")
    options = [tmp_path / "x.npy", *FAMILY, "--clusters", 2, "--feature-names"]
    run("cluster", *options, tmp_path / "words.txt", "--json", "-q")
    assert json.loads(capsys.readouterr().out)["columns"] == ["red", "green", "blue"]
    (tmp_path / "words.txt").write_text("red\n")
    message = failure(capsys, "cluster", *options, tmp_path / "words.txt")
    assert "words.txt has 1 names, and there are 3 columns of values" in message


# Graphs.


@pytest.mark.parametrize("form", ["grid", "npz", "npy", "csv", "mtx"])
def test_only_adjacent_clusters_merge(tmp_path, capsys, form):
    X = rows()
    np.save(tmp_path / "x.npy", X)
    grid = fastrbhc.grid(5, 10)
    edges = np.argwhere(np.triu(grid.matrix().toarray()))
    path = tmp_path / f"graph.{form}"
    option = ["--connectivity", path]
    if form == "grid":
        option = ["--grid", 5, 10]
    elif form == "npz":
        save_npz(path, grid.matrix())
    elif form == "npy":
        np.save(path, edges)
    elif form == "csv":
        np.savetxt(path, edges, "%d", ",", header="from,to", comments="")
    else:
        mmwrite(path, grid.matrix().astype(float))
    run("cluster", tmp_path / "x.npy", *FAMILY, "--clusters", 4, *option, "--json", "-q")
    expected = fastrbhc.linkage(X, "poisson", connectivity=grid).cut(n_clusters=4)
    assert json.loads(capsys.readouterr().out)["labels"] == expected.tolist()


def test_pieces_of_a_graph_are_joined_on_request(tmp_path, capsys):
    np.save(tmp_path / "x.npy", rows())
    np.save(tmp_path / "edges.npy", [[i, i + 1] for i in range(49) if i != 20])
    options = [tmp_path / "x.npy", *FAMILY, "--connectivity", tmp_path / "edges.npy"]
    assert "n_clusters=1 is less" in failure(capsys, "cluster", *options, "--clusters", 1)
    run("cluster", *options, "--clusters", 1, "--connect")
    assert "1 cluster; rows in each: 50" in capsys.readouterr().out


def test_graphs_that_do_not_fit(tmp_path, capsys):
    np.save(tmp_path / "x.npy", rows())
    (tmp_path / "edges.csv").write_text("0,1\n1,2.5\n")
    options = [tmp_path / "x.npy", *FAMILY, "--clusters", 2]
    message = failure(capsys, "cluster", *options, "--connectivity", tmp_path / "edges.csv")
    assert "edges.csv has [1.0, 2.5] in row 1: edges are two whole numbers" in message
    message = failure(capsys, "cluster", *options, "--grid", 7, 7)
    assert "the grid has 7 × 7 = 49 places and X has 50 rows" in message


# Saved trees.


@pytest.mark.parametrize("suffix", ["json", "npy"])
@pytest.mark.parametrize(
    ("option", "cut"),
    [
        (["--clusters", 4], {"n_clusters": 4}),
        (["--n-clusters", 4], {"n_clusters": 4}),
        (["--threshold", 6.5], {"threshold": 6.5}),
        (["--clusters", 4, "--min-size", 3], {"n_clusters": 4, "min_size": 3}),
    ],
)
def test_a_cut_of_a_saved_tree(saved, capsys, suffix, option, cut):
    run("cut", saved[suffix], *option)
    out, err = capsys.readouterr()
    ids, labels = labels_in(out)
    assert labels == fastrbhc.linkage(rows(), "poisson").cut(**cut).tolist()
    assert ids == [f"row{i}" if suffix == "json" else str(i) for i in range(50)]
    assert f"tree.{suffix}: 50 rows, cut " in err


def test_a_cut_where_the_tree_says(saved, tmp_path, capsys):
    tree = fastrbhc.linkage(rows(), "poisson")
    run("cut", saved["json"])
    assert labels_in(capsys.readouterr().out)[1] == tree.cut(n_clusters=3).tolist()
    run("cut", saved["json"], "--threshold", "gap", "--json", "--quiet")
    found = json.loads(capsys.readouterr().out)
    assert found["threshold"] == fastrbhc.gap_threshold(tree)
    assert found["labels"] == tree.cut(threshold=found["threshold"]).tolist()
    out, picture = tmp_path / "labels.tsv", tmp_path / "tree.png"
    run("cut", saved["json"], "--clusters", 2, "--labels", out, "--plot", picture)
    assert labels_in(out.read_text(), "\t")[1] == [0] * 30 + [1] * 20
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {out} and {picture}" in capsys.readouterr().out
    assert "does not remember a cut" in failure(capsys, "cut", saved["npy"])


def test_a_tree_from_standard_input(saved, capsys, monkeypatch):
    with open(saved["json"], "rb") as file:
        give(monkeypatch, file.read())
    run("cut", "-", "--clusters", 2)
    assert labels_in(capsys.readouterr().out)[1] == [0] * 30 + [1] * 20


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", b"{}", "this is not a tree"),
        ("t.json", b"[1", "t.json is not a tree: give the .json or .npy file"),
        ("t.nwk", b"(a,b);", "which forgets weights"),
        ("t.npy", np.zeros((3, 3)), "a linkage matrix has four columns"),
        ("t.npy", np.array([[0, 1, 1.0, 2], [0, 2, 2.0, 3]]), "a node with two parents"),
        ("t.npy", np.array([[0, 0.5, 1.0, 2]]), "its nodes are not whole numbers"),
        ("t.npy", b"no array", "t.npy is not a tree"),
    ],
    ids=str,
)
def test_files_that_are_no_trees(tmp_path, capsys, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    for command in ("cut", "info"):
        assert message in failure(capsys, command, path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--clusters", 51], "more than the number of rows, 50"),
        (["--clusters", 2, "--threshold", 3], "not allowed with argument"),
        (["--threshold", "predictive"], "'predictive' is neither a number nor gap nor evidence"),
        (["--threshold", -1], "threshold has to be at least 0"),
        (["--labels", "no/such/place.csv"], "there is no directory"),
        (["--labels", "out.json"], "labels are not written as .json"),
        (["--labels", "-", "--json"], "--json prints to standard output"),
        (["--cluster-number", 2], "unrecognized arguments: --cluster-number 2"),
    ],
    ids=str,
)
def test_mistakes_in_a_cut(saved, capsys, options, message):
    assert message in failure(capsys, "cut", saved["json"], *options)


def test_what_a_saved_tree_remembers(saved, capsys):
    tree = fastrbhc.linkage(rows(), "poisson")
    run("info", saved["json"])
    out = capsys.readouterr().out
    assert "tree.json: 50 rows, 3 columns\nfamily poisson (smoothing 0.01)\n" in out
    assert f"the highest {tree.heights[-1]:.6g}, " in out
    assert ", for 3 clusters\n3 clusters; rows in each: " in out
    assert out.endswith(
        "the exact greedy tree (algorithm greedy); no merge is below one of its parts\n"
    )
    run("info", saved["json"], "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["n_clusters"], found["is_greedy"], found["n_inversions"]) == (3, True, 0)
    assert found["heights"]["highest"] == tree.heights[:-6:-1].tolist()
    run("info", saved["npy"])
    assert "how its merges were chosen is unknown" in capsys.readouterr().out


# New rows.

NEW = "name,c,b,note,a\nu,3,4,x,5\nv,44,38,y,41\n"


def test_clusters_of_new_rows(saved, table, tmp_path, capsys, monkeypatch):
    new = tmp_path / "new.csv"
    new.write_text(NEW)
    model = fastrbhc.RBHC("poisson", n_clusters=3).fit(rows())
    expected = model.predict([[5, 4, 3], [41, 38, 44]]).tolist()
    run("predict", saved["json"], table, new, "--id", "name")
    assert labels_in(capsys.readouterr().out) == (["u", "v"], expected)
    give(monkeypatch, NEW.encode())
    run("predict", saved["json"], table, "-", "--id", "name", "--clusters", 2, "--json", "-q")
    found = json.loads(capsys.readouterr().out)
    assert (found["labels"], found["sizes"], found["ids"]) == ([0, 1], [1, 1], ["u", "v"])


def test_new_rows_of_a_mixed_table_with_weights_and_gaps(tmp_path, capsys):
    table, new, tree = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "tree.json"
    table.write_text(
        "n,visits,country,x\n1,1,FR,0.5\n2,,FR,0.4\n1,30,DE,0.1\n1,35,DE,0.2\n3,2,FR,0.3\n"
    )
    new.write_text("country,x,visits\nFR,0.5,0\nDE,,33\n")
    families = ["--family", "poisson:visits", "categorical:country", "ward:x"]
    options = ["--weights", "n", "--missing", "ignore", "--clusters", 2, "--tree", tree]
    run("cluster", table, *families, *options, "--quiet")
    run("predict", tree, table, new, "--weights", "n", "--json", "--quiet")
    assert json.loads(capsys.readouterr().out)["labels"] == [0, 1]
    message = failure(capsys, "predict", tree, table, new)
    assert "or not their weights: row 1 has weight 1, and 2 in the tree" in message


def test_other_rows_than_those_of_the_tree(saved, table, tmp_path, capsys):
    other = tmp_path / "other.csv"
    other.write_text(text_of(rows()[::-1]))
    message = failure(capsys, "predict", saved["json"], other, table)
    assert "these are not the rows that the tree was made of: it merges rows " in message
    other.write_text(text_of(rows()[:40]))
    message = failure(capsys, "predict", saved["json"], other, table)
    assert "there are 40 rows, and the tree was made of 50" in message
    other.write_text("a,b\n1,2\n")
    assert "has no column 'c'" in failure(capsys, "predict", saved["json"], table, other)
    other.write_text("a,b,c\n1,2,-3\n")
    message = failure(capsys, "predict", saved["json"], table, other)
    assert "other.csv: row 0, column 'c' is -3" in message
    message = failure(capsys, "predict", saved["npy"], table, table, "--clusters", 2)
    assert "tree.npy does not remember its family" in message
    message = failure(capsys, "predict", "-", "-", table)
    assert "only one of TREE, ROWS and NEW can be -" in message


@pytest.mark.parametrize("family", ["gaussian", "multinomial", "ward", "von_mises_fisher"])
def test_a_restored_estimator_predicts_as_the_fitted_one(family):
    X = rows() + 1.0
    weights = np.arange(1.0, 51.0)
    model = fastrbhc.RBHC(family, n_clusters=3, compute_full_tree=True)
    model.fit(X, sample_weight=weights)
    tree = fastrbhc.Dendrogram.from_json(model.dendrogram_.to_json())
    again = restored(tree, X, sample_weight=weights, n_clusters=3)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.transform(X[:9] + 0.5), model.transform(X[:9] + 0.5))
    with pytest.raises(ValueError, match="not the rows"):
        restored(tree, np.roll(X, 1, axis=0), sample_weight=weights, n_clusters=3)


# The Bayesian original.


def test_the_bayesian_original(table, tmp_path, capsys):
    labels, tree = tmp_path / "labels.csv", tmp_path / "tree.json"
    outputs = ["--labels", labels, "--tree", tree]
    run("bhc", table, "--id", "name", "--model", "poisson", "--alpha", 0.5, *outputs)
    out = capsys.readouterr().out
    model = fastrbhc.BHC("poisson", alpha=0.5).fit(rows())
    assert labels_in(labels.read_text())[1] == model.labels_.tolist()
    assert "counts.csv: 50 rows, 3 columns\nmodel poisson, alpha 0.5\n" in out
    assert f"log evidence at least {model.log_evidence_:,.6g}\n2 clusters; rows in" in out
    run("cut", tree, "--clusters", 2)
    assert labels_in(capsys.readouterr().out)[1] == model.dendrogram_.cut(n_clusters=2).tolist()
    run("bhc", table, "--id", "name", "--model", "poisson", "--clusters", 3, "--json", "-q")
    found = json.loads(capsys.readouterr().out)
    assert found["labels"] == fastrbhc.BHC("poisson", n_clusters=3).fit_predict(rows()).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "poison"], "did you mean 'poisson'"),
        (["--alpha", "much"], "alpha"),
        (["--alpha", 0], "alpha"),
        (["--probability", 2], "probability has to lie between 0 and 1"),
        (["--probability", 0.5, "--clusters", 2], "not allowed with argument"),
        (["--clusters", 0], "n_clusters has to be at least 1"),
        (["--hyperparameters", "guess"], "invalid choice: 'guess'"),
        (["--jobs", 0], "n_jobs has to be positive"),
        (["--plot", "x.xyz"], "pictures cannot be written as .xyz"),
    ],
    ids=str,
)
def test_mistakes_of_bhc_are_refused_before_rows_are_read(tmp_path, capsys, options, message):
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3,x\n")
    assert message in failure(capsys, "bhc", tmp_path / "broken.csv", *options)


def test_more_clusters_than_rows_in_bhc(table, capsys):
    message = failure(capsys, "bhc", table, "--id", "name", "--model", "poisson", "--clusters", 51)
    assert "more than the number of rows, 50" in message
