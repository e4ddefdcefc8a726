"""Comparing with another commit, in a small repository whose package says itself how slow it is."""

from __future__ import annotations

import subprocess
import sys

import compare
import pytest
import run

pytest.importorskip("asv_runner", reason="asv comes with the extra 'bench'")

SUITE = """
import time
import fastrbhc

class Made:
    params = ([1, 2],)

    def setup(self, n):
        if n == 2:
            raise NotImplementedError("no sense")

    def time_same(self, n):
        time.sleep(0.01)

    def time_work(self, n):
        time.sleep(fastrbhc.SECONDS)

    def time_new(self, n):
        fastrbhc.new()

    def track_memory(self, n):
        return fastrbhc.SECONDS

def time_crash():
    fastrbhc.crash()
"""
PACKAGE = "import os\nSECONDS = {}\ndef crash(): os._exit(7)\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A commit and, not committed, a package three times as slow that has something new."""
    (tmp_path / "fastrbhc").mkdir()
    (tmp_path / "benchmarks").mkdir()
    package = tmp_path / "fastrbhc" / "__init__.py"
    package.write_text(PACKAGE.format(0.01))
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    (tmp_path / "benchmarks" / "made.py").write_text(SUITE)
    author = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Made up")):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    package.write_text(PACKAGE.format(0.03) + "def new(): pass\n")
    for module in (compare, run):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(compare, "BENCHMARKS", tmp_path / "benchmarks")
    monkeypatch.setattr(compare, "WORKTREES", tmp_path / ".asv" / "worktrees")
    return tmp_path


def compared(monkeypatch, capfd, *arguments):
    monkeypatch.setattr(sys, "argv", ["compare.py", "HEAD", "--samples", "3", *arguments])
    status = compare.main()
    return status, capfd.readouterr().out.splitlines()


def test_what_became_slower_is_told_and_nothing_else(repository, monkeypatch, capfd):
    status, lines = compared(monkeypatch, capfd, "--rounds", "1", "--bench", ".")
    assert status == 1
    slower = [line.split() for line in lines if line.startswith("slower")]
    assert {line[-1] for line in slower} == {"made.Made.time_work(1)", "made.Made.track_memory(1)"}
    assert {line[-1] for line in slower if line[2] == "3.00"} >= {"made.Made.track_memory(1)"}
    left_out = {line.split()[-1] for line in lines if line.startswith("left out")}
    senseless = [f"made.Made.{what}(2)" for what in ("time_same", "time_work", "time_new")]
    others = ["made.time_crash", "made.Made.time_new(1)", "made.Made.track_memory(2)"]
    assert left_out == {*senseless, *others}
    failures = [line for line in lines if " failed" in line]
    assert any("time_new(1) failed" in line and "no attribute 'new'" in line for line in failures)
    assert any("time_crash failed" in line for line in failures)
    assert lines[-1].startswith("3 cases: 2 slower and 0 faster")


def test_nothing_slower_and_nothing_left_behind(repository, monkeypatch, capfd):
    status, lines = compared(monkeypatch, capfd, "--bench", r"same\(1\)")
    assert status == 0
    assert lines[-1].startswith("1 cases: 0 slower and 0 faster")
    trees = run.git("worktree", "list").splitlines()
    assert len(trees) == 1
    assert not list(compare.WORKTREES.iterdir())


def test_the_package_of_the_tree_is_measured_or_none(repository, tmp_path, capfd):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "fastrbhc").symlink_to(repository / "fastrbhc")  # the package of another tree
    worker = compare.Worker(elsewhere, repository / "benchmarks")
    try:
        with pytest.raises(SystemExit, match="has ended"):
            worker.ask("list")
    finally:
        worker.close()
    assert f"fastrbhc of {elsewhere} was wanted" in capfd.readouterr().err
