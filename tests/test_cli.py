"""The command line, run as a person would run it."""

from __future__ import annotations

import csv
import importlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage
from sklearn.metrics import adjusted_rand_score
from trees import same_tree

import fastrbhc
from fastrbhc import cli
from fastrbhc.datasets import load_digit_counts


def two_heaps():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.poisson(4, (30, 3)), rng.poisson(40, (20, 3))])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "counts.csv"
    rows = [f"row{i},{a},{b},{c},2" for i, (a, b, c) in enumerate(two_heaps().tolist())]
    path.write_text("\n".join(["name,a,b,c,copies", *rows]) + "\n")
    return path


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.csv"
    np.savetxt(path, two_heaps(), delimiter=",", fmt="%d")
    return path


def read_labels(path):
    lines = path.read_text().splitlines()
    assert lines[0] == "id,cluster"
    ids, labels = zip(*(line.rsplit(",", 1) for line in lines[1:]), strict=True)
    return list(ids), [int(label) for label in labels]


def failure(capsys, *arguments):
    """The single line that an error prints."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("fastrbhc: error: ")
    assert err.count("\n") == 1
    return err


def test_labels_and_tree_of_a_table_with_names_and_weights(table, tmp_path, capsys):
    labels_path, tree_path = tmp_path / "labels.csv", tmp_path / "tree.npy"
    columns = ["--id", "name", "--weights", "copies"]
    outputs = ["--labels", str(labels_path), "--tree", str(tree_path)]
    arguments = ["cluster", str(table), "--family", "poisson", "--guess", "2"]
    code = cli.main([*arguments, *columns, *outputs])
    out = capsys.readouterr().out
    assert code == 0
    assert "counts.csv: 50 rows, 3 columns, weighted by copies" in out
    assert "family poisson (smoothing 0.01)" in out
    assert "k-means heuristic with guess 2, seed 0" in out
    assert "2 clusters; rows in each: 30, 20" in out
    ids, labels = read_labels(labels_path)
    assert ids == [f"row{i}" for i in range(50)]
    assert labels == [0] * 30 + [1] * 20
    Z = np.load(tree_path)
    assert Z.shape == (49, 4)
    assert is_valid_linkage(Z)
    assert len(set(fcluster(Z, 2, "maxclust"))) == 2


def test_the_same_as_the_estimator(plain, tmp_path, capsys):
    labels_path = tmp_path / "labels.csv"
    assert cli.main(["cluster", str(plain), "--family", "ward", "--labels", str(labels_path)]) == 0
    model = fastrbhc.RBHC("ward").fit(two_heaps())
    ids, labels = read_labels(labels_path)
    assert ids == [str(i) for i in range(50)]
    assert labels == model.labels_.tolist()
    out = capsys.readouterr().out
    assert f"lambda {model.threshold_:.6g} (by predictive)\n{model.choice_}\n" in out
    assert f"wrote {labels_path}" in out


@pytest.mark.parametrize("choice", ["gap", "evidence"])
def test_thresholds_without_a_guess(plain, capsys, choice):
    assert cli.main(["cluster", str(plain), "--family", "ward", "--threshold", choice]) == 0
    model = fastrbhc.RBHC("ward", threshold=choice).fit(two_heaps())
    out = capsys.readouterr().out
    assert f"lambda {model.threshold_:.6g} (by {choice})" in out
    assert f"{model.n_clusters_} clusters; rows in each" in out


def test_the_whole_tree_is_written_though_labels_stop_at_the_threshold(plain, tmp_path, capsys):
    tree_path = tmp_path / "tree"
    arguments = ["cluster", str(plain), "--family", "ward", "--threshold", "20"]
    assert cli.main([*arguments, "--tree", str(tree_path)]) == 0
    whole = fastrbhc.linkage(two_heaps(), "ward")
    assert np.array_equal(np.load(tree_path), whole.to_scipy())
    n_clusters = whole.cut(threshold=20.0).max() + 1
    assert n_clusters > 10
    out = capsys.readouterr().out
    assert f"{n_clusters} clusters; rows in each" in out
    assert f"({n_clusters - 10} more)" in out
    assert "lambda 20 (as given)" in out


def test_the_tree_in_other_forms(table, tmp_path, capsys):
    arguments = ["cluster", str(table), "--family", "ward", "--clusters", "2", "--drop", "copies"]
    for name in ("tree.nwk", "tree.json", "tree.html", "tree.png"):
        option = "--plot" if name.endswith("png") else "--tree"
        assert cli.main([*arguments, "--id", "name", option, str(tmp_path / name)]) == 0
        assert f"wrote {tmp_path / name}" in capsys.readouterr().out
    whole = fastrbhc.linkage(two_heaps(), "ward")
    names = [f"row{i}" for i in range(50)]
    assert (tmp_path / "tree.nwk").read_text() == whole.to_newick(names) + "\n"
    assert (tmp_path / "tree.html").read_text().startswith("<!DOCTYPE html>")
    stored = (tmp_path / "tree.json").read_text()
    assert json.loads(stored)["names"] == names
    again = fastrbhc.Dendrogram.from_json(stored)
    assert same_tree(again, whole)
    assert again.family == whole.family
    assert again.feature_names == ("a", "b", "c")
    assert (again.chosen.by, again.chosen.n_clusters) == ("n_clusters", 2)
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")


def test_inversions_are_told_in_one_line(tmp_path, capsys):
    X, _ = load_digit_counts()
    np.save(tmp_path / "digits.npy", X)
    tree_path = tmp_path / "tree.npy"
    arguments = ["cluster", str(tmp_path / "digits.npy"), "--family", "poisson"]
    assert cli.main([*arguments, "--tree", str(tree_path)]) == 0
    tree = fastrbhc.linkage(X, "poisson")
    assert tree.n_inversions > 0
    assert np.array_equal(np.load(tree_path)[:, 2], tree.levels)
    err = capsys.readouterr().err
    assert err.startswith("fastrbhc: warning: to_scipy raised ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("header", "wide", "narrow"), [("name,income,children\n", "income", "children"), ("", "2", "3")]
)
def test_warnings_name_columns_as_the_file_does(tmp_path, capsys, header, wide, narrow):
    path = tmp_path / "people.csv"
    rows = np.random.default_rng(0).normal(size=(30, 2)) * [1e5, 1.0]
    path.write_text(header + "".join(f"p{i},{a},{b}\n" for i, (a, b) in enumerate(rows.tolist())))
    command = ["cluster", str(path), "--family", "ward", "--id", "1", "--clusters", "2"]
    assert cli.main(command) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith(f"fastrbhc: warning: column '{wide}' has a standard deviation of ")
    assert f"column '{narrow}' one of" in warning


def test_number_of_clusters_other_options_and_an_array(tmp_path, capsys):
    np.save(tmp_path / "x.npy", two_heaps())
    arguments = ["cluster", str(tmp_path / "x.npy"), "--family", "ward", "--clusters", "1"]
    options = ["--variance", "2", "--algorithm", "nn_chain", "--jobs", "1", "--seed", "3"]
    assert cli.main([*arguments, *options]) == 0
    out = capsys.readouterr().out
    assert "1 cluster; rows in each: 50" in out
    assert "family spherical_gaussian (variance 2.0)" in out


def test_progress_goes_to_standard_error(plain, capsys):
    assert cli.main(["cluster", str(plain), "--family", "ward", "--progress"]) == 0
    out, err = capsys.readouterr()
    assert "merging" in err
    assert "merging" not in out


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"fastrbhc {fastrbhc.__version__}\n"
    with pytest.raises(SystemExit) as stop:
        cli.main(["cluster", "--help"])
    assert stop.value.code == 0
    assert "--threshold" in capsys.readouterr().out


def test_a_column_of_names_that_was_not_announced(table, capsys):
    message = failure(capsys, "cluster", table, "--family", "poisson")
    assert "line 2, column 'name': 'row0' is not a number" in message
    assert "--id name" in message


def test_a_missing_value(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,\n")
    assert "line 3, column 'b': missing value" in failure(capsys, "cluster", path)


def test_missing_cells_are_ignored_on_request(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "labels.csv"
    path.write_text("name,a,b,n\nu,1,,1\nv,2,9,2\nw,NA,8,1\nx,70,90,1\ny,80,nan,3\n")
    options = ["--family", "poisson", "--id", "name", "--weights", "n", "--clusters", "2"]
    message = failure(capsys, "cluster", path, *options)
    assert "line 2, column 'b': missing value" in message
    assert "--missing ignore" in message
    options += ["--missing", "ignore", "--labels", str(out)]
    assert cli.main(["cluster", str(path), *options]) == 0
    said = capsys.readouterr().out
    assert "5 rows, 2 columns, weighted by n, 30 % of the cells missing" in said
    X = [[1, np.nan], [2, 9], [np.nan, 8], [70, 90], [80, np.nan]]
    tree = fastrbhc.linkage(X, "poisson", missing="ignore", sample_weight=[1, 2, 1, 1, 3])
    assert read_labels(out)[1] == tree.cut(n_clusters=2).tolist()


def test_missing_cells_of_mixed_tables(tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "labels.csv"
    path.write_text("n,visits,country,x\n1,1,FR,0.5\n2,,FR,0.4\n1,30,,0.1\n1,35,NA,0.2\n3,2,,0.3\n")
    options = ["--family", "poisson:visits", "categorical:country", "ward:x", "--weights", "n"]
    options += ["--clusters", "2"]
    assert "line 3, column 'visits': missing value" in failure(capsys, "cluster", path, *options)
    options += ["--missing", "ignore", "--labels", str(out)]
    assert cli.main(["cluster", str(path), *options]) == 0
    assert "20 % of the cells missing" in capsys.readouterr().out
    X = [[1, "FR", 0.5], [None, "FR", 0.4], [30, None, 0.1], [35, "NA", 0.2], [2, None, 0.3]]
    family = {"poisson": [0], "categorical": [1], "ward": [2]}
    tree = fastrbhc.linkage(X, family, missing="ignore", sample_weight=[1, 2, 1, 1, 3])
    assert read_labels(out)[1] == tree.cut(n_clusters=2).tolist()
    path.write_text(path.read_text().replace("\n1,35", "\n,35"))  # a weight
    assert "line 5, column 'n': missing value" in failure(capsys, "cluster", path, *options)


def test_missing_weights_and_words_are_still_refused(tmp_path, capsys):
    path, options = tmp_path / "t.csv", ["--family", "ward", "--missing", "ignore"]
    path.write_text("a,b\n1,2\n,3\n4,\n")
    message = failure(capsys, "cluster", path, "--weights", "b", *options)
    assert "line 4, column 'b': missing value" in message
    path.write_text("a,b\n1,2\n,3\n4,five\n")
    assert "line 4, column 'b': 'five' is not" in failure(capsys, "cluster", path, *options)
    path.write_text("a,b\n1,2\n,\n4,5\n")
    assert "no cell is observed: row 1" in failure(capsys, "cluster", path, *options)


def test_missing_cells_need_separate_columns(tmp_path, capsys):
    message = failure(capsys, "cluster", _nan(tmp_path), "--missing", "ignore")
    assert "'gaussian' is not one" in message
    options = ["--family", "ward", "--clusters", "2", "--missing", "ignore"]
    assert cli.main(["cluster", str(_nan(tmp_path)), *options]) == 0
    assert "17 % of the cells missing" in capsys.readouterr().out


def _nan(folder):
    path = folder / "x.npy"
    np.save(path, [[1.0, 2.0], [3.0, np.nan], [0.0, 1.0]])
    return path


def test_nan_in_an_array(tmp_path, capsys):
    np.save(tmp_path / "x.npy", [[1.0, 2.0], [3.0, np.nan], [0.0, 1.0]])
    message = failure(capsys, "cluster", tmp_path / "x.npy")
    assert "x.npy contains NaN: row 1, column '2' is nan" in message


def test_a_negative_count(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,-4\n5,6\n")
    message = failure(capsys, "cluster", path, "--family", "poisson")
    assert "t.csv: row 1, column 'b' is -4" in message
    assert "poisson" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--family", "poison"], "did you mean 'poisson'"),
        (["--family", "ward", "--clusters", "51"], "more than the number of rows, 50"),
        (["--clusters", "0"], "at least 1"),
        (["--clusters", "two"], "invalid int value: 'two'"),
        (["--guess", "0"], "at least 1"),
        (["--threshold", "-1"], "at least 0"),
        (
            ["--threshold", "gab"],
            "threshold has to be one of 'predictive', 'gap', 'evidence', 'kmeans'",
        ),
        (["--threshold", "3", "--clusters", "2"], "not allowed with argument --threshold"),
        (["--guess", "8", "--clusters", "2"], "not allowed with argument --guess"),
        (["--family", "ward", "--smoothing", "1"], "no smoothing; it has variance"),
        (["--family", "poisson", "--variance", "1"], "no variance; it has smoothing"),
        (["--family", "poisson", "--smoothing", "-1"], "not negative"),
        (["--algorithm", "magic"], "algorithm has to be one of"),
        (["--jobs", "0"], "n_jobs has to be positive"),
        (["--id", "name"], "has no column 'name'"),
        (["--weights", "9"], "has no column '9'"),
        (["--labels", "no/such/place.csv"], "there is no directory"),
        (["--labels", "."], "is a directory"),
        (["--colour", "red"], "unrecognized arguments: --colour red. See fastrbhc cluster --help"),
        (["--n-clusters", "3"], "--n-clusters 3. Did you mean --clusters? See"),
        (["--n_clusters=3"], "--n_clusters=3. Did you mean --clusters? See"),
    ],
)
def test_mistakes_in_options(plain, capsys, arguments, message):
    assert message in failure(capsys, "cluster", plain, *arguments)


def test_files_that_will_not_do(tmp_path, capsys):
    assert "there is no file" in failure(capsys, "cluster", tmp_path / "no.csv")
    (tmp_path / "empty.csv").touch()
    assert "is empty" in failure(capsys, "cluster", tmp_path / "empty.csv")
    (tmp_path / "one.csv").write_text("1,2\n")
    assert "1 rows: at least 2" in failure(capsys, "cluster", tmp_path / "one.csv")
    assert "COMMAND" in failure(capsys)


def test_errors_from_the_system_and_from_memory(plain, capsys, monkeypatch):
    def stop_with(error):
        def fail(*arguments, **options):
            raise error

        monkeypatch.setattr("fastrbhc.cli.tables.read_table", fail)

    stop_with(PermissionError(13, "Permission denied", "secret.csv"))
    assert "secret.csv: Permission denied" in failure(capsys, "cluster", plain)
    stop_with(MemoryError("Unable to allocate 90 GiB"))
    assert "not enough memory. Unable to allocate" in failure(capsys, "cluster", plain)
    stop_with(KeyboardInterrupt())
    assert cli.main(["cluster", str(plain)]) == 130
    assert capsys.readouterr() == ("", "")


def test_as_a_process(table, tmp_path):
    command = [sys.executable, "-m", "fastrbhc", "cluster"]
    options = ["--family", "ward", "--clusters", "2", "--id", "name", "--drop", "copies"]
    done = subprocess.run(
        [*command, str(table), *options, "--labels", str(tmp_path / "labels.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 clusters; rows in each: 30, 20" in done.stdout
    assert read_labels(tmp_path / "labels.csv")[1] == [0] * 30 + [1] * 20
    done = subprocess.run([*command, "no.csv"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastrbhc: error: there is no file no.csv\n"


def test_no_file_is_written_over(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text("0,0\n1,1\n5,5\n")
    for outputs in (["--labels", str(path)], ["--labels", "same", "--tree", "same"]):
        assert cli.main(["cluster", str(path), "--clusters", "2", *outputs]) == 2
        assert "different files" in capsys.readouterr().err
    assert path.read_text() == "0,0\n1,1\n5,5\n"


def test_names_that_spreadsheets_take_for_formulas(tmp_path):
    names = ["=1+1", "+x", "@c", "-3", "-y", "plain"]
    path, labels = tmp_path / "t.csv", tmp_path / "labels.csv"
    path.write_text("n,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(names)))
    arguments = ["cluster", path, "--id", "n", "--family", "ward", "--clusters", 2]
    assert cli.main([*map(str, arguments), "--labels", str(labels)]) == 0
    assert read_labels(labels)[0] == names
    assert cli.main([*map(str, arguments), "--labels", str(labels), "--escape-formulas"]) == 0
    assert read_labels(labels)[0] == ["'=1+1", "'+x", "'@c", "-3", "'-y", "plain"]


def test_names_that_newick_cannot_write_are_noticed_before_the_work(tmp_path, capsys, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text('n,x\n"a\nb",1\nc,2\nd,3\n')
    monkeypatch.setattr(fastrbhc, "RBHC", None)
    tree = tmp_path / "tree.nwk"
    message = failure(capsys, "cluster", path, "--id", "n", "--clusters", 2, "--tree", tree)
    assert "the name of row 0, 'a\\nb', has the control character" in message
    assert not tree.exists()


def test_a_broken_sparse_matrix_does_not_crash(tmp_path):
    path = tmp_path / "b.npz"
    np.savez(path, data=np.ones(3), indices=[0, 10**9, 1], indptr=[0, 1, 2, 3], shape=[3, 3])
    command = [sys.executable, "-m", "fastrbhc", "cluster", str(path), "--family", "poisson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "b.npz is a sparse matrix with a broken structure" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("module", ["numba", "sklearn"])
@pytest.mark.parametrize("as_module", [True, False])
@pytest.mark.usefixtures("ctrl_c_counts")
def test_ctrl_c_during_imports_prints_nothing(tmp_path, module, as_module):
    (tmp_path / module).mkdir()
    interrupt = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    (tmp_path / module / "__init__.py").write_text(interrupt)
    script = tmp_path / "fastrbhc"  # as installed by pip
    script.write_text("import sys\nfrom fastrbhc.cli import main\nsys.exit(main())\n")
    root = str(Path(fastrbhc.__file__).parent.parent)
    command = ["-m", "fastrbhc"] if as_module else [str(script)]
    done = subprocess.run(
        [sys.executable, *command, "cluster", "rows.csv"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])},
        cwd=root,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("ctrl_c_counts")
def test_ctrl_c_in_other_programs_is_left_alone():
    program = "import signal, fastrbhc; print(signal.getsignal(signal.SIGINT).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "default_int_handler\n"


# Columns of different kinds.


def people(n=90):
    """Rows of three kinds of people, in words and numbers, and their kinds."""
    rng = np.random.default_rng(1)
    kind = np.arange(n) % 3
    rows = [
        {
            "id": f"p{i}",
            "visits": int(rng.poisson([2, 9, 20][k])),
            "age": round(float(rng.normal([30, 55, 40][k], 4.0)), 2),
            "country": ["FR", "DE", "South Africa"][k],
            "notes": "a, b" if i % 2 else "",
        }
        for i, k in enumerate(kind)
    ]
    return rows, kind


MIXED = ["--family", "poisson:visits", "gaussian:age", "categorical:country", "ignore:notes"]


def write_people(folder, suffix):
    """The same table in another format."""
    path = folder / f"people{suffix}"
    rows, _ = people()
    if suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(importlib.import_module("pyarrow").Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_different_kinds(tmp_path, capsys, suffix):
    path, labels = write_people(tmp_path, suffix), tmp_path / "labels.csv"
    tree, picture = tmp_path / "tree.json", tmp_path / "tree.png"
    outputs = ["--labels", labels, "--tree", tree, "--plot", picture]
    arguments = ["cluster", path, "--id", "id", "--clusters", "3", *MIXED, *outputs]
    assert cli.main([str(argument) for argument in arguments]) == 0
    out = capsys.readouterr().out
    assert "90 rows, 3 columns\nfamily product of 3 families\n" in out
    assert "\n  poisson (smoothing 0.01): visits\n  gaussian (smoothing 0.01): age\n" in out
    assert "\n  categorical (smoothing 0.1, 3 levels): country\n" in out
    rows, kind = people()
    ids, found = read_labels(labels)
    assert ids == [row["id"] for row in rows]
    assert adjusted_rand_score(kind, found) > 0.9
    X = [[row["visits"], row["age"], row["country"]] for row in rows]
    family = {"poisson": [0], "gaussian": [1], "categorical": [2]}
    reference = fastrbhc.linkage(X, family)
    restored = fastrbhc.Dendrogram.from_json(tree.read_text())
    np.testing.assert_array_equal(restored.heights, reference.heights)
    assert restored.family.blocks == reference.family.blocks
    assert picture.stat().st_size > 0


def test_the_file_may_follow_the_families(tmp_path, capsys):
    path = str(write_people(tmp_path, ".csv"))
    cli.main(["cluster", path, "--id", "id", *MIXED, "--clusters", "3"])
    reference = capsys.readouterr().out.splitlines()[:-1]
    cli.main(["cluster", "--id", "id", "--clusters", "3", *MIXED, path])
    assert capsys.readouterr().out.splitlines()[:-1] == reference
    options = [f"--family={word}" for word in MIXED[1:]]
    cli.main(["cluster", "--id", "id", "--clusters", "3", *options, path])
    assert capsys.readouterr().out.splitlines()[:-1] == reference


def test_a_family_and_then_the_file(plain, capsys):
    assert cli.main(["cluster", "--family", "poisson", str(plain), "--clusters", "2"]) == 0
    assert "family poisson (smoothing 0.01)" in capsys.readouterr().out


def test_weights_of_families_and_positions_of_columns(plain, capsys):
    families = ["--family", "poisson*0.5:1,3", "ward:2"]
    assert cli.main(["cluster", str(plain), *families, "--threshold", "3"]) == 0
    out = capsys.readouterr().out
    assert "poisson (smoothing 0.01, weight 0.5): 1, 3\n" in out
    X = two_heaps()
    tree = fastrbhc.linkage(X, {"poisson": ([0, 2], 0.5), "ward": [1]}, threshold=3.0)
    assert f"\n{tree.n_trees} clusters;" in out


@pytest.mark.parametrize("header", [True, False], ids=["header", "no header"])
def test_a_table_of_text_alone(tmp_path, capsys, header):
    path = tmp_path / "words.csv"
    lines = ["red,1,small", "red,1,small", "blue,2,large", "blue,1,large"]
    path.write_text("\n".join((["colour,n,size"] if header else []) + lines) + "\n")
    arguments = ["--family", "categorical", "--clusters", "2"]
    assert cli.main(["cluster", str(path), *arguments]) == 0
    out = capsys.readouterr().out
    assert "4 rows, 3 columns\nfamily categorical (smoothing 0.1, 6 levels)" in out
    assert "2 clusters; rows in each: 2, 2" in out
    names = ["colour,size"] if header else []
    path.write_text("\n".join([*names, "red,small", "red,small", "blue,large", "x,y"]) + "\n")
    assert cli.main(["cluster", str(path), *arguments]) == 0
    assert f"{4 if header else 3} rows, 2 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("families", "message"),
    [
        (["poisson:visits"], "no family has 'age', 'country', 'notes' of people.csv"),
        (["poisson:visit"], "people.csv has no column 'visit'"),
        (["poisson:visits,country", "ignore:age,notes"], "column 'country': 'FR' is not a number"),
        (["poisson:visits,id"], "column 'id' of people.csv has the names of the rows"),
        (["poisson:notes", "ignore:notes"], "or is left out: no family can have it"),
        (
            ["categorical:notes", "ignore:visits,age,country"],
            "line 2, column 'notes': missing value ('')",
        ),
        (
            ["poisson:visits", "ward:visits,age", "ignore:country,notes"],
            "column 'visits' is in two blocks",
        ),
        (["poisson:"], "an empty name of a column"),
        (["poisson*x:visits"], "a number was expected after *"),
        (["poisson*-1:visits", "ward:age"], "weight of the block 'poisson'"),
        (["poison:visits"], "did you mean 'poisson'"),
        (["ignore:visits"], "gives none to a family"),
        (["poisson:visits", "--family", "ward"], "--family ward has no columns"),
        (["poisson", "--family", "ward"], "give one family, or columns to each"),
        (["poisson:visits", "--smoothing", "1"], "--smoothing is for a single family"),
        (["poisson*2:age", "ignore:visits,country,notes"], "a weight compares blocks"),
    ],
    ids=str,
)
def test_mistakes_in_families_of_columns(tmp_path, capsys, families, message):
    path = write_people(tmp_path, ".csv")
    assert message in failure(capsys, "cluster", path, "--id", "id", "--family", *families)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("option", [[], ["--family", "auto"]])
def test_auto_finds_a_family_for_each_column_of_a_table_with_text(tmp_path, capsys, suffix, option):
    path, labels = write_people(tmp_path, suffix), tmp_path / "labels.csv"
    outputs = ["--clusters", "3", "--labels", labels]
    command = ["cluster", path, "--id", "id", "--drop", "notes", *option, *outputs]
    assert cli.main([str(word) for word in command]) == 0
    said = capsys.readouterr()
    assert "family product of" in said.out
    assert "categorical (smoothing 0.1, 3 levels): country\n" in said.out
    assert "--family auto is a family for each column of people" in said.err
    assert adjusted_rand_score(read_labels(labels)[1], people()[1]) > 0.9


def test_auto_leaves_out_names_and_takes_the_same_as_linkage(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = ["x,x,name,kind,flag"]
    for k in range(60):
        x, y = rng.normal(9 * (k % 2), 1, 2)
        rows.append(f"{x},{y},n{k},{'ab'[k % 2]},{bool(rng.random() < 0.5)}")
    path, tree = tmp_path / "t.csv", tmp_path / "tree.json"
    path.write_text("\n".join(rows))
    assert cli.main(["cluster", str(path), "--tree", str(tree)]) == 0
    assert "it leaves out name." in capsys.readouterr().err
    frame = pytest.importorskip("pandas").read_csv(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fastrbhc.linkage(frame)
    computed = fastrbhc.Dendrogram.from_json(tree.read_text())
    assert computed.family == expected.family
    np.testing.assert_allclose(computed.heights, expected.heights)


@pytest.mark.parametrize(
    ("values", "family"),
    [
        (np.random.default_rng(0).poisson(1.0, (80, 3)), "poisson"),
        (np.random.default_rng(0).random((80, 3)) < 0.3, "bernoulli"),
    ],
)
def test_auto_of_counts_and_truth_values(tmp_path, capsys, values, family):
    path = tmp_path / "t.csv"
    lines = [",".join(map(str, row)) for row in values.tolist()]
    path.write_text("\n".join(["a,b,c", *lines]))
    assert cli.main(["cluster", str(path), "--clusters", "2"]) == 0
    said = capsys.readouterr()
    assert f"family {family} " in said.out
    assert f"fastrbhc: --family auto is {family} for t.csv (" in said.err
    named = ["cluster", str(path), "--clusters", "2", "--family", family]
    assert cli.main(named) == 0
    assert "auto" not in capsys.readouterr().err


def test_a_smoothing_makes_auto_a_family_of_measurements(tmp_path, capsys):
    path = tmp_path / "t.csv"
    counts = np.random.default_rng(0).poisson(1.0, (80, 2))
    np.savetxt(path, counts, delimiter=",", fmt="%d", header="a,b", comments="")
    assert cli.main(["cluster", str(path), "--clusters", "2", "--smoothing", "0.5"]) == 0
    assert "family gaussian (smoothing 0.5)" in capsys.readouterr().out


def test_text_without_a_family_for_it(tmp_path, capsys):
    path = write_people(tmp_path, ".csv")
    arguments = ["cluster", path, "--id", "id", "--drop", "notes"]
    message = failure(capsys, *arguments, "--family", "ward")
    assert "line 2, column 'country': 'FR' is not a number" in message
    assert "--family ward:OTHERS categorical:country" in message
    few = tmp_path / "few.csv"
    few.write_text("x,kind\n1,a\n2,b\n3,b\n")
    message = failure(capsys, "cluster", few)
    assert "column 'kind' of few.csv holds text, and the rows are too few" in message
    assert "categorical:kind" in message


def test_rows_without_counts_in_a_block(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n0,0,1\n1,2,3\n2,2,5\n")
    message = failure(capsys, "cluster", path, "--family", "multinomial:a,b", "ward:c")
    assert "t.csv contains 1 rows without any count" in message
    assert "--drop-empty-rows" not in message
