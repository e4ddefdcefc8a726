"""The rows of `bench_peers` for sparse counts.

SNN stands for scikit-learn's ``NearestNeighbors(n_neighbors=2, metric="cosine",
algorithm="brute")`` on the same matrix: the nearest neighbour of every row, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.datasets import topics
from benchmarks.memory import grown
from benchmarks.timing import compare
from rows import Row
from scipy.sparse import csr_array, csr_matrix
from sklearn.neighbors import NearestNeighbors

import fastrbhc

Size = Callable[[int], int]
GREEDY = "exact greedy, whole tree"


def against_snn(
    size: Size, real: Callable[[str], Any], of_ratio: Callable[..., Row]
) -> Iterator[Row]:
    """Trees of real and simulated counts; ``real`` reads a file."""
    for name, what, family, goal in (
        ("20newsgroups", "20 newsgroups", "multinomial", "≤ 1"),
        ("sc_worm_neuron", "single cells", "multinomial", "≤ 15"),
        ("sc_worm_neuron", "single cells", "poisson", "≤ 15"),
        ("caltech101_bovw1000", "Caltech visual words", "multinomial", "≤ 12"),
    ):
        try:
            X = _matrix(real(name), size)
        except FileNotFoundError as error:
            yield Row(f"{what}, {family}", f"left out: {error}", "", "")
            continue
        yield _ratio(f"{_extent(X)} {what}, {family}, {GREEDY}", X, family, goal, of_ratio)
    X = topics(size(100_000), 50_000, 1_000, 60)
    yield _ratio(f"{_extent(X)} topics, multinomial, {GREEDY}", X, "multinomial", "≤ 2", of_ratio)
    wide = topics(size(80_000), 400_000, 1_000, 100)
    megabytes = grown(lambda: fastrbhc.linkage(wide, "multinomial")) / 1e6
    yield Row(
        f"{_extent(wide)} topics, multinomial, {GREEDY}",
        "memory at its peak, over the input",
        f"{megabytes:,.0f} MB",
        "≤ 2,000 MB",
        value=megabytes,
    )


def without_zeros(
    size: Size, real: Callable[[str], Any], of_ratio: Callable[..., Row]
) -> Iterator[Row]:
    """A full matrix that is given as a sparse one."""
    file = real("caltech101_bovw1000")
    wanted = np.isin(file["classes"][file["y"]], ("airplanes", "Motorbikes", "Faces_easy"))
    dense = _matrix(file, lambda n: n)[wanted].toarray()[: size(2_033)] + 1.0
    given = csr_matrix(dense)
    fastrbhc.linkage(dense[:300], "multinomial")
    found = compare(
        lambda: fastrbhc.linkage(given, "multinomial", n_jobs=2),
        lambda: fastrbhc.linkage(dense, "multinomial", n_jobs=2),
    )
    work = f"{_extent(dense)} counts without a zero, given as CSR, multinomial"
    yield of_ratio(work, "time ÷ time of the dense rows", found, "≤ 2")


def _ratio(work: str, X: Any, family: str, goal: str, of_ratio: Callable[..., Row]) -> Row:
    fastrbhc.linkage(X[:300], family, neighbors="inverted", n_jobs=2)
    found = compare(lambda: fastrbhc.linkage(X, family, n_jobs=2), lambda: _snn(X), repeats=3)
    return of_ratio(work, "time ÷ SNN", found, goal)


def _snn(X: Any) -> None:
    model = NearestNeighbors(n_neighbors=2, metric="cosine", algorithm="brute", n_jobs=2)
    model.fit(X).kneighbors(X)


def _matrix(file: Any, size: Size) -> Any:
    """The rows of a file with any count, some of them if only a few are wanted."""
    parts = file["data"].astype(np.float64), file["indices"], file["indptr"]
    X = csr_array(parts, shape=tuple(file["shape"]))
    X = X[X.sum(axis=1) > 0]
    return X[np.linspace(0, X.shape[0] - 1, size(X.shape[0])).astype(int)]


def _extent(X: Any) -> str:
    return f"{X.shape[0]:,} × {X.shape[1]:,}"
