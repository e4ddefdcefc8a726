"""Work on the processes of a Dask cluster: the same trees, also if workers die or a call stops."""

import errno
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fastrbhc
from fastrbhc import distributed
from fastrbhc.distributed._memory import limit_of_workers

dask_distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

X = np.random.default_rng(0).poisson(20.0, size=(600, 2)).astype(float)
WEIGHTS = np.random.default_rng(1).integers(1, 4, 600).astype(float)
REFERENCE = fastrbhc.linkage(X, "ward")


def same(tree, reference=REFERENCE):
    np.testing.assert_array_equal(tree.merges, reference.merges)
    np.testing.assert_array_equal(tree.heights, reference.heights)
    np.testing.assert_array_equal(tree.weights, reference.weights)


@pytest.fixture(scope="module")
def cluster():
    with dask_distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any port that is free
        silence_logs=logging.CRITICAL,
    ) as started:
        yield started


@pytest.fixture
def client(cluster):
    with dask_distributed.Client(cluster) as connected:
        connected.wait_for_workers(2)
        yield connected
        connected.run(mend)


@pytest.fixture
def temporary_folders(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def linkage(client, data=X, **options):
    return distributed.linkage(data, "ward", client=client, **{"n_cells": 8, **options})


# What workers are told to do wrong. They get these functions by value: a new worker would take its
# time to import this module.
pytest.importorskip("cloudpickle").register_pickle_by_value(sys.modules[__name__])


def spoil(where, wrong):
    """Put a function in the place of another, until `mend`."""
    import fastrbhc.distributed._dividing as dividing
    import fastrbhc.distributed._stages as stages

    module = {"dividing": dividing, "stages": stages}[where.split(".")[0]]
    name = where.split(".")[1]
    spoilt = stages.__dict__.setdefault("_spoilt", [])
    spoilt.append((module, name, getattr(module, name)))
    setattr(module, name, wrong(getattr(module, name)))


def mend():
    stages = sys.modules.get("fastrbhc.distributed._stages")  # not in a worker that is new
    for module, name, right in stages.__dict__.pop("_spoilt", []) if stages else []:
        setattr(module, name, right)


def dying(original):
    def die(*arguments):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    return die


def slow(original):
    def wait(*arguments):
        import time

        time.sleep(0.5)
        return original(*arguments)

    return wait


def failing(path, number):
    def wrong(original):
        def fail(*arguments, **options):
            import os

            with open(path, "a") as file:
                file.write("called\n")
            raise OSError(number, os.strerror(number)) if number else ValueError("a faulty row")

        return fail

    return wrong


# Trees


def test_arrays_and_files(client, tmp_path):
    same(linkage(client))
    np.save(tmp_path / "rows.npy", X)
    reference = fastrbhc.linkage(X, "ward", sample_weight=WEIGHTS)
    # Weights in memory go to the workers in a file, and not with every task.
    same(linkage(client, tmp_path / "rows.npy", sample_weight=WEIGHTS), reference)
    columns = np.asfortranarray(X)
    same(linkage(client, columns, sample_weight=WEIGHTS), reference)
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    stored = linkage(client, tmp_path / "rows.parquet", output="files", scratch=tmp_path / "s")
    same(stored.to_dendrogram())
    assert stored.feature_names == ("a", "b")


def test_collections_use_the_current_client(client, monkeypatch):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")

    def never(*arguments):
        raise AssertionError("this is work for the client")

    monkeypatch.setattr("fastrbhc.distributed._runners.Here.map", never)
    same(linkage(None, da.from_array(X, chunks=(250, 1))))
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
    stored = linkage(None, frame, output="files")
    together = stored.cut(n_clusters=4).beside(frame).compute()
    np.testing.assert_array_equal(together["label"], REFERENCE.cut(n_clusters=4))


# Faults


def test_workers_that_die(client, tmp_path):
    before = client.run(os.getpid)
    first = next(iter(before))
    client.run(spoil, "stages._of_rows", dying, workers=[first])
    same(linkage(client, scratch=tmp_path / "scratch"))
    client.wait_for_workers(2)
    assert before[first] not in client.run(os.getpid).values()


def test_workers_that_die_again_and_again(client, monkeypatch):
    def killed(futures):
        raise dask_distributed.KilledWorker("merge_cell-12", None, 3)

    monkeypatch.setattr(dask_distributed, "as_completed", killed)
    with pytest.raises(RuntimeError, match=r"died one after another, 4 of them.*memory_limit="):
        linkage(client)


@pytest.mark.parametrize("place", ["dividing.check_rows", "stages.write_stage"])
def test_faulty_tasks_are_not_repeated(client, tmp_path, temporary_folders, place):
    client.run(spoil, place, failing(str(tmp_path / "calls"), 0))
    with pytest.raises(ValueError, match="a faulty row"):
        linkage(client, [X], n_cells=1)
    assert (tmp_path / "calls").read_text() == "called\n"
    assert [*temporary_folders.iterdir()] == []


def test_rows_that_a_family_does_not_take(client, temporary_folders):
    rows = X.copy()
    rows[374, 1] = np.nan
    some = [rows[start : start + 10] for start in range(0, 600, 10)]
    with pytest.raises(ValueError, match=r"partition 37: .* NaN: row 4, column 1"):
        linkage(client, some)
    with pytest.raises(ValueError, match=r"partition 3: .*shape \(10,\)"):
        linkage(client, [*some[:3], np.zeros(10)])
    assert [*temporary_folders.iterdir()] == []


@pytest.mark.parametrize("place", ["dividing.write_array", "stages.write_stage"])
def test_a_full_disk(client, tmp_path, place):
    client.run(spoil, place, failing(str(tmp_path / "calls"), errno.ENOSPC))
    with pytest.raises(distributed.ScratchFullError, match=r"no room left for 0000.*scratch="):
        linkage(client, scratch=tmp_path / "scratch")
    client.run(mend)
    wait_until_idle(client)
    same(linkage(client, scratch=tmp_path / "scratch"))
    assert [*tmp_path.glob("scratch/*/.unfinished-*")] == []


@pytest.mark.parametrize("named", [True, False])
def test_ctrl_c(client, tmp_path, temporary_folders, ctrl_c_counts, named):
    scratch = tmp_path / "scratch" if named else None
    pattern = "scratch/stages/0*" if named else "temporary/*/stages/0*"
    client.run(spoil, "stages._of_rows", slow)
    over = threading.Event()

    def interrupt():
        while not over.is_set():
            if any(tmp_path.glob(pattern)):
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            linkage(client, scratch=scratch)
    finally:
        over.set()
        thread.join()
    client.run(mend)
    assert client.submit(sum, [1, 2]).result(timeout=60) == 3
    if not named:
        wait_until_idle(client)
        # Tasks that could not be stopped have not brought the folder back.
        assert [*temporary_folders.iterdir()] == []
    else:
        finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob(pattern)}
        assert 0 < len(finished) < 8
        same(linkage(client, scratch=scratch))
        assert all(path.stat().st_mtime_ns == when for path, when in finished.items())


