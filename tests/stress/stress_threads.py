"""Many threads, other processes and other settings: the same bits everywhere."""

from __future__ import annotations

import importlib.util

import pytest
from processes import run


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def reference(cache):
    """From one thread of one process, which fills the cache for those that follow."""
    return run("print(digests(n_jobs=1)); digests()", cache=cache)[0]


SIXTEEN = """
from typing import NamedTuple
from fastrbhc.families import Domain, family

class OwnCounts(NamedTuple):
    def divergence(family, value, mean, step):
        return step * step / mean

own = family("own", separable=True, reducible=False, domain=Domain(lower=0.0))(OwnCounts)()
results, start = {}, threading.Barrier(16)

def grow(k):
    start.wait()
    if k < 13:
        found = {name: digest(name) for name in FAMILIES[k % 3:] + FAMILIES[:k % 3]}
        results[k] = " ".join(found[name] for name in FAMILIES)
    else:
        results[k] = digest(own)

threads = [threading.Thread(target=grow, args=(k,)) for k in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len({results[k] for k in range(13)}) == 1, results
assert len({results[k] for k in range(13, 16)}) == 1, results
assert threading.active_count() == 1
print(results[0])
"""


def test_sixteen_threads_with_nothing_compiled(tmp_path, reference):
    """They start with three families in turn, and three of them with a family of one's own."""
    assert run(SIXTEEN, cache=tmp_path)[0] == reference
    contents = [file.read_bytes() for file in tmp_path.rglob("*.nbc")]
    assert contents
    assert not any(b"OwnCounts" in content for content in contents)
    assert run(SIXTEEN, cache=tmp_path)[0] == reference


@pytest.mark.parametrize(
    "variables",
    [
        {"NUMBA_NUM_THREADS": "1"},
        {"NUMBA_NUM_THREADS": "3"},
        {"NUMBA_NUM_THREADS": "16"},
        {"OMP_NUM_THREADS": "1"},
        {"NUMBA_THREADING_LAYER": "omp"},
        {"NUMBA_THREADING_LAYER": "tbb"},
        {"NUMBA_THREADING_LAYER": "workqueue"},
    ],
    ids=str,
)
def test_settings_of_threads(variables, cache, reference):
    code = "print(digests(n_jobs=None)); assert threading.active_count() == 1"
    assert run(code, cache=cache, **variables) == (reference, "")


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_other_processes(way, cache, reference, tmp_path):
    """Started after the library was used, in the process and in a second thread of it."""
    (tmp_path / "job.py").write_text(
        "import fastrbhc, hashlib\n"
        "def grow(job):\n"
        "    X, family = job\n"
        "    tree = fastrbhc.linkage(X, family, n_jobs=2)\n"
        "    bits = tree.merges.tobytes() + tree.heights.tobytes()\n"
        "    return hashlib.sha256(bits).hexdigest()[:16]\n"
    )
    code = f"""
        sys.path.insert(0, {str(tmp_path)!r})
        import multiprocessing
        from job import grow
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads
        if __name__ == "__main__":
            digests()
            with multiprocessing.get_context({way!r}).Pool(2) as pool:
                print(*pool.map(grow, [(X, family) for family in FAMILIES]))
    """
    assert run(code, cache=cache)[0] == reference


def test_a_fork_while_another_thread_is_at_work(cache, reference):
    code = """
        warnings.simplefilter("ignore", DeprecationWarning)
        digests()
        big = np.random.default_rng(2).normal(size=(40_000, 8))
        other = threading.Thread(target=fastrbhc.linkage, args=(big, "ward"))
        other.start()
        time.sleep(0.3)
        child = os.fork()
        if child == 0:
            print(digests(), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        other.join()
    """
    assert run(code, cache=cache)[0] == reference


@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="no joblib")
def test_loky(cache, reference):
    code = """
        import joblib
        digests()
        def grow(X, family):
            tree = fastrbhc.linkage(X, family)
            return hashlib.sha256(tree.merges.tobytes() + tree.heights.tobytes()).hexdigest()[:16]
        print(*joblib.Parallel(2)(joblib.delayed(grow)(X, family) for family in FAMILIES))
    """
    assert run(code, cache=cache)[0] == reference
