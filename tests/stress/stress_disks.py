"""Disks that are full: a clear error wherever it happens, and a job that goes on with more room."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

import fastrbhc
from fastrbhc import distributed

X = np.random.default_rng(0).normal(size=(20_000, 2))


@contextlib.contextmanager
def small_disk(path):
    """A folder that is a disk in memory, whose size can be changed."""
    path.mkdir()

    def mount(kilobytes, *more):
        options = ",".join([*more, f"size={kilobytes}k"])
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)

    try:
        mount(100)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here")
    try:
        yield lambda kilobytes: mount(kilobytes, "remount")
    finally:
        subprocess.run(["umount", path], check=True)


def what(error, advice):
    """For what there was no room, once the error has been looked at."""
    assert advice in str(error)
    return str(error).split("no room left for ")[1].split(" (")[0]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root mounts disks")
def test_a_disk_that_is_full_at_every_stage(tmp_path, capsys):
    reference = fastrbhc.linkage(X, "ward")
    failed = []
    with small_disk(tmp_path / "disk") as resize:
        scratch = tmp_path / "disk" / "scratch"
        for kilobytes in range(100, 6000, 150):
            resize(kilobytes)
            blocks = (X[start : start + 1000] for start in range(0, len(X), 1000))
            try:
                tree = distributed.linkage(blocks, "ward", n_cells=4, scratch=scratch)
                break
            except distributed.ScratchFullError as error:
                failed.append(what(error, "scratch="))
            assert [*scratch.glob("**/.unfinished-*")] == []
        np.testing.assert_array_equal(tree.merges, reference.merges)
        np.testing.assert_array_equal(tree.heights, reference.heights)
        stored = distributed.linkage(X, "ward", output="files")
        for more in range(0, 2000, 100):
            resize(kilobytes + more)
            try:
                labels = stored.cut(n_clusters=9, output=tmp_path / "disk" / "labels")
                stored.save(tmp_path / "disk" / "tree")
                break
            except distributed.ScratchFullError as error:
                failed.append(what(error, "larger disk for the"))
            for name in ("labels", "tree"):
                folder = tmp_path / "disk" / name
                if folder.exists():  # whole, and in the way of the next attempt
                    subprocess.run(["rm", "-r", folder], check=True)
            assert {path.name for path in (tmp_path / "disk").iterdir()} <= {"scratch"}
        np.testing.assert_array_equal(labels.to_numpy(), reference.cut(n_clusters=9))
    with capsys.disabled():
        print(f"\nno room for {', '.join(failed)}; then there was")
    assert len(set(failed)) > 5
