"""The table of speed in the README: its tasks, and how its cells are made."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from readme_speed import LIBRARIES, TASKS, Measured, cell, measured, row
from scipy.sparse import issparse


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_tasks_have_rows_and_a_word_for_every_library(task):
    X = task.rows(400)
    assert X.shape[0] == 400
    assert np.isfinite(X.data if issparse(X) else X).all()
    assert list(task.by) == LIBRARIES
    assert callable(task.by["fastrbhc"])
    assert all(callable(work) or work for work in task.by.values())


def test_cells_are_medians():
    turns = [Measured(3.0, 9.0, 10.0), Measured(1.0, 12.34, 2_000.0), Measured(2.0, 99.0, 1_500.0)]
    assert cell(turns, 0) == "2 s, 1,500 MB"
    assert cell(turns, 1) == "12 s, 1,500 MB"


def test_what_cannot_be_done_is_said(monkeypatch):
    monkeypatch.setattr("readme_speed.in_a_process", lambda *_: Measured(0.1234, 0.2, 5.0))
    assert row(3, 3, False) == ["0.12 s, 5 MB", *["no counts"] * 5]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_small_task_is_measured():
    task = TASKS[0]._replace(n=500)
    for library in ("fastrbhc", "SciPy"):
        found = measured(task, library)
        assert found.seconds > 0.0
        assert 0.0 <= found.megabytes < 1_000.0
