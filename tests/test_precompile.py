"""Kernels compiled ahead of time: first calls compile nothing, or report that they compile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from numba import config

import fastrbhc
from fastrbhc import _precompile, cli
from fastrbhc._compile_workers import Compiled
from fastrbhc._precompile import (
    COLUMNS_OF_ALL,
    families_of_the_package,
    models_of_the_package,
)
from fastrbhc.families import Block, Domain, Poisson, Product, as_family, family
from fastrbhc.families._missing import takes_missing

compiles_much = pytest.mark.skipif(
    "TEST_COMPILE_ALL" not in os.environ, reason="make test-compile-all runs it"
)

ROOT = Path(fastrbhc.__file__).parents[1]


def python(code, cache):
    """Run code in its own process, with its own cache."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
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
        print({name: found.kernels for name, found in
               fastrbhc.precompile(["ward+poisson", "poisson"], missing=True).items()})
    """
    usual, ward, others = map(eval, python(code, path).stdout.splitlines())
    assert list(usual) == ["spherical_gaussian", "gaussian", "poisson", "poisson, sparse"]
    assert all(usual.values())
    assert list(ward) == ["spherical_gaussian", "spherical_gaussian, columns: 2"]
    assert ward["spherical_gaussian"] == 0
    assert ward["spherical_gaussian, columns: 2"] > 0
    assert list(others) == [
        "spherical_gaussian+poisson",
        "poisson",
        "poisson, sparse",
        "poisson, missing cells",
    ]
    assert others["spherical_gaussian+poisson"] > 0
    assert others["poisson, missing cells"] > 0
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
    # Nothing but rows: the family and λ are left to the data.
    "fastrbhc.RBHC().fit(iris).predict(iris)",
    "fastrbhc.RBHC().fit(normal(2000, 3)).transform(normal(5, 3))",
    "fastrbhc.linkage(normal(300, 12))",
    "fastrbhc.RBHC(n_clusters=3).fit(iris).assess(iris, n_resamples=2)",
    "fastrbhc.linkage(iris, 'ward')",  # has ties
    "fastrbhc.RBHC('ward', n_clusters=3).fit(iris).assess(iris, n_resamples=2)",
    "fastrbhc.RBHC(threshold='kmeans', random_state=0).fit(iris)",
    "fastrbhc.kmeans_threshold(counts(300, 3), 'poisson', 4, random_state=0)",
    # Sparse rows of counts.
    "fastrbhc.linkage(words(1000, 3000), 'poisson').summary(words(1000, 3000), n_clusters=3)",
    "fastrbhc.linkage(words(300, 50), 'poisson', neighbors='inverted')",
    "fastrbhc.RBHC('poisson').fit(words(500, 3000)).predict(words(5, 3000))",
    "fastrbhc.dissimilarity(words(300, 4000), words(400, 4000), 'poisson')",
    # Products, whatever their columns and parameters.
    "fastrbhc.linkage(counts(200, 3), {'ward': [0, 1], 'poisson': [2]})",
    "fastrbhc.linkage(counts(1000, 5), {'ward': [1, 2], 'poisson': [3, 0], 'ignore': [4]})",
    "fastrbhc.linkage(counts(300, 12), {Ward(2.0): range(7), Poisson(1.0): range(7, 12)})",
    "fastrbhc.RBHC({'ward': [0, 1], 'poisson': [2]}).fit(counts(300, 3)).predict(counts(5, 3))",
    # Missing cells.
    "fastrbhc.linkage(gaps(200, 3), 'poisson', missing='ignore')",
    "fastrbhc.linkage(gaps(1000, 3), 'poisson', missing='ignore')",
    "fastrbhc.linkage(gaps(300, 12), 'poisson', missing='ignore')",
    "fastrbhc.RBHC('poisson', missing='ignore').fit(gaps(300, 3)).predict(gaps(5, 3))",
]


# Prints the calls that compile.
WATCHED = """
    import numpy as np
    import fastrbhc
    from fastrbhc._engine.compilations import listening
    from fastrbhc.bhc import as_model
    from fastrbhc.families import Poisson, as_family
    from fastrbhc.families import SphericalGaussian as Ward

    from scipy.sparse import csr_array
    from sklearn.datasets import load_iris

    iris = load_iris().data
    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.normal(size=shape)
    counts = lambda *shape: rng.poisson(9, size=shape)
    gaps = lambda *shape: rows_with_gaps(counts(*shape))

    def rows_with_gaps(X):
        X = X.astype(float)
        X[1::2, 0] = X[::2, -1] = np.nan
        return X

    def words(n, d):  # in two plain clusters, none of the rows empty
        columns = rng.integers(50, size=(n, 12)) + 50 * rng.integers(2, size=(n, 1)) * (d >= 100)
        X = csr_array((np.ones(12 * n), columns.ravel(), np.arange(n + 1) * 12), (n, d))
        X.sum_duplicates()
        return X.sign()

    def rows(record, *shape):
        lowest = record.domain.lower
        if record.domain.upper == 1.0:
            return rng.random(shape)
        return 20.0 * normal(*shape) if lowest < 0.0 else lowest + rng.gamma(2.0, 20.0, shape)

    compiled = []
    for call in CALLS:
        with listening(lambda: None, lambda: compiled.append(call)):
            eval(call)
    print(*dict.fromkeys(compiled), sep="\\n")
