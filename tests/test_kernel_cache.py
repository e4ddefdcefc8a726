"""Kernels on disk: found again, never stale, never fatal."""

import os
import shutil
import subprocess
import sys
import textwrap
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import config, typeof, types

import fastrbhc
from fastrbhc import families
from fastrbhc._engine import kernel_cache
from fastrbhc._engine.jit import PLAIN_PYTHON, kernel
from fastrbhc._engine.kernel_cache import _is_of_the_package
from fastrbhc._engine.records import JOB_TYPE, record

PACKAGE = Path(fastrbhc.__file__).parent
ONE_DISSIMILARITY = "import fastrbhc; print(fastrbhc.dissimilarity([[3.0]], [[5.0]], 'poisson'))"


def environment(cache, path=PACKAGE.parent, **variables):
    """The variables of a process with a cache directory of its own."""
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(path), **variables}


def python(code, *, cache, path=PACKAGE.parent, variables=None, **options):
    """Run code in a process of its own, with a cache directory of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(cache, path, **(variables or {})),
        cwd=path,  # which `python -c` would search before PYTHONPATH
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def printed(code, **options):
    result = python(code, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def copy_package(to):
    shutil.copytree(PACKAGE, to / "fastrbhc", ignore=shutil.ignore_patterns("__pycache__", "*.npz"))


def test_second_process_compiles_nothing(tmp_path):
    code = """
        import fastrbhc
        from fastrbhc._engine.clusters.build import _all_pairs
        fastrbhc.dissimilarity([[3.0]], [[5.0]], "poisson")
        stats = _all_pairs.program.stats
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
    """
    assert printed(code, cache=tmp_path).split() == ["0", "1"]
    assert printed(code, cache=tmp_path).split() == ["1", "0"]


def test_turns_around_compilations(tmp_path):
    code = """
        import os, subprocess, sys
        import fastrbhc
        from fastrbhc._engine.kernel_cache import Turns, taking_turns

        said = []
        def begin(kernel):
            said.append("begin")
            if OTHER:  # another process compiles it while this one waits
                subprocess.run([sys.executable, "-c", OTHER], check=True, stdout=subprocess.DEVNULL)
        def end(kernel, compiled):
            assert os.path.exists(kernel)
            said.append("compiled" if compiled else "found")
        with taking_turns(Turns(begin, end)):
            fastrbhc.dissimilarity([[3.0]], [[5.0]], "poisson")
        print(*said)
    """
    alone, helped = code.replace("OTHER", "''"), code.replace("OTHER", repr(ONE_DISSIMILARITY))
    said = printed(alone, cache=tmp_path / "alone").split()
    assert said == ["begin", "compiled"] * (len(said) // 2) != []
    assert printed(alone, cache=tmp_path / "alone").split() == []
    assert printed(helped, cache=tmp_path / "helped").split() == ["begin", "found"]


def test_change_in_another_file_is_noticed(tmp_path):
    copy_package(tmp_path)
    before = float(printed(ONE_DISSIMILARITY, cache=tmp_path / "cache", path=tmp_path))
    kept = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.nbc")}
    assert kept
    source = tmp_path / "fastrbhc" / "families" / "poisson.py"
    text = source.read_text()
    changed = text.replace("return entropy_divergence(", "return 2.0 * entropy_divergence(")
    assert changed != text
    source.write_text(changed)
    after = float(printed(ONE_DISSIMILARITY, cache=tmp_path / "cache", path=tmp_path))
    assert after == 2.0 * before
    # No file serves both states: another process may be reading it.
    assert all(path.read_bytes() == content for path, content in kept.items())


def test_constants_of_a_module_that_imports_nothing_are_noticed(tmp_path, monkeypatch):
    source = tmp_path / "_engine" / "agglomeration" / "driver.py"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path)
    digests = set()
    for text in ("FINISHED = 0", "FINISHED = 1"):
        source.write_text(text)
        digests.add(kernel_cache._fingerprint.__wrapped__())
    assert len(digests) == 2


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def make_it_a_folder(file):
    file.unlink()
    file.mkdir()


DAMAGES = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "a bit": flip_a_bit,
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "random": lambda file: file.write_bytes(np.random.default_rng(0).bytes(5000)),
}


def test_damaged_files_are_noticed_and_replaced(tmp_path):
    reference = printed(ONE_DISSIMILARITY, cache=tmp_path)
    files = sorted(tmp_path.rglob("*.nbc"))
    assert files
    for file, damage in zip(files, cycle(DAMAGES.values()), strict=False):
        damage(file)
    result = python(ONE_DISSIMILARITY, cache=tmp_path)
    assert result.stdout == reference
    assert result.stderr.count("a damaged kernel cache was ignored") == 1
    assert sorted(tmp_path.rglob("*.nbc")) == files
    again = python(ONE_DISSIMILARITY, cache=tmp_path)
    assert (again.stdout, again.stderr) == (reference, "")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_never_loaded(damage, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache, "_WARNED_OF_DAMAGE", [])
    file = kernel_cache._OneFileEach([str(tmp_path)], "name", "state")
    file.save("key", np.arange(100).tolist())
    assert file.load("key") == np.arange(100).tolist()
    [path] = tmp_path.iterdir()
    DAMAGES[damage](path)
    with pytest.raises(kernel_cache._DamagedError):
        file.load("key")
    file.forget("key")
    assert file.load("key") is None


def test_a_folder_in_place_of_a_file_is_passed_over(tmp_path):
    file = kernel_cache._OneFileEach([str(tmp_path)], "name", "state")
    file.save("key", 1)
    [path] = tmp_path.iterdir()
    make_it_a_folder(path)
    assert file.load("key") is None
    file.forget("key")
    with pytest.raises(OSError, match="name"):  # which is a warning to those who call
        file.save("key", 1)
    assert list(tmp_path.iterdir()) == [path]


def test_kernels_of_another_numba_are_not_loaded(tmp_path):
    reference = printed(ONE_DISSIMILARITY, cache=tmp_path)
    n_files = len(list(tmp_path.rglob("*.nbc")))
    for k, package in enumerate(("numba", "llvmlite"), start=2):
        other = f"import numba, llvmlite; {package}.__version__ = '0.0.1'; {ONE_DISSIMILARITY}"
        assert printed(other, cache=tmp_path) == reference
        assert len(list(tmp_path.rglob("*.nbc"))) == k * n_files


def test_family_of_ones_own_is_never_stale(tmp_path):
    code = """
        from typing import NamedTuple
        import fastrbhc
        from fastrbhc.families import Domain, family

        @family("own", separable=True, reducible=False, domain=Domain())
        class Own(NamedTuple):
            def divergence(family, value, mean, step):
                return FACTOR * step * step

        print(fastrbhc.dissimilarity([[0.0]], [[2.0]], Own()))
    """
    assert float(printed(code.replace("FACTOR", "1.0"), cache=tmp_path)) == 2.0
    assert float(printed(code.replace("FACTOR", "3.0"), cache=tmp_path)) == 6.0


def test_families_of_ones_own_in_two_threads_stay_in_memory(tmp_path):
    """The one that is ready first must not let the other's kernels go to disk."""
    code = """
        import threading
        from typing import NamedTuple
        import numpy as np
        import fastrbhc
        from fastrbhc.families import Domain, family

        class OwnSquares(NamedTuple):
            def divergence(family, value, mean, step):
                return step * step

        class OwnCubes(NamedTuple):
            def divergence(family, value, mean, step):
                return abs(step) ** 3

        quick, slow = (
            family(cls.__name__, separable=True, reducible=False, domain=Domain())(cls)()
            for cls in (OwnSquares, OwnCubes)
        )
        X = np.random.default_rng(0).normal(size=(30, 2))
        first = threading.Thread(target=fastrbhc.dissimilarity, args=(X[:3], X[3:], quick))
        second = threading.Thread(target=fastrbhc.linkage, args=(X, slow))
        for thread in (first, second):
            thread.start()
        for thread in (first, second):
            thread.join()
        fastrbhc.dissimilarity(X[:3], X[3:], "ward")
    """
    printed(code, cache=tmp_path)
    contents = [path.read_bytes() for path in tmp_path.rglob("*.nbc")]
    assert contents
    assert not any(b"OwnSquares" in content or b"OwnCubes" in content for content in contents)


