"""Kernels compiled ahead of time: first calls compile nothing, or report that they compile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import config

import fastrbhc
from fastrbhc import _precompile, cli
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._options import ALGORITHM_NAMES
from fastrbhc._precompile import Compiled, Job, families_of_the_package
from fastrbhc._validation import check_rows
from fastrbhc.families import Domain, Poisson, as_family, family

ROOT = Path(fastrbhc.__file__).parents[1]
ONE_JOB = Job("family", "spherical_gaussian", None, False, ("auto",), False)


def python(code, cache):
    """Run code in its own process, with its own cache."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The cache after `precompile`, with numbers of columns for one family."""
    path = tmp_path_factory.mktemp("cache")
    code = """
        import fastrbhc
        print({name: found.kernels for name, found in fastrbhc.precompile().items()})
        print({name: found.kernels for name, found in
               fastrbhc.precompile("ward", n_features=[2, 30]).items()})
    """
    usual, ward = map(eval, python(code, path).stdout.splitlines())
    assert list(usual) == ["spherical_gaussian", "gaussian", "poisson"]
    assert all(usual.values())
    assert list(ward) == ["spherical_gaussian", "spherical_gaussian, columns: 2"]
    assert ward["spherical_gaussian"] == 0
    assert ward["spherical_gaussian, columns: 2"] > 0
    return path


CALLS = [
    "fastrbhc.linkage(normal(1000, 3), 'ward').cut(n_clusters=3)",
    "fastrbhc.linkage(normal(6000, 2), 'ward')",
    "fastrbhc.linkage(counts(300, 3), 'poisson')",
    "fastrbhc.linkage(normal(1000, 3), 'gaussian')",
    "fastrbhc.linkage(normal(300, 20), 'gaussian')",
    "fastrbhc.linkage(counts(300, 20), 'poisson')",
    "fastrbhc.linkage(normal(300, 20), 'ward', threshold=2.0)",
    "fastrbhc.linkage(counts(40, 1), 'poisson')",
    "fastrbhc.RBHC('poisson').fit(counts(500, 4)).predict(counts(5, 4))",
    "fastrbhc.RBHC('gaussian').fit(normal(400, 2)).summary()",
    "fastrbhc.dissimilarity(normal(3, 2), normal(4, 2), 'gaussian')",
]


def test_first_calls_compile_nothing(cache):
    code = """
        import numpy as np
        import fastrbhc
        from fastrbhc._engine.compilations import listening

        rng = np.random.default_rng(1)
        normal = lambda *shape: rng.normal(size=shape)
        counts = lambda *shape: rng.poisson(9, size=shape)
        compiled = []
        for call in CALLS:
            with listening(lambda: None, lambda: compiled.append(call)):
                eval(call)
        print(*sorted(set(compiled)), sep="\\n")
    """
    files = set(cache.rglob("*"))
    assert python(code.replace("CALLS", repr(CALLS)), cache).stdout.split() == []
    assert set(cache.rglob("*")) == files


def test_progress_says_that_kernels_are_compiled(tmp_path):
    code = """
        import fastrbhc
        fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward", progress=True)
    """
    first, second = python(code, tmp_path).stderr, python(code, tmp_path).stderr
    assert "compiling kernels: 0 [" in first
    assert "compiling kernels: 2 [" in first
    assert "merging: 100%" in first
    assert "compiling" not in second
    assert "merging: 100%" in second


def test_jobs():
    jobs = _precompile._jobs(["poisson", Poisson(1.0), "ward"], [9, 3, 3, 1], True, "greedy", True)
    first = [job for job, _ in jobs]
    names = [job.name for job in first if job.kind == "family"]
    assert names == ["poisson", "spherical_gaussian"]
    models = [job.name for job in first if job.kind == "model"]
    assert sorted(models) == sorted({cls.name for cls in fastrbhc.bhc.registered().values()})
    assert [job.columns for job in jobs[0][1]] == [1, 3]
    assert all(job.audit and job.algorithms == ("greedy",) for job in jobs[0][1])
    assert _precompile._jobs([], None, False, "auto", ["gaussian"])[0][0].title == "BHC gaussian"


@pytest.mark.parametrize("name", families_of_the_package())
def test_every_family_admits_the_rows(name):
    X = _precompile._rows(name, 50, 3)
    assert check_rows(X, as_family(name)).shape == (50, 3)
    assert len(np.unique(X, axis=0)) == 50


