"""Long work in portions: the same tree, progress, Ctrl-C, and an end whatever d returns."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from strategies import FAMILIES, continuous_rows, tied_rows
from trees import same_tree

import fastrbhc
from fastrbhc import families, linkage
from fastrbhc._engine.agglomeration import driver
from fastrbhc._engine.clusters.record import merge_means

ALGORITHMS = ("greedy", "nn_chain")
both_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_family = pytest.mark.parametrize("family", FAMILIES)

build_module = importlib.import_module("fastrbhc._build")
agglomerator_modules = [
    importlib.import_module(f"fastrbhc._engine.agglomeration.{name}") for name in ALGORITHMS
]


def one_step_at_a_time(advance, requests, report):
    """As run_interruptibly, with the smallest budget there is."""
    while (status := advance(1)) != driver.FINISHED:
        report()
        if status != driver.OUT_OF_BUDGET:
            requests[status]()
    report()


@pytest.mark.fast
@both_algorithms
@every_family
def test_smallest_portions_make_the_same_tree(monkeypatch, family, algorithm):
    X, ties = continuous_rows(family, 25, 2, seed=21), tied_rows(family, 25, 2, seed=21)
    threshold = float(np.median(linkage(X, family).heights))
    options = {"family": family, "algorithm": algorithm}
    calls = [(X, options), (ties, options), (X, {**options, "threshold": threshold})]
    references = [linkage(rows, **options) for rows, options in calls]
    for module in agglomerator_modules:
        monkeypatch.setattr(module, "run_interruptibly", one_step_at_a_time)
    for (rows, options), reference in zip(calls, references, strict=True):
        assert same_tree(linkage(rows, **options), reference)


@both_algorithms
def test_short_portions_make_the_same_tree(monkeypatch, algorithm):
    X = continuous_rows("poisson", 1000, 3, seed=22)
    reference = linkage(X, "poisson", algorithm=algorithm, n_jobs=1)
    monkeypatch.setattr(driver, "_SECONDS", 0.0)
    assert same_tree(linkage(X, "poisson", algorithm=algorithm, n_jobs=1), reference)


@pytest.mark.fast
@both_algorithms
def test_progress_is_drawn_and_changes_nothing(capsys, algorithm):
    X = continuous_rows("poisson", 25, 2, seed=23)
    reference = linkage(X, "poisson", algorithm=algorithm)
    assert capsys.readouterr().err == ""
    assert same_tree(linkage(X, "poisson", algorithm=algorithm, progress=True), reference)
    drawn = capsys.readouterr().err
    assert "merging" in drawn
    assert "24" in drawn
    assert ("neighbours" in drawn) == (algorithm == "greedy")


@pytest.mark.fast
@pytest.mark.parametrize(
    ("algorithm", "stage"),
    [("greedy", "neighbours"), ("greedy", "merging"), ("nn_chain", "merging")],
)
def test_interrupt_ends_the_call_and_leaves_no_trace(monkeypatch, algorithm, stage):
    X = continuous_rows("poisson", 25, 2, seed=24)
    reference = linkage(X, "poisson", algorithm=algorithm)
    threads = numba.get_num_threads()
    closed = []

    class Interrupting(build_module.Progress):
        def __call__(self, reported, done):
            if reported == stage:
                raise KeyboardInterrupt

        def close(self):
            closed.append(stage)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "Progress", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            linkage(X, "poisson", algorithm=algorithm, n_jobs=1)
    assert closed == [stage]
    assert numba.get_num_threads() == threads
    assert same_tree(linkage(X, "poisson", algorithm=algorithm), reference)


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
def test_interrupt_stops_long_work_and_leaves_python_healthy(tmp_path, algorithm):
    # Left alone, this would run for hours.
    code = f"""
        import signal
        import warnings
        import numpy as np
        import fastrbhc
        # A process started in the background may have inherited that it ignores the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).normal(size=(150_000, 30))
        small = fastrbhc.linkage(X[:100], "ward", algorithm="{algorithm}")
        print("started", flush=True)
        try:
            fastrbhc.linkage(X, "ward", algorithm="{algorithm}")
        except KeyboardInterrupt:
            again = fastrbhc.linkage(X[:100], "ward", algorithm="{algorithm}")
            print("same" if (again.heights == small.heights).all() else "different")
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(Path(fastrbhc.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "started\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)  # in the middle of the work
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == "same\n"
    assert process.returncode == 0


class CyclicGeometry(NamedTuple):
    """Not symmetric: every point's nearest neighbour is the next one on a circle."""

    circumference: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        return (clusters.means[0, j] - clusters.means[0, i]) % geometry.circumference

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)


@pytest.fixture
def cyclic_family():
    @families.family("cyclic", separable=False, reducible=True, domain=families.Domain())
    class Cyclic(NamedTuple):
        def geometry(self, n_features):
            return CyclicGeometry(300.0)

    yield Cyclic()
    families._interface._REGISTER.pop("cyclic")


@pytest.mark.parametrize("algorithm", ["levels", "nn_chain"])
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_a_circle_of_neighbours_is_noticed(cyclic_family, algorithm, neighbors):
    X = np.arange(300.0)[:, None]
    with pytest.raises(RuntimeError, match="made no progress"):
        linkage(X, cyclic_family, algorithm=algorithm, neighbors=neighbors)


@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_a_union_nearer_than_its_parts_by_rounding(neighbors):
    """Directions on one line: d is 2 for the parts and, but for its last digit, for the union."""
    X, weights = [[1.2, -0.06], [-1.2, 0.06], [0.2, -0.01]], [2.0, 1.0, 4.0]
    options = {"sample_weight": weights, "threshold": 1.9999999999999998}
    reference = linkage(X, "cosine", algorithm="greedy", **options)
    computed = linkage(X, "cosine", algorithm="levels", neighbors=neighbors, **options)
    assert computed.n_trees <= 2
    np.testing.assert_allclose(computed.heights, reference.heights, atol=1e-15)


def test_corrections_end(cyclic_family):
    """On a circle with uneven gaps every cluster's neighbour is nearer to the next one."""
    X = np.cumsum(np.arange(1.0, 24.0))[:, None]
    with pytest.raises(RuntimeError, match="made no progress"):
        linkage(X, cyclic_family, algorithm="levels")


@pytest.mark.fast
def test_a_kernel_that_is_stuck_is_not_called_again():
    statuses = iter([driver.OUT_OF_BUDGET, driver.STUCK])
    with pytest.raises(RuntimeError, match="please report it"):
        driver.run_interruptibly(lambda budget: next(statuses), {}, lambda: None)
    assert next(statuses, None) is None
