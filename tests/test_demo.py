"""The demo."""

from __future__ import annotations

import builtins
import re

import pytest

from fastrbhc import cli
from fastrbhc.cli import demo


@pytest.fixture(scope="module")
def findings():
    return demo.find()


def test_it_finds_most_of_the_digits(findings):
    assert 7 <= findings.model.n_clusters_ <= 14
    assert findings.score > 0.6
    assert findings.ward_score > 0.6
    assert len(findings.model.dendrogram_.merges) == len(findings.y) - 1


def test_the_report_accounts_for_every_row(findings):
    lines = demo.report(findings).splitlines()
    begin = lines.index("cluster  rows  digits in it") + 1
    table = lines[begin : begin + findings.model.n_clusters_]
    assert sum(int(line.split()[1]) for line in table) == len(findings.y)
    for line in table:
        _, size, inside = line.split(maxsplit=2)
        counts = re.findall(r"(\d+) (?:x|more)", inside)
        assert sum(map(int, counts)) == int(size)


def test_the_picture(findings, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "find", lambda: findings)
    path = tmp_path / "picture.png"
    assert cli.main(["demo", "--output", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < path.stat().st_size < 200_000
    out = capsys.readouterr().out
    assert f"wrote {path}" in out
    assert "adjusted Rand index" in out


def test_without_matplotlib(findings, tmp_path, capsys, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(demo, "find", lambda: findings)
    monkeypatch.setattr(builtins, "__import__", without)
    path = tmp_path / "picture.png"
    assert cli.main(["demo", "--output", str(path)]) == 0
    assert not path.exists()
    assert "pip install fastrbhc[plot] would draw a picture" in capsys.readouterr().out


def test_a_picture_that_cannot_be_written(tmp_path, capsys):
    assert cli.main(["demo", "--output", str(tmp_path / "no" / "picture.png")]) == 2
    assert "there is no directory" in capsys.readouterr().err
