"""Tables that the repository keeps: how rows are added to the file of a commit, and read again."""

from __future__ import annotations

import argparse
import json
import subprocess

import pytest
import recorded
from recorded import Commit, as_text, commit_of, history, record, run_of
from rows import Row

OLD = Commit("bbbbbbb", "2026-01-01T10:00:00+00:00", "The one before")
NEW = Commit("aaaaaaa", "2026-01-02T10:00:00+00:00", "The change")
FIRST = Row("Ward", "÷ Y", "4.8", "≤ 1.2", seconds=18.0, value=4.81234)
SECOND = Row("Poisson", "÷ Y", "7.9", "≤ 1.7", value=7.9)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_numbers_are_kept_with_three_digits_and_words_are_not():
    words = Row("rivers", "finishes", "yes", "yes")
    (row,) = run_of("compile", "here", [FIRST, words])["rows"]
    assert row == {"work": "Ward", "measure": "÷ Y", "value": 4.81, "to_reach": "≤ 1.2"}


def test_rows_are_added_to_the_file_of_the_commit(tmp_path):
    folder = tmp_path / "recorded"
    record(OLD, run_of("compile", "here", [FIRST]), folder)
    path = record(OLD, run_of("peers", "there", [FIRST]), folder)
    assert path == folder / "bbbbbbb.json"
    file = read(path)
    assert (file["commit"], file["date"], file["subject"]) == OLD
    assert [(run["by"], run["about"]) for run in file["runs"]] == [
        ("compile", "here"),
        ("peers", "there"),
    ]


def test_rows_measured_again_replace_those_of_the_same_name(tmp_path):
    record(OLD, run_of("compile", "first", [FIRST, SECOND]), tmp_path)
    path = record(OLD, run_of("compile", "again", [FIRST._replace(value=5.0)]), tmp_path)
    kept = [
        (run["about"], row["work"], row["value"])
        for run in read(path)["runs"]
        for row in run["rows"]
    ]
    assert kept == [("first", "Poisson", 7.9), ("again", "Ward", 5.0)]
    # A run of which nothing is left goes.
    path = record(OLD, run_of("compile", "last", [FIRST, SECOND]), tmp_path)
    assert [run["about"] for run in read(path)["runs"]] == ["last"]


def test_a_row_is_a_line():
    run = run_of("compile", "here", [FIRST, SECOND])
    text = as_text({**OLD._asdict(), "runs": [run]})
    assert json.loads(text) == {**OLD._asdict(), "runs": [run]}
    assert sum('"work"' in line for line in text.splitlines()) == 2
    assert "÷ Y" in text  # as it is read, not as \u00f7


def test_history_is_in_the_order_of_the_commits(tmp_path):
    record(NEW, run_of("compile", "here", [FIRST._replace(value=1.1, to_reach="≤ 1")]), tmp_path)
    record(OLD, run_of("compile", "there", [FIRST, SECOND]), tmp_path)
    found = history(tmp_path)
    assert [commit["commit"] for commit in found["commits"]] == ["bbbbbbb", "aaaaaaa"]
    assert found["commits"][0]["about"] == ["compile: there"]
    ward, poisson = found["rows"]
    assert (ward["values"], ward["to_reach"]) == ([4.81, 1.1], "≤ 1")
    assert poisson["values"] == [7.9, None]


def test_nothing_recorded_is_an_empty_history(tmp_path):
    assert history(tmp_path / "absent") == {"commits": [], "rows": []}


def test_what_is_in_the_repository_can_be_read():
    found = history()
    assert {row["by"] for row in found["rows"]} == {"bench-compile", "bench-peers"}
    for commit in found["commits"]:
        assert (recorded.RECORDED / f"{commit['commit']}.json").stat().st_size < 20_000
    for row in found["rows"]:
        assert row["to_reach"].startswith(("≤", "≥"))
        assert any(value is not None for value in row["values"])
        assert row["sentence"].endswith("."), row["measure"]


@pytest.fixture
def checkout(tmp_path):
    """A repository with a package, all of it committed."""
    (tmp_path / "fastrbhc").mkdir()
    (tmp_path / "fastrbhc" / "__init__.py").write_text("")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_the_commit_is_that_of_the_package(checkout):
    found = commit_of(checkout)
    assert len(found.commit) == 7
    assert found.subject == "Begin"
    (checkout / "notes.txt").write_text("no part of the package")
    assert commit_of(checkout) == found


def test_changes_that_no_commit_has_are_not_recorded(checkout, tmp_path_factory):
    (checkout / "fastrbhc" / "__init__.py").write_text("changed = True")
    with pytest.raises(ValueError, match="commit them"):
        commit_of(checkout)
    with pytest.raises(ValueError, match="git does not know"):
        commit_of(tmp_path_factory.mktemp("no-repository"))


def test_what_the_options_ask_for(tmp_path, monkeypatch, capsys):
    parser = argparse.ArgumentParser()
    recorded.add_options(parser)
    file = tmp_path / "rows.json"
    arguments = parser.parse_args(["--record", "--json", str(file), "--note", "Busy."])
    monkeypatch.setattr(recorded, "RECORDED", tmp_path / "kept")
    recorded.keep(arguments, OLD, "compile", "here", [FIRST])
    (run,) = read(file)["runs"]
    assert run["about"] == "here Busy."
    assert read(tmp_path / "kept" / "bbbbbbb.json")["runs"] == [run]
    assert "1 rows kept" in capsys.readouterr().out