def test_wrong_arguments():
    @family("nobodys", separable=True, reducible=False, domain=Domain())
    class Nobodys(NamedTuple):
        def divergence(family, value, mean, step):
            return step * step

    for wrong, message in [
        ({"families": "poison"}, "did you mean 'poisson'"),
        ({"families": [Nobodys()]}, "kept in memory only"),
        ({"n_features": 0}, "n_features has to be at least 1"),
        ({"algorithms": "magic"}, "algorithm has to be one of"),
        ({"bhc": ["poison"]}, "unknown model 'poison'"),
        ({"n_jobs": 0}, "n_jobs has to be positive"),
    ]:
        with pytest.raises(ValueError, match=message):
            fastrbhc.precompile(**wrong)


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"NUMBA_CACHE_DIR is .* which cannot be written"):
        fastrbhc.precompile("ward")
    assert cli.main(["compile"]) == 2
    assert "cannot be kept on disk" in capsys.readouterr().err
    monkeypatch.setenv("FASTRBHC_NUMBA_CACHE", "0")
    with pytest.raises(OSError, match="FASTRBHC_NUMBA_CACHE is 0"):
        fastrbhc.precompile("ward")


def test_a_process_that_fails_is_reported():
    with pytest.raises(
        ChildProcessError, match=r"nonsense could not be compiled: .* unknown family"
    ):
        _precompile._run([(ONE_JOB._replace(name="nonsense"), [])], 1, False)


def test_one_failure_ends_all(monkeypatch):
    slow = "import time; time.sleep(600)"
    commands = iter([slow, "raise ValueError('no')"])

    def started(job):
        code = [sys.executable, "-c", next(commands)]
        return subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    monkeypatch.setattr(_precompile, "_started", started)
    start = time.monotonic()
    with pytest.raises(ChildProcessError, match="could not be compiled: ValueError: no"):
        _precompile._run([(ONE_JOB, []), (ONE_JOB._replace(name="gaussian"), [])], 2, False)
    assert time.monotonic() - start < 300


def test_jobs_that_follow_others(monkeypatch, capsys):
    order = []

    def run(processes, job):
        order.append(job.columns)
        return Compiled(1, 0.5)

    monkeypatch.setattr(_precompile._Processes, "run", run)
    more = [ONE_JOB._replace(columns=each) for each in (1, 2)]
    found = _precompile._run([(ONE_JOB, more)], 2, True)
    assert order[0] is None
    assert sorted(order[1:]) == [1, 2]
    assert list(found) == [each.title for each in (ONE_JOB, *more)]
    assert "3/3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (
            ["--family", "poisson", "ward", "--columns", "2", "3", "--jobs", "2"],
            {"families": ["poisson", "ward"], "n_features": [2, 3], "n_jobs": 2},
        ),
        (["--bhc", "--algorithm", "nn_chain"], {"bhc": True, "algorithms": ["nn_chain"]}),
        (["--bhc", "poisson", "--audit"], {"bhc": ["poisson"], "audit": True}),
        (
            ["--all"],
            {
                "families": families_of_the_package(),
                "n_features": range(1, FEW_COLUMNS + 1),
                "algorithms": ALGORITHM_NAMES,
                "bhc": True,
                "audit": True,
            },
        ),
        (
            ["--all", "--family", "poisson", "--columns", "3"],
            {
                "families": ["poisson"],
                "n_features": [3],
                "algorithms": ALGORITHM_NAMES,
                "audit": True,
            },
        ),
    ],
)
def test_the_command(monkeypatch, capsys, arguments, expected):
    seen = {}

    def precompile(families, **options):
        seen.update(families=families, **options)
        return {"poisson": Compiled(7, 1.5)}

    monkeypatch.setattr(fastrbhc, "precompile", precompile)
    assert cli.main(["compile", *arguments]) == 0
    usual = {"families": None, "n_features": None, "algorithms": "auto", "audit": False}
    usual |= {"bhc": False, "n_jobs": None, "progress": True}
    assert seen == usual | expected
    out = capsys.readouterr().out
    assert "poisson: 7 kernels, 1.5 s\n" in out
    assert "kernels are kept in" in out