def test_a_folder_that_cannot_be_written_is_read(tmp_path):
    """As where an administrator has compiled for all; the kernel is found, and nobody warned."""
    common, own = tmp_path / "common", tmp_path / "own"
    file = kernel_cache._OneFileEach([str(common)], "name", "state")
    common.mkdir()
    own.mkdir()
    file.save("key", 1)
    reader = kernel_cache._OneFileEach([str(own), str(common)], "name", "state")
    assert reader.load("key") == 1
    reader.save("key", 2)
    assert (reader.load("key"), file.load("key")) == (2, 1)


def test_where_kernels_are_looked_for(monkeypatch, tmp_path):
    """In the folder chosen, and before it in those preferred that cannot be written."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "given"))
    given = kernel_cache._ContentCache(fastrbhc.linkage)._cache_file._folders
    assert [str(tmp_path) in folder for folder in given] == [True]
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))  # no folder can be made there
    in_tree = kernel_cache._ContentCache(fastrbhc.linkage)._cache_file._folders
    assert Path(in_tree[0]).name == "__pycache__"
    assert str(tmp_path / "file") in in_tree[1]
    monkeypatch.setattr(kernel_cache.KernelCacheImpl, "_locator_classes", (kernel_cache._ReadOnly,))
    nowhere = kernel_cache._ContentCache(fastrbhc.linkage)
    assert nowhere._cache_file._folders == in_tree
    with pytest.raises(OSError, match="no folder can be written"):
        nowhere._impl.locator.ensure_cache_path()


def test_without_any_cache_directory_there_is_a_hint(monkeypatch):
    def no_directory(function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(kernel_cache, "_ContentCache", no_directory)
    monkeypatch.setattr(kernel_cache, "_WARNED", [])
    double = kernel(lambda x: 2 * x)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert double(21) == 42


def test_full_disk_is_not_fatal(monkeypatch, tmp_path):
    def no_space(self, sig, data):
        raise OSError("no space left on device")

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache.FunctionCache, "save_overload", no_space)
    monkeypatch.setattr(kernel_cache, "_WARNED", [])
    triple = kernel(lambda x: 3 * x)
    with pytest.warns(RuntimeWarning, match="no space left"):
        assert triple(14) == 42


class OfAUser(NamedTuple):
    """A class outside the package."""

    x: float


@record
class AroundIt:
    """A record with such a class deep inside."""

    entries: tuple[object, ...]


@pytest.mark.skipif(PLAIN_PYTHON, reason="nothing is compiled")
def test_only_kernels_for_classes_of_the_package_are_kept_on_disk():
    own, around = typeof(OfAUser(1.0)), typeof(AroundIt((1.0, OfAUser(2.0))))
    inside = typeof(families.Poisson(1.0))
    for kind in (own, around, types.UniTuple(own, 2), types.Tuple((types.int64, own))):
        assert not _is_of_the_package(kind)
    for kind in (inside, types.int64, typeof(np.zeros(2)), types.UniTuple(inside, 2), JOB_TYPE):
        assert _is_of_the_package(kind)
