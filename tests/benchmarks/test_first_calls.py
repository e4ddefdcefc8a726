"""First calls in processes of their own, with a package that says itself how long it takes."""

from __future__ import annotations

import json

import bench_compile
import numpy as np
import pytest
import recorded
from benchmarks import processes, yardstick
from benchmarks.processes import CALLS, Call, Cold, Second, Setting, Times

# It compiles for 8 s for each number of columns, reads what was compiled for 2 s, works for 1 s.
PACKAGE = """
import os, time
from pathlib import Path

now, ready = 0, set()
time.made_up = lambda: now

def linkage(X, family, **options):
    global now
    kernel = Path(os.environ["NUMBA_CACHE_DIR"], f"{family}-{X.shape[1]}{''.join(options)}")
    if kernel not in ready:
        now += 2 if kernel.exists() else 8
        kernel.parent.mkdir(parents=True, exist_ok=True)
        kernel.touch()
        ready.add(kernel)
    now += 1
"""


@pytest.fixture
def setting(tmp_path, monkeypatch):
    (tmp_path / "package" / "fastrbhc").mkdir(parents=True)
    (tmp_path / "package" / "fastrbhc" / "__init__.py").write_text(PACKAGE)
    monkeypatch.setattr(processes, "yardstick", lambda setting: 2.0)
    return Setting(tmp_path / "package", clock="made_up")


def test_first_and_second_process(setting, tmp_path):
    call = Call("normal", "ward", n=10)
    assert processes.cold(call, tmp_path / "cache", setting) == Cold(9.0, 2.0)
    assert Cold(9.0, 2.0).ratio == 4.5
    assert processes.times(call, tmp_path / "cache", setting) == Times(3.0, 1.0)
    found = processes.second_process(call, tmp_path / "cache", setting, repeats=1)
    assert found == Second(2.0, 2.0)


def test_another_number_of_columns(setting, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LONGER", Call("normal", "ward", n=10))
    assert processes.another_number_of_columns(tmp_path / "cache", setting) == Cold(8.0, 2.0)
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"ward-3", "ward-4"}


def test_options_arrive(setting, tmp_path):
    call = Call("counts", "poisson", n=10, options={"audit": True})
    processes.times(call, tmp_path / "cache", setting)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["poisson-3audit"]


def test_a_package_from_elsewhere_is_refused(setting, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "fastrbhc").symlink_to(setting.package / "fastrbhc")
    with pytest.raises(RuntimeError, match="was wanted"):
        processes.times(Call("normal", "ward", n=10), tmp_path, Setting(other))


def test_yardstick(monkeypatch):
    outermost = yardstick.chain()
    kernels = []
    while outermost is not None:
        kernels.append(outermost)
        cells = outermost.py_func.__closure__ or ()
        outermost = next((cell.cell_contents for cell in cells), None)
    assert len(kernels) == yardstick.KERNELS == 21
    record = yardstick.Record(*np.arange(24.0).reshape(3, 8))
    assert kernels[-1].py_func(record, 2) == 2.0 + 10.0 * 18.0
    monkeypatch.setattr(yardstick, "KERNELS", 2)
    ticks = iter([3.0, 5.0])
    assert yardstick.seconds(lambda: next(ticks)) == 2.0


# ---- the table -----------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """The table without its processes."""
    monkeypatch.setattr(bench_compile, "cold", lambda *_: Cold(8.0, 2.0))
    monkeypatch.setattr(bench_compile, "another_number_of_columns", lambda *_: Cold(1.0, 2.5))
    monkeypatch.setattr(bench_compile, "second_process", lambda *_: Second(0.5, 0.125))


def test_all_rows(measured, monkeypatch, capsys, tmp_path):
    file = tmp_path / "rows.json"
    monkeypatch.setattr("sys.argv", ["bench_compile.py", "--json", str(file)])
    bench_compile.main()
    told = capsys.readouterr().out
    assert "| Ward 1,000 × 3 | first call, empty cache ÷ Y | 4 | ≤ 1.2 | 8 | 1 |" in told
    assert "Y: 2.0 s (2.0 to 2.5)." in told
    (run,) = json.loads(file.read_text(encoding="utf-8"))["runs"]
    assert "Y: 2.0 s" in run["about"]
    values = {row["work"]: row["value"] for row in run["rows"]}
    assert len(values) == 12
    assert set(values) >= set(CALLS)
    assert values["Poisson 1,000 × 3, second process"] == 0.5
    assert values["Poisson 1,000 × 3, second process, Numba set up"] == 0.125
    assert values["Ward 10,000 × 4, once 10,000 × 3 is compiled"] == 0.4


def test_some_rows_are_recorded(measured, monkeypatch, tmp_path):
    commit = recorded.Commit("aaaaaaa", "2026-01-02", "A change")
    monkeypatch.setattr(bench_compile, "commit_of", lambda package: commit)
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    monkeypatch.setattr("sys.argv", ["bench_compile.py", "--only", "4,6", "--record"])
    bench_compile.main()
    kept = json.loads((tmp_path / "aaaaaaa.json").read_text(encoding="utf-8"))
    assert [row["work"] for row in kept["runs"][0]["rows"]] == list(CALLS)[3:]


@pytest.mark.parametrize("wrong", [["--only", "9"], ["--repeats", "0"]])
def test_wrong_options(wrong, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench_compile.py", *wrong])
    with pytest.raises(SystemExit):
        bench_compile.main()
    assert wrong[0] in capsys.readouterr().err
