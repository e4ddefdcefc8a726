"""Kernels on disk under bad conditions: right trees, at most a warning, nothing left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from processes import NOBODY, ROOT, run

as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user"
)

# Becomes a user that may write nowhere; everything that is imported later has to be imported
# before, as the interpreter may belong to somebody else.
DROP = """
import numba, numba.core.typing.templates, tqdm.auto
numba.njit(lambda x: x + 1.0)(1.0)
from fastrbhc._engine.compilations import listening
os.setgroups([]); os.setgid({group}); os.setuid({user})
programs = []
with listening(lambda: programs.append(1), lambda: None):
    print(digests(300))
print(len(programs))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    for parent in [folder, *folder.parents][:3]:
        parent.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def reference(cache):
    """From a cache that is filled on the way."""
    return run("print(digests(300))", cache=cache)[0]


@pytest.fixture
def installed(tmp_path):
    """The package as an administrator has installed it: others can read it."""
    for parent in [tmp_path, *tmp_path.parents][:3]:
        parent.chmod(0o755)
    shutil.copytree(
        ROOT / "fastrbhc", tmp_path / "fastrbhc", ignore=shutil.ignore_patterns("__pycache__")
    )
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    return tmp_path


def dropped(user=NOBODY):
    return DROP.format(user=user, group=user)


@as_root
def test_a_cache_that_can_be_read_only(cache, reference):
    """What it holds is used, and nobody is warned."""
    output, warned = run(dropped(), cache=cache)
    assert output.split() == [*reference.split(), "0"]
    assert "fastrbhc" not in warned


@as_root
def test_an_installation_that_can_be_read_only(installed, reference):
    """No folder can be written to: a warning, once. Then an administrator compiles."""
    home = {"HOME": None, "XDG_CACHE_HOME": None}
    options = {"path": installed, "cwd": installed / "work", **home}
    output, warned = run(dropped(user=54321), **options)  # a user without a name or a home
    assert output.split()[:3] == reference.split()
    assert int(output.split()[3]) > 0
    assert warned.count("compiled kernels could not be saved to disk") == 1
    assert list((installed / "work").iterdir()) == []
    assert not list(installed.rglob("*.nbc"))
    assert run("print(digests(300))", **options)[0] == reference
    assert list(installed.rglob("*.nbc"))
    output, warned = run(dropped(user=54321), **options)
    assert output.split() == [*reference.split(), "0"]
    assert "fastrbhc" not in warned


@as_root
def test_a_home_to_write_to(installed, reference):
    home = installed / "work"
    options = {"path": installed, "cwd": "/", "HOME": str(home), "XDG_CACHE_HOME": None}
    for compiled in (True, False):
        output, warned = run(dropped(), **options)
        assert output.split()[:3] == reference.split()
        assert (int(output.split()[3]) > 0) == compiled
        assert "could not be saved" not in warned
    assert list(home.rglob("*.nbc"))


@as_root
@pytest.mark.parametrize("size", ["16k", "300k"])
def test_a_full_disk(size, reference, tmp_path):
    """Full from the start, or after some kernels."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    try:
        output, warned = run("print(digests(300)); print(digests(300))", cache=tmp_path)
        assert output.split() == 2 * reference.split()
        assert warned.count("could not be saved to disk") == 1
        assert not list(tmp_path.rglob("*.tmp.*"))
        assert run("print(digests(300))", cache=tmp_path)[0] == reference
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def damaged(kind, content):
    rng = np.random.default_rng(len(content))
    if kind == "a bit":
        place = int(rng.integers(len(content)))
        return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
    return {
        "truncated": content[: len(content) // 2],
        "zeros": bytes(len(content)),
        "random": rng.bytes(len(content)),
        "empty": b"",
    }[kind]


@pytest.mark.parametrize("kind", ["a bit", "truncated", "zeros", "random", "empty", "folders"])
def test_a_damaged_cache(kind, cache, reference, tmp_path):
    shutil.copytree(cache, tmp_path / "cache")
    files = list((tmp_path / "cache").rglob("*.nbc"))
    assert files
    for file in files:
        if kind == "folders":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(damaged(kind, file.read_bytes()))
    output, warned = run("print(digests(300))", cache=tmp_path / "cache")
    assert output == reference
    told = "could not be saved" if kind == "folders" else "a damaged kernel cache was ignored"
    assert warned.count(told) == 1
    if kind != "folders":
        assert run("print(digests(300))", cache=tmp_path / "cache") == (reference, "")