"""


def calls_that_compile(calls, cache):
    said = python(WATCHED.replace("CALLS", repr(calls)), cache).stdout
    return [line for line in said.splitlines() if line]


@compiles_much
def test_first_calls_compile_nothing(cache):
    files = set(cache.rglob("*"))
    assert calls_that_compile(CALLS, cache) == []
    assert set(cache.rglob("*")) == files


def calls_of_a_family(name):
    x = f"rows(as_family({name!r}), {{}}, {{}})".format
    shapes = [(40, 1), (150, 3), (1_000, 3), (10_000, 2), (10_000, 3), (300, 12), (2_000, 20)]
    yield from (f"fastrbhc.linkage({x(n, d)}, {name!r})" for n, d in shapes)
    # So many rows that subsamples tell how long it will take.
    yield f"fastrbhc.linkage({x(50_000, 3)}, {name!r})"
    shapes = [(150, 3), (1_000, 3), (10_000, 3), (300, 12), (2_000, 20)]
    yield from (f"fastrbhc.linkage({x(n, d)}, {name!r}, audit=True)" for n, d in shapes)
    yield f"fastrbhc.linkage({x(1_000, 3)}, {name!r}, threshold=0.1, audit='sample')"
    yield f"fastrbhc.linkage({x(500, 3)}, {name!r}, sample_weight=rng.integers(3, size=500))"
    for d in (3, 20):
        for options in ("", ", threshold='gap'", ", threshold='evidence'", ", n_clusters=4"):
            yield f"fastrbhc.RBHC({name!r}{options}).fit({x(500, d)}).predict({x(9, d)})"
    yield f"fastrbhc.RBHC({name!r}, n_clusters=2).fit({x(300, 3)}).summary(n_top=2)"
    yield f"(lambda X: fastrbhc.RBHC({name!r}, n_clusters=3).fit(X).assess(X))({x(300, 3)})"
    yield f"fastrbhc.linkage({x(300, 3)}, {name!r}).cut(n_clusters=3)"
    yield f"fastrbhc.linkage({x(300, 3)}, {name!r}).path()"
    yield f"fastrbhc.dissimilarity({x(3, 3)}, {x(4, 3)}, {name!r})"
    if takes_missing(as_family(name)):
        option = "missing='ignore'"
        for n, d in [(150, 3), (1_000, 3), (10_000, 3), (300, 12)]:
            yield f"fastrbhc.linkage(rows_with_gaps({x(n, d)}), {name!r}, {option})"
        fitted = f"fastrbhc.RBHC({name!r}, {option}).fit(rows_with_gaps({x(300, 3)}))"
        yield f"{fitted}.predict(rows_with_gaps({x(9, 3)}))"


def calls_of_sparse_rows(name):
    shapes = [(150, 10_000), (1_000, 3_000)]
    yield from (f"fastrbhc.linkage(words({n}, {d}), {name!r})" for n, d in shapes)
    yield f"fastrbhc.linkage(words(150, 10_000), {name!r}, audit=True)"
    weights = "rng.integers(3, size=500)"
    yield f"fastrbhc.linkage(words(500, 3_000), {name!r}, sample_weight={weights})"
    for options in ("", ", threshold='gap'", ", threshold='evidence'", ", n_clusters=4"):
        x = "words(200, 10_000)"
        yield f"fastrbhc.RBHC({name!r}{options}).fit({x}).predict(words(9, 10_000))"
    yield f"fastrbhc.RBHC({name!r}, n_clusters=2).fit(words(200, 10_000)).summary()"
    call = f"fastrbhc.RBHC({name!r}, n_clusters=3).fit(X).assess(X, n_resamples=2)"
    yield f"(lambda X: {call})(words(50, 30_000))"
    yield f"fastrbhc.dissimilarity(words(200, 10_000), words(150, 10_000), {name!r})"


def calls_of_a_sparse_model(name):
    yield f"fastrbhc.bhc_linkage(words(150, 10_000), {name!r})"
    yield f"fastrbhc.BHC({name!r}).fit(words(150, 10_000)).predict(words(9, 10_000))"
    yield f"fastrbhc.BHC({name!r}).fit(words(150, 10_000)).score_samples(words(9, 10_000))"


def calls_of_a_model(name):
    x = f"rows(as_model({name!r}), {{}}, {{}}).round()".format
    for n, d in [(40, 1), (300, 3), (1_000, 3), (300, 20)]:
        yield f"fastrbhc.bhc_linkage({x(n, d)}, {name!r})"
    for d in (3, 20):
        yield f"fastrbhc.BHC({name!r}).fit({x(200, d)}).predict({x(9, d)})"
    yield f"fastrbhc.BHC({name!r}).fit({x(200, 3)}).score_samples({x(9, 3)})"


@compiles_much
def test_first_calls_compile_nothing_after_all(tmp_path):
    code = "from fastrbhc.cli import main; raise SystemExit(main(['compile', '--all']))"
    print(python(code, tmp_path).stdout)
    files = set(tmp_path.rglob("*"))
    models = models_of_the_package()
    calls = [call for name in families_of_the_package() for call in calls_of_a_family(name)]
    calls += [call for name in models for call in calls_of_a_model(name)]
    counts = [name for name in families_of_the_package() if as_family(name).entropy_share > 0.0]
    calls += [call for name in counts for call in calls_of_sparse_rows(name)]
    counts = [name for name in models if fastrbhc.bhc.as_model(name).takes_sparse_rows]
    calls += [call for name in counts for call in calls_of_a_sparse_model(name)]
    assert calls_that_compile(calls, tmp_path) == []
    assert set(tmp_path.rglob("*")) == files


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
    assert sorted(models) == models_of_the_package()
    assert "poisson" in models
    assert "product" not in models
    assert [(job.columns, job.sparse) for job in jobs[0][1]] == [
        (None, True),
        (1, False),
        (3, False),
    ]
    assert [job.sparse for job in jobs[1][1]] == [False, False]
    sparse = {job.name for _, more in jobs for job in more if job.kind == "model"}
    assert sparse == {"poisson", "multinomial", "bernoulli"}
    assert all(job.audit and job.algorithms == ("greedy",) for job in jobs[0][1])
    assert _precompile._jobs([], None, False, "auto", ["gaussian"])[0][0].title == "BHC gaussian"


def test_jobs_of_products_and_missing_cells():
    def titles(families):
        jobs = _precompile._jobs(families, [2], False, "auto", False, missing=True)
        return [[first.title, *(job.title for job in more)] for first, more in jobs]

    blocks = (Block("ward", [1]), Block("poisson", [0]), Block("ignore", [2]))
    same = ["ward+poisson", {"ward": [0], "poisson": [2, 3]}, Product(blocks)]
    for product in same:
        assert titles(product) == [["spherical_gaussian+poisson"]]
    assert titles(same) == [["spherical_gaussian+poisson"]]
    assert titles(["ward", "gaussian"]) == [
        [
            "spherical_gaussian",
            "spherical_gaussian, missing cells",
            "spherical_gaussian, columns: 2",
        ],
        ["gaussian", "gaussian, columns: 2"],
    ]
    with pytest.raises(ValueError, match="did you mean 'poisson'"):
        titles("ward+poison")


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


@pytest.mark.skipif(sys.platform == "win32", reason="a process group is interrupted")
@pytest.mark.usefixtures("ctrl_c_counts")
def test_interrupted(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "fastrbhc", "compile", "--jobs", "2"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        said = b""
        while b" kernels" not in said:
            said += process.stderr.read1()
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        assert process.wait(timeout=60) == 130
        with pytest.raises(ProcessLookupError):  # no process of the group is left
            os.killpg(process.pid, 0)
        assert b"Traceback" not in process.stderr.read()
        assert process.stdout.read() == b""


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
        (["--family", "ward+poisson"], {"families": ["ward+poisson"]}),
        (["--missing"], {"missing": True}),
        (
            ["--all"],
            {
                "families": families_of_the_package(),
                "n_features": COLUMNS_OF_ALL,
                "bhc": True,
                "audit": True,
                "missing": True,
            },
        ),
        (
            ["--all", "--family", "poisson", "--columns", "3"],
            {"families": ["poisson"], "n_features": [3], "audit": True, "missing": True},
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
    usual |= {"bhc": False, "missing": False, "n_jobs": None, "progress": True}
    assert seen == usual | expected
    out = capsys.readouterr().out
    assert "poisson: 7 kernels, 1.5 s\n" in out
    assert "\n7 kernels in " in out
    assert "they are kept in" in out
