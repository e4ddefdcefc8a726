"""The benchmarks as a whole: all are found, the quick ones are there, and they can be run."""

from __future__ import annotations

import json
import sys

import pytest
import suite
from run import note_versions, worth_showing
from suite import BENCHMARKS, QUICK, QUICK_TO_COMPARE, ROOT, cases, chosen

pytest.importorskip("asv_runner", reason="asv comes with the extra 'bench'")

SUBJECTS = {"linkage", "bhc", "audit", "thresholds", "cuts", "memory", "startup", "ratios"}
KEYS = ("name", "type", "unit", "params")


@pytest.fixture(scope="module")
def described():
    """All benchmarks, as asv describes them."""
    from asv_runner.discovery import disc_benchmarks, update_sys_path

    update_sys_path(str(BENCHMARKS))
    found = disc_benchmarks(str(BENCHMARKS))
    return {one.name: {key: getattr(one, key) for key in KEYS} for one in found}


def test_every_subject_has_benchmarks(described):
    subjects = {name.split(".")[0] for name in described}
    helpers = {"__init__", "common", "datasets", "first_call", "processes", "timing", "yardstick"}
    assert subjects == {path.stem for path in BENCHMARKS.glob("*.py")} - helpers
    assert subjects >= SUBJECTS


def test_tracked_values_have_units(described):
    units = {name: found["unit"] for name, found in described.items() if found["type"] == "track"}
    assert units
    assert not [name for name, unit in units.items() if unit == "unit"]  # asv's default


def test_every_pattern_of_the_quick_set_finds_something(described):
    everything = [case for found in described.values() for case in cases(found)]
    for pattern in QUICK:
        assert chosen(everything, [pattern]), pattern
    quick = chosen(everything, QUICK)
    assert {case.name.split(".")[0] for case in quick} >= SUBJECTS
    assert len(quick) < 120  # a second or two each
    compared = chosen(everything, QUICK_TO_COMPARE)
    assert compared
    assert not [case for case in compared if case.name.startswith("ratios.")]


def test_cases_are_numbered_as_asv_numbers_them(described):
    from asv_runner.discovery import get_benchmark_from_name

    name = "linkage.Trees.time_tree"
    (case,) = chosen(cases(described[name]), [r"'poisson', 'nn_chain', 'brute', 10000, 8\)"])
    benchmark = get_benchmark_from_name(str(BENCHMARKS), case.identifier)
    assert [repr(value) for value in benchmark._current_params] == list(case.parameters)


def test_rows_without_results_are_not_shown():
    lines = [
        "[50.00%] ··· linkage.Made.time_tree   ok\n",
        "         1000      n/a        n/a    \n",
        "        10000    4.23±0ms     n/a    \n",
        "        20000      0.51       n/a    \n",
        "        30000      512M       n/a    \n",
        "[50.00%] ···· For parameters: 'a', 1\n",
        "              asv: skipped: NotImplementedError('no sense')\n",
        "              For parameters: 'b', 2\n",
        "              ZeroDivisionError\n",
    ]
    shown = [line for line in worth_showing(lines) if line]
    assert shown == [lines[k] for k in (0, 2, 3, 4, 7, 8)]


def test_versions_are_noted_beside_the_results(tmp_path):
    commit = "0123456789" * 4
    folder = tmp_path / "results" / "here"
    folder.mkdir(parents=True)
    (folder / f"{commit[:8]}-existing-py.json").write_text('{"env_name": "existing-py"}')
    where = tmp_path / "environments.json"
    where.write_text('{"existing-py": {"earlier": {"Python": "3.0"}}}')
    note_versions(commit, where, tmp_path / "results")
    noted = json.loads(where.read_text())["existing-py"]
    assert noted["earlier"] == {"Python": "3.0"}
    assert noted[commit]["Python"] == sys.version.split()[0]
    assert set(noted[commit]) >= {"numba", "numpy", "scipy", "scikit-learn"}


def test_paths_are_those_of_this_tree():
    assert (suite.HERE / "asv.conf.json").is_file()
    assert (ROOT / "fastrbhc" / "__init__.py").is_file()
