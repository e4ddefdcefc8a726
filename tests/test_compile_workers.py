"""Processes that compile: one at a time per kernel, and none is left behind by a failure."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fastrbhc import _compile_workers
from fastrbhc._compile_jobs import Job

ONE_JOB = Job("family", "spherical_gaussian", None, False, ("auto",), False)


def test_a_process_that_fails_is_reported():
    with pytest.raises(
        ChildProcessError, match=r"nonsense could not be compiled: .* unknown family"
    ):
        _compile_workers.run([(ONE_JOB._replace(name="nonsense"), [])], 1, False)


# A process that compiles one kernel per job, called "shared", and notes what it does in a file.
PRETENDED = """
import json, pathlib, sys, time
for line in sys.stdin:
    name, columns = json.loads(line)[1:3]
    with open("notes", "a") as notes:
        print("begin shared", flush=True)
        assert sys.stdin.readline() == "go\\n"
        print("in", name, columns, file=notes, flush=True)
        time.sleep(0.05)
        print("out", name, columns, file=notes, flush=True)
        print("compiled shared", flush=True)
    print("done", flush=True)
"""


def pretend(monkeypatch, *codes):
    """Start other processes than those that compile; the last of them again and again."""
    waiting = list(codes)

    def started():
        code = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, **pipes, stderr=subprocess.STDOUT, text=True)

    monkeypatch.setattr(_compile_workers, "_started", started)


def test_one_failure_ends_all(monkeypatch):
    pretend(monkeypatch, "import time; time.sleep(600)", "raise ValueError('no')")
    with pytest.raises(ChildProcessError, match="could not be compiled: ValueError: no"):
        _compile_workers.run([(ONE_JOB, []), (ONE_JOB._replace(name="gaussian"), [])], 2, False)


def test_one_process_at_a_time_compiles_a_kernel(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pretend(monkeypatch, PRETENDED)
    jobs = [(ONE_JOB._replace(name=str(number)), []) for number in range(6)]
    found = _compile_workers.run(jobs, 3, False)
    assert [each.kernels for each in found.values()] == [1] * 6
    words = [line.split()[0] for line in (tmp_path / "notes").read_text().splitlines()]
    assert words == ["in", "out"] * 6


def test_a_failure_ends_those_that_wait(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fails = PRETENDED.replace("time.sleep(0.05)", "raise ValueError('no')")
    pretend(monkeypatch, fails, PRETENDED)
    jobs = [(ONE_JOB._replace(name=str(number)), []) for number in range(4)]
    with pytest.raises(ChildProcessError, match="could not be compiled: ValueError: no"):
        _compile_workers.run(jobs, 2, False)


def test_jobs_that_follow_others(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    pretend(monkeypatch, PRETENDED)
    more = [ONE_JOB._replace(columns=each) for each in (1, 2)]
    other = ONE_JOB._replace(name="gaussian")
    found = _compile_workers.run([(ONE_JOB, more), (other, [])], 1, True)
    assert list(found) == [each.title for each in (ONE_JOB, *more, other)]
    lines = (tmp_path / "notes").read_text().splitlines()
    order = [line.split()[2] for line in lines if line.startswith("in")]
    assert order == ["None", "1", "2", "None"]
    err = capsys.readouterr().err
    assert "4/4" in err
    assert "4 kernels" in err


def test_a_process_ends_if_nobody_listens(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with _compile_workers._started() as process:
        _compile_workers._tell(process, json.dumps(ONE_JOB))
        assert process.stdout.readline().startswith("begin ")
        process.stdout.close()
        _compile_workers._tell(process, "go")
        assert process.wait(timeout=600) != 0
    assert len(list(tmp_path.rglob("*.nbc"))) == 1
