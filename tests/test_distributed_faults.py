"""Faults in rows, files and disks: errors say where, nothing is half-written, jobs are resumed."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fastrbhc
from fastrbhc import distributed
from fastrbhc._options import DEFAULT_GUESS
from fastrbhc.distributed import _dividing, _scratch, _stages

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).poisson(20.0, size=(400, 2)).astype(float)
REFERENCE = fastrbhc.linkage(X, "ward")


def blocks(rows=X, size=10):
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def linkage(data=None, family="ward", **options):
    options.setdefault("n_cells", 4)
    return distributed.linkage(blocks() if data is None else data, family, **options)


def same(tree):
    np.testing.assert_array_equal(tree.merges, REFERENCE.merges)
    np.testing.assert_array_equal(tree.heights, REFERENCE.heights)


@pytest.fixture(autouse=True)
def temporary_folders(tmp_path, monkeypatch):
    """Where temporary folders are made: nothing is left there, nor half-written elsewhere."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert [*tmp_path.glob("**/.unfinished-*")] == []


def changed(row, column, value):
    rows = X.copy()
    rows[row, column] = value
    return rows


# Rows


@pytest.mark.parametrize(
    ("data", "family", "message"),
    [
        (changed(374, 1, np.nan), "ward", "partition 37: .* NaN: row 4, column 1"),
        (changed(374, 0, np.inf), "ward", "partition 37: .*infinity: row 4, column 0"),
        (changed(59, 0, -1.0), "poisson", "partition 5: Negative values .*row 9, column 0"),
    ],
)
def test_values_that_a_family_does_not_take(temporary_folders, data, family, message):
    with pytest.raises(ValueError, match=message):
        linkage(blocks(data), family)
    with pytest.raises(ValueError, match=r"partition 0 .*row"):
        linkage(data, family)
    assert [*temporary_folders.iterdir()] == []


def test_rows_of_another_width(tmp_path):
    some = [*blocks()]
    some[3] = np.zeros((10, 3))
    with pytest.raises(ValueError, match="partition 3 has 3 columns, and partition 0 has 2"):
        linkage(some)
    some[3] = np.zeros(10)
    with pytest.raises(ValueError, match=r"partition 3: .*shape \(10,\)"):
        linkage(some)
    for number, columns in enumerate((["a", "b"], ["a", "b", "c"])):
        frame = pd.DataFrame(np.ones((5, len(columns))), columns=columns)
        frame.to_parquet(tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match=r"partition 1 \(1.parquet\) has a column 'c'"):
        linkage(tmp_path)
    frame[["a"]].to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"partition 1 \(1.parquet\) lacks the column 'b'"):
        linkage(tmp_path)


def test_columns_without_numbers(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "name": ["x", "y", "z"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"partition 0 \(rows.parquet, row group 0\).*'name'"):
        linkage(tmp_path)
    assert linkage(tmp_path, columns=["a"]).n_leaves == 3
    with pytest.raises(ValueError, match="partition 1: column 'name' of X holds text"):
        linkage([frame.assign(name=0.0), frame])


def test_missing_values_of_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, None, 4], "b": [1, 2, 3, 4]}, dtype="Int64")
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=2)
    with pytest.raises(ValueError, match=r"partition 0 .*NaN: row 2, column 'a'"):
        linkage(tmp_path)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "partition 2: sample_weight is negative in row 7"),
        (0.0, "partition 2: row 7 has the weight 0"),
        (np.nan, "partition 2: sample_weight is not finite in row 7"),
    ],
)
def test_faulty_weights(weight, message):
    weights = np.ones(len(X))
    weights[27] = weight
    with pytest.raises(ValueError, match=message):
        linkage(zip(blocks(), blocks(weights), strict=True))
    with pytest.raises(ValueError, match=r"partition 0 \(rows from 0 on\): .*row 27"):
        linkage(X, sample_weight=weights)


def test_weights_of_another_length():
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(400,\)"):
        linkage(X, sample_weight=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"partition 1: sample_weight has shape \(9,\)"):
        linkage([(X, np.ones(400)), (X[:10], np.ones(9))])
    with pytest.raises(ValueError, match="some partitions have weights, and others have none"):
        linkage([(X, np.ones(400)), X])
    with pytest.raises(ValueError, match="let each block be a pair"):
        linkage(blocks(), sample_weight=np.ones(400))


