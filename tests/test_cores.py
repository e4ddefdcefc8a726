"""The number of cores: what is set, else what the process may use."""

from __future__ import annotations

import os

import pytest

from fastrbhc import _cores
from fastrbhc._cores import available_cores

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def a_machine_of_eight(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    for name in ("NUMBA_NUM_THREADS", "NUMBA_DEFAULT_NUM_THREADS"):
        monkeypatch.setattr(_cores._config, name, 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(_cores, "_granted", lambda: 8)


def test_as_many_as_there_are():
    assert available_cores() == 8


def test_what_is_set_counts(monkeypatch):
    monkeypatch.setattr(_cores, "_granted", lambda: 2)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "8")
    assert available_cores() == 8
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    assert available_cores() == 2
    monkeypatch.setattr(_cores._config, "NUMBA_NUM_THREADS", 5)
    assert available_cores() == 5


def test_cores_that_the_process_may_run_on(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 6})
    assert available_cores() == 3


QUOTAS = {
    "of a container": ("0::/", {"cpu.max": "150000 100000"}, [1.5]),
    "none": ("0::/", {"cpu.max": "max 100000"}, []),
    "of a service and of its slice": (
        "0::/some.slice/a.service",
        {"some.slice/a.service/cpu.max": "400000 100000", "some.slice/cpu.max": "50000 100000"},
        [4.0, 0.5],
    ),
    "of the first version": (
        "4:cpu,cpuacct:/box\n2:memory:/box",
        {"cpu/box/cpu.cfs_quota_us": "300000", "cpu/box/cpu.cfs_period_us": "100000"},
        [3.0],
    ),
    "none of the first version": (
        "4:cpu,cpuacct:/box",
        {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
        [],
    ),
    "nonsense": ("0::/", {"cpu.max": "a b c"}, []),
}


@pytest.mark.parametrize("case", QUOTAS)
def test_quotas_of_containers(case, tmp_path):
    groups, files, reference = QUOTAS[case]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    (tmp_path / "groups").write_text(groups + "\n")
    assert list(_cores._quotas(tmp_path, tmp_path / "groups")) == reference


def test_another_system_has_no_quotas(tmp_path):
    assert list(_cores._quotas(tmp_path, tmp_path / "missing")) == []