def wait_until_idle(client):
    end = time.monotonic() + 60
    while any(client.run(running).values()):
        assert time.monotonic() < end
        time.sleep(0.05)


def running(dask_worker):
    """How many tasks have a thread of the worker, cancelled ones too."""
    return len(dask_worker.state.executing) + len(dask_worker.state.long_running)


# Clients


class Workers:
    """A client as far as it is looked at before any work."""

    def __init__(self, *workers, seen=True):
        self._workers = {f"tcp://{number}": worker for number, worker in enumerate(workers)}
        self._seen = seen

    def scheduler_info(self, n_workers=5):
        some = list(self._workers.items())[: n_workers if n_workers >= 0 else None]
        return {"workers": dict(some)}

    def submit(self, *arguments):
        raise AssertionError("nothing should be submitted")

    def run(self, function, *arguments):
        return {name: function(*arguments) if self._seen else None for name in self._workers}


def worker(memory_limit=2_000_000_000, nthreads=1, host="a"):
    return {"memory_limit": memory_limit, "nthreads": nthreads, "host": host}


def test_memory_of_workers(monkeypatch):
    assert limit_of_workers([worker(), worker(4_000_000_000)]) == 1_200_000_000
    # Threads of a worker share the libraries.
    assert limit_of_workers([worker(nthreads=2)]) == 850_000_000
    monkeypatch.setattr("fastrbhc.distributed._memory.memory", lambda: 8_000_000_000)
    for unlimited in (0, None):
        workers = [worker(unlimited), worker(unlimited), worker(unlimited, host="b")]
        assert limit_of_workers(workers) == 2_400_000_000
    with pytest.raises(ValueError, match=r"has 0.50 GB of memory.*at least 1 GB"):
        limit_of_workers([worker(), worker(500_000_000)])


def test_clients_that_cannot_do_it(tmp_path):
    with pytest.raises(ValueError, match="no workers"):
        linkage(Workers())
    with pytest.raises(TypeError, match=r"dask.distributed.Client, got str"):
        linkage("tcp://127.0.0.1:8786")
    unseen = Workers(*[worker() for _ in range(7)], seen=False)
    with pytest.raises(ValueError, match=r"tcp://0 does not see the folder .*scratch="):
        linkage(unseen, scratch=tmp_path / "scratch")
    assert [*(tmp_path / "scratch").iterdir()] == []
    unseen.asynchronous = True
    with pytest.raises(ValueError, match="asynchronous"):
        linkage(unseen)
    assert Path(tmp_path / "scratch").exists()