@pytest.mark.parametrize("data", [(), [X[:0], X[:0]], X[:0]])
def test_no_rows(data):
    with pytest.raises(ValueError, match="no rows"):
        linkage(iter(data) if isinstance(data, tuple) else data)


def test_one_row():
    # As in linkage: a tree needs two.
    with pytest.raises(ValueError, match="minimum of 2"):
        fastrbhc.linkage(X[:1], "ward")
    with pytest.raises(ValueError, match="there is one row, and a tree needs at least 2"):
        linkage(X[:1])


def test_an_iterator_that_fails(temporary_folders):
    def some():
        yield X
        raise OSError(errno.EIO, "the tape is torn")

    with pytest.raises(OSError, match="the tape is torn"):
        linkage(some())
    assert [*temporary_folders.iterdir()] == []


# Files


def test_files_that_are_cut_short(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    whole = path.read_bytes()
    for size in (0, 3, 60, 500):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"rows.npy cannot be read"):
            linkage(path)
    np.save(path, X)
    stored = np.load(path, mmap_mode="r")
    original = _dividing.survey

    def cut(*arguments):
        found = original(*arguments)
        os.truncate(path, 1000)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastrbhc.distributed._job.survey", cut)
        with pytest.raises(ValueError, match=r"partition 0 .*rows.npy is cut short"):
            linkage(stored)


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "rows.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"rows.parquet cannot be read as a parquet file"):
        linkage(tmp_path / "rows.parquet")
    np.save(tmp_path / "objects.npy", np.array([["a", None]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects.npy cannot be read"):
        linkage(tmp_path / "objects.npy")


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_files_that_vanish_between_reading_and_dividing(tmp_path, temporary_folders, kind):
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        pd.DataFrame(X, columns=["a", "b"]).to_parquet(path)
    original = _dividing.survey

    def vanish(*arguments):
        found = original(*arguments)
        path.unlink()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastrbhc.distributed._job.survey", vanish)
        with pytest.raises(FileNotFoundError, match=r"partition 0 .*is gone"):
            linkage(path)
    assert [*temporary_folders.iterdir()] == []


def test_files_that_change_between_reading_and_dividing(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(path)
    original = _dividing.survey

    def change(*arguments):
        found = original(*arguments)
        pd.DataFrame(X[:9], columns=["a", "b"]).to_parquet(path)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastrbhc.distributed._job.survey", change)
        with pytest.raises(ValueError, match=r"partition 0 .*9 rows, and 400 were expected"):
            linkage(path)


# Disks


def full(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("writer", ["write_values", "write_table", "write_array", "write_json"])
def test_a_full_disk(tmp_path, temporary_folders, writer):
    place = {
        "write_values": "fastrbhc.distributed._partitions.write_values",
        "write_array": "fastrbhc.distributed._dividing.write_array",
        "write_table": "fastrbhc.distributed._stage_files.write_table",
        "write_json": "fastrbhc.distributed._stage_files.write_json",
    }[writer]
    for scratch in (None, tmp_path / "scratch"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, full)
            with pytest.raises(distributed.ScratchFullError, match=r"no room left.*scratch="):
                linkage(scratch=scratch)
        assert [*temporary_folders.iterdir()] == []
    same(linkage(scratch=tmp_path / "scratch"))  # goes on where it was


def test_a_full_disk_of_small_files_and_labels(tmp_path):
    tree = linkage(output="files", scratch=tmp_path / "scratch")
    before = (tree.folder / "tree.json").read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(distributed.ScratchFullError, match=r"no room left for tree.json"):
            linkage(output="files", scratch=tmp_path / "scratch", threshold="gap")
        with pytest.raises(distributed.ScratchFullError, match=r"larger disk for the labels"):
            tree.cut(n_clusters=3, output=tmp_path / "labels")
        with pytest.raises(distributed.ScratchFullError, match=r"larger disk for the tree"):
            tree.save(tmp_path / "copy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(distributed.ScratchFullError, match=r"larger disk for the tree"):
            tree.save(tmp_path / "copy")
    assert (tree.folder / "tree.json").read_text() == before
    assert not (tmp_path / "labels").exists()
    assert not (tmp_path / "copy").exists()


def test_errors_survive_pickling():
    # As they do on their way from a worker.
    with pytest.raises(distributed.ScratchFullError) as caught, _scratch.disk_errors(Path("/a/b")):
        full()
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is distributed.ScratchFullError
    assert str(again) == str(caught.value)
    assert again.errno == errno.ENOSPC


# Folders


def test_scratch_folders_that_hold_something_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="is not empty, and not the scratch folder"):
        linkage(scratch=tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        linkage(scratch=tmp_path / "thesis.tex")


def test_scratch_folders_of_another_job(tmp_path):
    same(linkage(scratch=tmp_path / "scratch"))
    for data, options, key in [
        (blocks(X[::-1]), {}, "rows"),
        (blocks(X[:-10]), {}, "partitions"),
        (blocks(X, 20), {}, "partitions"),
        (blocks(), {"family": "poisson"}, "family"),
        (blocks(), {"random_state": 1}, "seed"),
        (blocks(pd.DataFrame(X, columns=["a", "b"])), {}, "names"),
    ]:
        with pytest.raises(ValueError, match=f"another job: it differs in '{key}'"):
            linkage(data, scratch=tmp_path / "scratch", **options)
    same(linkage(scratch=tmp_path / "scratch"))
    (tmp_path / "scratch" / "job.json").write_text('{"format": ')
    with pytest.raises(ValueError, match=r"job.json is damaged"):
        linkage(scratch=tmp_path / "scratch")


def test_one_call_at_a_time_in_a_scratch_folder(tmp_path):
    pytest.importorskip("fcntl")

    def some():
        with pytest.raises(ValueError, match="another call is working in the folder"):
            linkage(X, scratch=tmp_path / "scratch")
        yield from blocks()

    same(linkage(some(), scratch=tmp_path / "scratch"))


def test_output_folders_that_are_not_empty(tmp_path):
    tree = linkage(output="files")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "old.txt").write_text("...")
    with pytest.raises(FileExistsError, match="labels is not empty"):
        tree.cut(n_clusters=2, output=tmp_path / "labels")
    with pytest.raises(FileExistsError, match=r"old.txt is a file"):
        tree.cut(n_clusters=2, output=tmp_path / "labels" / "old.txt")
    with pytest.raises(FileExistsError, match="exists already"):
        tree.save(tmp_path / "labels")
    (tmp_path / "labels" / "old.txt").unlink()
    labels = tree.cut(n_clusters=2, output=tmp_path / "labels")
    np.testing.assert_array_equal(labels.to_numpy(), REFERENCE.cut(n_clusters=2))
    assert [*tmp_path.glob("labels/*.npy")] == []


# Jobs that died


@pytest.mark.parametrize("place", ["divide", "merge_cell", "merge_left"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_jobs_that_died_are_resumed(tmp_path, monkeypatch, place, error):
    # Each function does its work unless its files are there: those calls are counted.
    made = {"divide": 0, "merge": 0}
    divide, write = _dividing._divide, _stages.write_stage
    last = {"divide": (20, 0), "merge_cell": (40, 2), "merge_left": (40, 4)}[place]

    def counted(kind, original):
        def call(*arguments):
            if (made["divide"], made["merge"]) == last:
                raise error("the power went")
            made[kind] += 1
            return original(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dividing, "_divide", counted("divide", divide))
        patch.setattr(_stages, "write_stage", counted("merge", write))
        with pytest.raises(error, match="the power went"):
            linkage(scratch=tmp_path / "scratch")
    with pytest.raises(ValueError, match="the job has not finished"):
        distributed.load(tmp_path / "scratch")
    last = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dividing, "_divide", counted("divide", divide))
        patch.setattr(_stages, "write_stage", counted("merge", write))
        same(linkage(scratch=tmp_path / "scratch"))
    assert made == {"divide": 40, "merge": 5}


KILLED = """
import os, signal, sys
import numpy as np
from fastrbhc import distributed
from fastrbhc._options import DEFAULT_GUESS
from fastrbhc.distributed import _stages

write, calls = _stages.write_stage, []

def killed(folder, stage):
    write(folder, stage)
    calls.append(folder)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

_stages.write_stage = killed
X = np.load(sys.argv[1])
blocks = (X[start : start + 10] for start in range(0, len(X), 10))
distributed.linkage(blocks, "ward", n_cells=4, scratch=sys.argv[2])
"""


def test_a_process_that_was_killed(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", X)
    scratch = tmp_path / "scratch"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "rows.npy", scratch]
    root = str(Path(fastrbhc.__file__).parents[1])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": root}, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    # The second stage had been written, and not been given its name yet.
    assert [path.name for path in scratch.glob("stages/0*")] == ["00000"]
    assert len([*scratch.glob("stages/.unfinished-*")]) == 1
    before = (scratch / "stages" / "00000").stat().st_mtime_ns
    same(linkage(scratch=scratch))
    assert (scratch / "stages" / "00000").stat().st_mtime_ns == before


def test_arrays_are_divided_alike_with_other_workers(tmp_path, monkeypatch):
    path = "fastrbhc.distributed._sources.rows_at_a_time"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path, lambda *arguments: 90)
        same(linkage(X, scratch=tmp_path / "scratch"))
    same(linkage(X, scratch=tmp_path / "scratch"))
    tree = linkage(X, scratch=tmp_path / "scratch", output="files")
    assert tree.sizes == (90, 90, 90, 90, 40)


# Trees in folders


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees") / "tree"
    tree = linkage([*blocks(X, 150), X[:0]], output="files", threshold="gap")
    return tree.save(folder)


def test_what_is_saved_is_loaded(stored, tmp_path, monkeypatch):
    monkeypatch.chdir(stored.folder.parent)
    tree = distributed.load("tree")
    monkeypatch.chdir(tmp_path)
    assert tree.chosen == stored.chosen
    assert tree.chosen.by == "gap"
    assert (tree.sizes, tree.n_leaves, tree.certified) == ((150, 150, 100, 0), 400, True)
    assert tree.family == stored.family
    assert repr(tree) == repr(stored)
    same(tree.to_dendrogram())
    gap = fastrbhc.linkage(X, "ward", threshold="gap")
    np.testing.assert_array_equal(tree.cut().to_numpy(), gap.cut())
    again = tree.save("copy")
    assert again.folder == tmp_path / "copy"
    np.testing.assert_array_equal(again.cut().to_numpy(), gap.cut())


def test_infinite_levels_are_saved(tmp_path):
    tree = linkage(output="files", threshold=np.inf).save(tmp_path / "tree")
    assert distributed.load(tmp_path / "tree").chosen.threshold == np.inf
    assert tree.cut().n_clusters == 1


def damaged(stored, tmp_path, **changes):
    copy = stored.save(tmp_path / "tree").folder
    content = json.loads((copy / "tree.json").read_text())
    for key, value in changes.items():
        content[key] = value
        if value is None:
            del content[key]
    (copy / "tree.json").write_text(json.dumps(content))
    return copy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, r"has the format 2, and this version .* reads 1"),
        ({"version": "?"}, r"has the format '\?'"),
        ({"format": "fastrbhc.labels"}, "does not describe a tree"),
        ({"n_stages": None}, r"tree.json is damaged: it lacks 'n_stages'"),
        ({"n_stages": 9}, r"is not whole: .*00005.stage.json is gone"),
        ({"n_stages": "many"}, r"tree.json is damaged"),
        ({"n_leaves": 7}, r"400 rows in its files, and 7 are expected"),
        ({"family": {"name": 3}}, r"tree.json is damaged"),
    ],
)
def test_manifests_that_are_damaged(stored, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        distributed.load(damaged(stored, tmp_path, **changes))


def test_files_of_trees_that_are_damaged(stored, tmp_path):
    copy = damaged(stored, tmp_path)
    (copy / "stages" / "00001" / "merges.parquet").write_bytes(b"PAR1")
    tree = distributed.load(copy)
    with pytest.raises(ValueError, match=r"00001.merges.parquet is damaged"):
        tree.cut(n_clusters=2)
    (copy / "stages" / "00001" / "merges.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges.parquet"):
        tree.cut(n_clusters=2, output=tmp_path / "labels")
    assert not (tmp_path / "labels").exists()
    (copy / "stages" / "00002" / "stage.json").write_text("{}")
    with pytest.raises(ValueError, match=r"stage.json is damaged"):
        distributed.load(copy)
    (copy / "tree.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"tree.json is damaged"):
        distributed.load(copy)
    for folder in (tmp_path / "nowhere", copy / "tree.json"):
        with pytest.raises(ValueError, match="there is no tree in"):
            distributed.load(folder)


def test_pickles(stored):
    again = pickle.loads(pickle.dumps(stored))
    same(again.to_dendrogram())
    temporary = linkage(output="files")
    with pytest.raises(TypeError, match=r"cannot be pickled.*save\(folder\)"):
        pickle.dumps(temporary)
    with pytest.raises(TypeError, match=r"cannot be pickled"):
        pickle.dumps(stored.cut(n_clusters=2))


def test_temporary_trees_live_as_long_as_what_refers_to_them(temporary_folders):
    import copy
    import gc

    tree = linkage(output="files")
    copies = [copy.copy(tree), copy.deepcopy(tree)]
    del tree
    gc.collect()
    for one in copies:
        assert one.top(3).n_leaves == 3
    del copies, one
    gc.collect()
    assert [*temporary_folders.iterdir()] == []


# Labels and thresholds


def test_labels_of_partitions(stored):
    expected = REFERENCE.cut(n_clusters=5)
    labels = stored.cut(n_clusters=5)
    assert (len(labels), labels.sizes, labels.n_clusters) == (4, (150, 150, 100, 0), 5)
    np.testing.assert_array_equal(labels.to_numpy(), expected)
    np.testing.assert_array_equal(np.concatenate([*labels]), expected)
    np.testing.assert_array_equal(labels[-2], expected[300:])
    np.testing.assert_array_equal(labels.weights, np.bincount(expected))
    with pytest.raises(IndexError, match="4 partitions, and no number 4"):
        labels[4]
    assert "400 rows in 4 partitions, 5 clusters" in repr(labels)


@pytest.mark.parametrize("known", [True, False])
def test_labels_beside_a_dask_frame(stored, known):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(
        pd.DataFrame(X, columns=["a", "b"], index=np.arange(400) * 3), npartitions=3
    )
    # As it is with parquet files; and an index that is the same in each partition.
    frame = frame if known else frame.map_partitions(pd.DataFrame.reset_index, drop=True)
    tree = linkage(frame, output="files")
    expected = REFERENCE.cut(n_clusters=4)
    labels = tree.cut(n_clusters=4)
    series, together = labels.to_dask(), labels.beside(frame, "cluster")
    with pytest.raises(ValueError, match="the frame has 1 partitions, and the labels have 3"):
        labels.beside(frame.repartition(npartitions=1))
    del labels  # its temporary folder stays
    np.testing.assert_array_equal(series.compute(scheduler="synchronous"), expected)
    assert series.npartitions == together.npartitions == frame.npartitions
    assert together.known_divisions == frame.known_divisions
    together = together.compute(scheduler="synchronous")
    np.testing.assert_array_equal(together["cluster"], expected)
    assert together.dtypes["cluster"] == np.int64
    np.testing.assert_array_equal(together[["a", "b"]], X)
    moved = linkage(frame, output="files").cut(n_clusters=4).beside(frame[frame["a"] > 20.0])
    with pytest.raises(ValueError, match=r"a partition has 57 rows, and 133 labels"):
        moved.compute(scheduler="synchronous")


@pytest.mark.parametrize("threshold", ["gap", "evidence", "kmeans", 40.0])
def test_thresholds_are_those_of_the_ordinary_tree(threshold):
    level = threshold
    if threshold == "kmeans":
        level = fastrbhc.kmeans_threshold(X, "ward", DEFAULT_GUESS, random_state=3)
    reference = fastrbhc.linkage(X, "ward", threshold=level)
    level = reference.chosen.threshold if reference.chosen else level
    tree = linkage(threshold=threshold, random_state=3)
    stored = linkage(threshold=threshold, random_state=3, output="files")
    for one in (tree, stored):
        assert one.chosen.by == (threshold if isinstance(threshold, str) else "given")
        assert one.chosen.threshold == level
    np.testing.assert_array_equal(tree.cut(), reference.cut(threshold=level))
    np.testing.assert_array_equal(stored.cut().to_numpy(), reference.cut(threshold=level))
    assert stored.top(5).chosen == stored.chosen


def test_the_top_is_plotted(stored):
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    axes = stored.top(12).plot()
    assert axes is not None
    plt.close("all")
