"""A catalogue of trees and values, and digests of them from an earlier version.

A change that simplifies the engine or makes it faster must not change a bit of any tree. The rows
of each case are drawn from a fixed seed. Cases use only the public interface, so that they do not
depend on the modules behind it. For each case, ``digests.json`` has a digest of the rows and of
each result. If a result is meant to change,

    python tests/catalogue.py

writes the file again: look at the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import fastrbhc
from fastrbhc import bhc, families

DIGESTS = Path(__file__).with_name("digests.json")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")

Results = dict[str, Any]


class Case(NamedTuple):
    """A name, and a function that computes the rows and the results, by name."""

    name: str
    compute: Callable[[], Results]


# Rows.


def rows_of(kind: str, n: int, d: int) -> np.ndarray:
    """Rows of a kind, always the same."""
    return KINDS[kind](np.random.default_rng(zlib.crc32(f"{kind} {n} {d}".encode())), n, d)


def _blobs(rng, n, d):
    centres = 6.0 * rng.normal(size=(5, d))
    return centres[rng.integers(5, size=n)] + rng.normal(size=(n, d))


def _grid(rng, n, d):
    # A grid with about twice as many points as rows: many ties, some copies, and no zeros.
    side = 2 + int((2 * n) ** (1 / d))
    return 1.0 + rng.integers(side, size=(n, d))


def _repeated(rng, n, d):
    return np.abs(_blobs(rng, n // 4 + 1, d))[rng.integers(n // 4 + 1, size=n)]


def _outlier(rng, n, d):
    X = rng.normal(size=(n, d))
    X[0] = 1e6
    return X


def _counts(rng, n, d):
    rates = rng.gamma(1.0, 12.0, size=(6, d))
    return _none_empty(1.0 * rng.poisson(rates[rng.integers(6, size=n)] + 0.2))


def _sparse(rng, n, d):
    return _none_empty(1.0 * rng.poisson(0.2, size=(n, d)))


def _none_empty(X):
    X[X.sum(axis=1) == 0.0, 0] = 1.0  # multinomial rows need a count
    return X


def _binary(rng, n, d):
    shares = rng.random(size=(4, d))
    return 1.0 * (rng.random(size=(n, d)) < shares[rng.integers(4, size=n)])


def _axes(rng, n, d):
    # Directions at right angles and opposite ones, whose sums cancel.
    X = np.eye(d)[rng.integers(d, size=n)]
    return X * rng.choice([-1.0, 1.0], size=(n, 1)) * rng.uniform(0.5, 2.0, size=(n, 1))


KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "blobs": _blobs,
    "grid": _grid,
    "repeated": _repeated,
    "outlier": _outlier,
    "collinear": lambda rng, n, d: rng.uniform(size=(n, 1)) * rng.uniform(0.2, 1.0, size=d),
    "far": lambda rng, n, d: 1e8 + rng.normal(size=(n, d)),
    "tiny": lambda rng, n, d: 1e-100 * rng.normal(size=(n, d)),
    "large": lambda rng, n, d: 1e100 * rng.normal(size=(n, d)),
    "counts": _counts,
    "sparse": _sparse,
    "far_counts": lambda rng, n, d: 1e8 + rng.poisson(50.0, size=(n, d)),
    "positive": lambda rng, n, d: np.exp(0.3 * _blobs(rng, n, d)),
    "tiny_positive": lambda rng, n, d: 1e-100 * rng.gamma(2.0, size=(n, d)),
    "large_positive": lambda rng, n, d: 1e100 * rng.gamma(2.0, size=(n, d)),
    "orders": lambda rng, n, d: 10.0 ** rng.uniform(-90.0, 90.0, size=(n, d)),
    "binary": _binary,
    "axes": _axes,
    "shares": lambda rng, n, d: rng.random(size=(n, d)),
    "thirds": lambda rng, n, d: rng.integers(4, size=(n, d)) / 3.0,
    "edges": lambda rng, n, d: rng.beta(0.1, 0.1, size=(n, d)),
    "tiny_shares": lambda rng, n, d: 1e-100 * rng.random(size=(n, d)),
}

_ON_THE_LINE = [
    ("normal", 2, 2), ("normal", 300, 1), ("blobs", 600, 2), ("grid", 500, 2), ("repeated", 400, 3),
    ("far", 300, 3), ("collinear", 250, 5), ("blobs", 500, 8), ("normal", 250, 9),
    ("blobs", 300, 12), ("grid", 150, 30), ("outlier", 700, 3), ("grid", 300, 1),
]  # fmt: skip
_OF_COUNTS = [
    ("positive", 300, 1), ("counts", 600, 2), ("sparse", 400, 9), ("grid", 500, 3),
    ("repeated", 400, 3), ("far_counts", 300, 2), ("tiny_positive", 200, 5),
    ("large_positive", 200, 3), ("counts", 500, 8), ("positive", 250, 9), ("counts", 300, 12),
    ("sparse", 200, 30), ("positive", 2, 3),
]  # fmt: skip
# The data sets of each family, used in turn.
SETS = {
    "spherical_gaussian": [*_ON_THE_LINE, ("tiny", 250, 5), ("large", 250, 3), ("blobs", 2000, 5)],
    "gaussian": [*_ON_THE_LINE, ("tiny", 120, 3)],
    "poisson": _OF_COUNTS,
    "multinomial": _OF_COUNTS,
    "bernoulli": [
        ("shares", 300, 1), ("shares", 600, 2), ("shares", 400, 5), ("thirds", 500, 5),
        ("edges", 300, 3), ("binary", 500, 8), ("shares", 250, 9), ("binary", 400, 12),
        ("binary", 200, 30), ("tiny_shares", 200, 5), ("shares", 3, 2),
    ],
    "exponential": [
        ("positive", 300, 1), ("positive", 600, 2), ("grid", 500, 2), ("repeated", 400, 3),
        ("orders", 200, 3), ("tiny_positive", 200, 5), ("large_positive", 250, 5),
        ("positive", 500, 8), ("positive", 250, 9), ("orders", 300, 12), ("grid", 200, 30),
        ("far_counts", 300, 2), ("positive", 3, 1),
    ],
    "diagonal_gaussian": [*_ON_THE_LINE, ("tiny", 120, 3)],
    "von_mises_fisher": [
        *_ON_THE_LINE, ("axes", 400, 3), ("tiny", 250, 5), ("large", 250, 3), ("axes", 300, 12),
        ("blobs", 2000, 5),
    ],
}  # fmt: skip


# Functions of a case.


def tree_case(
    family: Any,
    data: tuple[str, int, int],
    algorithm: str = "auto",
    neighbors: str = "auto",
    *,
    weights: str | None = None,
    **options: Any,
) -> Case:
    """A tree by `linkage`; the name lists all options given."""
    kind, n, d = data
    given = {"weights": weights, **options}
    words = [_label(family), algorithm, neighbors, kind, f"{n}x{d}"]
    words += [f"{key}={value}" for key, value in given.items() if value is not None]

    def compute() -> Results:
        X = rows_of(kind, n, d)
        sample_weight = None if weights is None else WEIGHTS[weights](np.random.default_rng(n), n)
        tree = fastrbhc.linkage(
            X,
            family,
            algorithm=algorithm,
            neighbors=neighbors,
            sample_weight=sample_weight,
            **{"n_jobs": 1, **options},
        )
        results = {"rows": X, "merges": tree.merges, "heights": tree.heights}
        if sample_weight is not None:
            results["weights"] = tree.weights
        return results if tree.audit is None else results | _audit(tree.audit)

    return Case("-".join(words), compute)


WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "whole": lambda rng, n: 1.0 + rng.integers(5, size=n),
    "real": lambda rng, n: rng.uniform(0.01, 100.0, size=n),
    "some_zero": lambda rng, n: 1.0 * rng.integers(4, size=n),
}


def _label(record: Any) -> str:
    if isinstance(record, str):
        return record
    given = record._asdict().items()
    parameters = ",".join(
        f"{key}={value}" for key, value in given if value != record._field_defaults[key]
    )
    return f"{type(record).__name__}({parameters})"


def _audit(report: Any) -> Results:
    """All numbers in a report on reducibility: counts, and the others."""
    worst = (0.0, -1, -1) if report.worst is None else report.worst
    departure = -1 if report.departure is None else report.departure
    figures = [
        ("exact", "sample", "proof").index(report.method), report.triples, report.violations,
        report.consequential, report.premises, report.inversions, report.certified, departure,
        *worst[1:],
    ]  # fmt: skip
    bands = [number for band in (*report.by_height, *report.by_size) for number in band]
    return {
        "audit_counts": np.append(np.array(figures, np.int64), report.counts),
        "audit_deficits": np.concatenate([[worst[0]], bands, report.deficits]),
    }


def bhc_case(model: Any, data: tuple[str, int, int], alpha: float, n_jobs: int = 0) -> Case:
    """A tree by `bhc_linkage`, and the evidence of its merges."""

    def compute() -> Results:
        X = rows_of(*data)
        tree = fastrbhc.bhc_linkage(X, model, alpha, hyperparameters="data", n_jobs=n_jobs or 1)
        parts = (tree.log_hypotheses, tree.log_trees, tree.log_gammas, [tree.log_evidence])
        return {
            "rows": X,
            "merges": tree.merges,
            "heights": tree.heights,
            "evidence": np.concatenate(parts),
        }

    kind, n, d = data
    name = f"bhc-{_label(model)}-{kind}-{n}x{d}-alpha={alpha}"
    return Case(f"{name}-n_jobs={n_jobs}" if n_jobs else name, compute)


def values_case(
    what: str, family: Any, data: tuple[str, int, int], function: Callable[[np.ndarray], Any]
) -> Case:
    """Numbers that a function computes from rows."""

    def compute() -> Results:
        X = rows_of(*data)
        return {"rows": X, "values": np.atleast_1d(function(X))}

    kind, n, d = data
    return Case(f"{what}-{_label(family)}-{kind}-{n}x{d}", compute)


def _between_groups(measure: Callable[..., float], family: Any, X: np.ndarray) -> list[float]:
    """For single rows, small groups, and groups of very different size."""
    ends = ((0, 1, 2), (0, 3, 8), (5, 6, 40), (0, 20, 40))
    return [measure(X[a:b], X[b:c], family) for a, b, c in ends]


def _predicted(family: Any, X: np.ndarray, **options: Any) -> np.ndarray:
    """Labels of half of the rows by the heuristic, and predicted labels of the others."""
    half = len(X) // 2
    model = fastrbhc.RBHC(family, threshold="kmeans", random_state=0, n_jobs=1, **options)
    model.fit(X[:half])
    return np.concatenate([model.labels_, model.predict(X[half:])])


def _sparse_heights(family: Any, X: np.ndarray) -> np.ndarray:
    return fastrbhc.linkage(sparse.csr_array(X), family, n_jobs=1).heights


# The catalogue.


def catalogue() -> list[Case]:
    """All cases; their names are unique."""
    cases = [
        *_plain(), *_records(), *_further(), *_options(), *_audits(), *_many_rows(), *_bhc(),
        *_values(),
    ]  # fmt: skip
    assert len({case.name for case in cases}) == len(cases)
    return cases


def _plain() -> Iterator[Case]:
    """Every family with every algorithm and backend, each on the next few of its data sets."""
    for family, sets in SETS.items():
        reducible = families.as_family(family).reducible
        algorithms = ["greedy", "nn_chain", *(["levels"] if reducible else []), "auto"]
        ways = [(a, b) for a in algorithms for b in ("brute", "kd_tree", "auto")]
        data = cycle(sets)
        for algorithm, neighbors in ways:
            count = 2 if "auto" in (algorithm, neighbors) else 4
            for one in islice(data, count):
                yield tree_case(family, one, algorithm, neighbors)


def _records() -> Iterator[Case]:
    """Parameters other than the defaults."""
    for record, data, *way in (
        (families.SphericalGaussian(2.5), ("blobs", 300, 3)),
        (families.SphericalGaussian(1e-200), ("tiny", 200, 2), "greedy", "kd_tree"),
        (families.Gaussian(1e-6), ("blobs", 300, 2), "greedy", "kd_tree"),
        (families.Gaussian(1.0), ("blobs", 250, 5), "nn_chain", "brute"),
        (families.Gaussian(1e-202), ("tiny", 150, 3), "greedy", "brute"),
        (families.Gaussian(1e198), ("large", 150, 3), "greedy", "kd_tree"),
        (families.Poisson(0.0), ("sparse", 300, 3), "greedy", "kd_tree"),
        (families.Poisson(5.0), ("counts", 300, 9), "greedy", "brute"),
        (families.Multinomial(0.0), ("sparse", 200, 5), "greedy", "brute"),
        (families.Multinomial(0.5), ("counts", 300, 3), "nn_chain", "kd_tree"),
        (families.Multinomial(weight_by_total=False), ("counts", 300, 5), "greedy", "kd_tree"),
        (families.Bernoulli(0.0), ("binary", 300, 5), "greedy", "kd_tree"),
        (families.Bernoulli(0.4), ("shares", 250, 12), "nn_chain", "brute"),
        (families.Exponential(0.5), ("sparse", 250, 5), "greedy", "kd_tree"),
        (families.Exponential(0.5), ("counts", 250, 9), "greedy", "brute"),
        (families.DiagonalGaussian(1e-6), ("blobs", 300, 2), "greedy", "kd_tree"),
        (families.DiagonalGaussian(1.0), ("blobs", 250, 5), "nn_chain", "brute"),
        (families.DiagonalGaussian(1e-202), ("tiny", 150, 3), "greedy", "brute"),
        (families.DiagonalGaussian(1e198), ("large", 150, 3), "greedy", "kd_tree"),
        (families.VonMisesFisher(5.0), ("blobs", 300, 3)),
        (families.VonMisesFisher(1e-100), ("normal", 200, 2), "greedy", "kd_tree"),
    ):
        yield tree_case(record, data, *way)


def _further() -> Iterator[Case]:
    """Families whose geometries those above have too: three trees of each, and d of groups."""
    of_counts = [("counts", 500, 8), ("sparse", 300, 3), ("counts", 300, 12)]
    positive = [("positive", 500, 3), ("grid", 300, 2), ("positive", 250, 12)]
    for record, sets in (
        (families.NegativeBinomial(), of_counts),
        (families.NegativeBinomial(2.5, 0.5), of_counts),
        (families.Geometric(), of_counts),
        (families.Binomial(), [("shares", 500, 3), ("thirds", 300, 2), ("binary", 250, 12)]),
        (families.Binomial(1e4), of_counts),
        (families.Gamma(), positive),
        (families.Gamma(2.5, 0.5), of_counts),
        (families.InverseGaussian(), positive),
        (families.InverseGaussian(2.5, 0.5), of_counts),
        (families.LogNormal(), positive),
        (families.Weibull(), positive),
        (families.Weibull(1.5, 0.5), of_counts),
        (families.Rayleigh(), positive),
        (families.Pareto(1e-3), positive),
    ):
        ways = ("greedy", "kd_tree"), ("nn_chain", "brute"), ("auto", "auto")
        for data, way in zip(sets, ways, strict=True):
            yield tree_case(record, data, *way)
        for measure in (fastrbhc.dissimilarity, fastrbhc.taylor_dissimilarity):
            between = partial(_between_groups, measure, record)
            yield values_case(measure.__name__, record, (sets[0][0], 40, 3), between)
        yield values_case("labels", record, (sets[0][0], 200, 3), partial(_predicted, record))


def _options() -> Iterator[Case]:
    """Thresholds and weights."""
    for family, data, algorithm, neighbors, options in (
        ("spherical_gaussian", ("blobs", 600, 2), "auto", "auto", {"threshold": 3.0}),
        ("spherical_gaussian", ("normal", 250, 9), "levels", "brute", {"threshold": 3.0}),
        ("spherical_gaussian", ("grid", 500, 2), "nn_chain", "kd_tree", {"threshold": 1.0}),
        ("spherical_gaussian", ("grid", 500, 2), "greedy", "kd_tree", {"threshold": 0.0}),
        ("gaussian", ("blobs", 600, 2), "greedy", "kd_tree", {"threshold": 8.0}),
        ("gaussian", ("blobs", 300, 12), "nn_chain", "brute", {"threshold": 60.0}),
        ("poisson", ("counts", 500, 8), "greedy", "kd_tree", {"threshold": 10.0}),
        ("poisson", ("sparse", 200, 30), "nn_chain", "brute", {"threshold": 5.0}),
        ("multinomial", ("counts", 300, 12), "greedy", "brute", {"threshold": 10.0}),
        ("bernoulli", ("binary", 500, 8), "nn_chain", "kd_tree", {"threshold": 2.0}),
        ("exponential", ("positive", 600, 2), "greedy", "kd_tree", {"threshold": 0.5}),
        ("spherical_gaussian", ("blobs", 600, 2), "auto", "auto", {"weights": "real"}),
        ("spherical_gaussian", ("grid", 500, 2), "levels", "brute", {"weights": "whole"}),
        ("spherical_gaussian", ("repeated", 400, 3), "greedy", "brute", {"weights": "some_zero"}),
        ("gaussian", ("blobs", 300, 2), "greedy", "kd_tree", {"weights": "real"}),
        ("gaussian", ("repeated", 200, 3), "greedy", "brute", {"weights": "some_zero"}),
        ("poisson", ("counts", 300, 5), "greedy", "kd_tree", {"weights": "some_zero"}),
        ("multinomial", ("counts", 300, 5), "nn_chain", "brute", {"weights": "real"}),
        ("bernoulli", ("thirds", 500, 5), "greedy", "kd_tree", {"weights": "whole"}),
        ("bernoulli", ("binary", 400, 12), "nn_chain", "brute", {"weights": "some_zero"}),
        ("exponential", ("positive", 250, 9), "greedy", "brute", {"weights": "real"}),
        ("poisson", ("counts", 300, 5), "greedy", "brute", {"weights": "real", "threshold": 90.0}),
        ("diagonal_gaussian", ("blobs", 600, 2), "greedy", "kd_tree", {"threshold": 8.0}),
        ("diagonal_gaussian", ("blobs", 300, 12), "nn_chain", "brute", {"threshold": 60.0}),
        ("diagonal_gaussian", ("blobs", 300, 2), "greedy", "kd_tree", {"weights": "real"}),
        ("diagonal_gaussian", ("repeated", 200, 3), "greedy", "brute", {"weights": "some_zero"}),
        ("diagonal_gaussian", ("grid", 500, 2), "nn_chain", "kd_tree", {"weights": "whole"}),
        ("von_mises_fisher", ("blobs", 600, 2), "auto", "auto", {"threshold": 0.5}),
        ("von_mises_fisher", ("normal", 250, 9), "levels", "brute", {"threshold": 1.0}),
        ("von_mises_fisher", ("grid", 500, 2), "nn_chain", "kd_tree", {"threshold": 0.01}),
        ("von_mises_fisher", ("blobs", 600, 2), "auto", "auto", {"weights": "real"}),
        ("von_mises_fisher", ("axes", 300, 12), "levels", "brute", {"weights": "whole"}),
        ("von_mises_fisher", ("repeated", 400, 3), "greedy", "brute", {"weights": "some_zero"}),
    ):
        yield tree_case(family, data, algorithm, neighbors, **options)


def _audits() -> Iterator[Case]:
    """Reports on reducibility, most of them with violations."""
    for family, data, algorithm, neighbors, audit in (
        ("spherical_gaussian", ("grid", 300, 2), "auto", "auto", True),
        ("spherical_gaussian", ("blobs", 300, 3), "nn_chain", "kd_tree", True),
        ("gaussian", ("blobs", 300, 2), "greedy", "kd_tree", True),
        ("gaussian", ("blobs", 150, 9), "nn_chain", "brute", True),
        ("gaussian", ("normal", 300, 3), "greedy", "auto", "sample"),
        ("poisson", ("edges", 250, 9), "greedy", "kd_tree", True),
        ("poisson", ("binary", 250, 12), "nn_chain", "brute", True),
        ("multinomial", ("binary", 500, 8), "greedy", "kd_tree", True),
        ("multinomial", ("binary", 200, 30), "nn_chain", "brute", True),
        ("bernoulli", ("binary", 500, 8), "greedy", "kd_tree", True),
        ("bernoulli", ("binary", 200, 30), "nn_chain", "brute", True),
        ("exponential", ("positive", 250, 2), "nn_chain", "kd_tree", True),
        ("exponential", ("positive", 200, 9), "greedy", "brute", True),
        ("exponential", ("positive", 250, 2), "greedy", "brute", "sample"),
        ("diagonal_gaussian", ("blobs", 300, 2), "greedy", "kd_tree", True),
        ("diagonal_gaussian", ("blobs", 150, 9), "nn_chain", "brute", True),
        ("diagonal_gaussian", ("normal", 300, 3), "greedy", "auto", "sample"),
        ("von_mises_fisher", ("grid", 300, 2), "auto", "auto", True),
        ("von_mises_fisher", ("blobs", 300, 3), "nn_chain", "kd_tree", True),
    ):
        yield tree_case(family, data, algorithm, neighbors, audit=audit)


# Trees that are large enough for a second thread, or for kernels that know the number of columns.
BY_THREADS = (
    ("spherical_gaussian", ("blobs", 6000, 2), "auto", "auto"),
    ("spherical_gaussian", ("normal", 6000, 3), "greedy", "kd_tree"),
    ("spherical_gaussian", ("blobs", 1600, 12), "levels", "brute"),
    ("gaussian", ("blobs", 2100, 5), "greedy", "kd_tree"),
    ("gaussian", ("blobs", 1500, 9), "greedy", "brute"),
    ("poisson", ("positive", 6000, 3), "greedy", "kd_tree"),
    ("poisson", ("counts", 1600, 9), "greedy", "brute"),
    ("multinomial", ("counts", 1500, 12), "nn_chain", "brute"),
    ("exponential", ("positive", 2100, 5), "nn_chain", "kd_tree"),
    ("diagonal_gaussian", ("blobs", 2100, 5), "greedy", "kd_tree"),
    ("diagonal_gaussian", ("blobs", 1500, 9), "greedy", "brute"),
    ("von_mises_fisher", ("blobs", 6000, 3), "auto", "auto"),
    ("von_mises_fisher", ("normal", 6000, 3), "greedy", "kd_tree"),
    ("von_mises_fisher", ("blobs", 1600, 12), "levels", "brute"),
)


def _many_rows() -> Iterator[Case]:
    for family, data, algorithm, neighbors in BY_THREADS:
        for n_jobs in (1, 2):
            yield tree_case(family, data, algorithm, neighbors, n_jobs=n_jobs)
    for family, data, algorithm in (
        ("spherical_gaussian", ("grid", 9000, 2), "levels"),
        ("spherical_gaussian", ("blobs", 6000, 2), "nn_chain"),
        ("gaussian", ("blobs", 6000, 2), "greedy"),
        ("gaussian", ("blobs", 6000, 2), "nn_chain"),
        ("multinomial", ("positive", 6000, 3), "greedy"),
        ("bernoulli", ("shares", 6000, 2), "greedy"),
        ("exponential", ("positive", 6000, 2), "nn_chain"),
        ("diagonal_gaussian", ("blobs", 6000, 2), "greedy"),
        ("diagonal_gaussian", ("blobs", 6000, 2), "nn_chain"),
        ("von_mises_fisher", ("grid", 9000, 2), "levels"),
        ("von_mises_fisher", ("blobs", 6000, 2), "nn_chain"),
    ):
        yield tree_case(family, data, algorithm, "kd_tree")


def _bhc() -> Iterator[Case]:
    for model, data, alpha in (
        ("gaussian", ("blobs", 200, 2), 1.0),
        ("gaussian", ("normal", 120, 5), 0.1),
        ("gaussian", ("blobs", 150, 12), 1.0),
        ("diagonal_gaussian", ("blobs", 200, 3), 1.0),
        ("diagonal_gaussian", ("grid", 200, 2), 10.0),
        ("diagonal_gaussian", ("repeated", 150, 9), 0.1),
        ("poisson", ("counts", 200, 3), 1.0),
        ("poisson", ("sparse", 150, 12), 0.1),
        (bhc.GammaPoisson(shape=2.0, rate=0.1), ("counts", 200, 5), 1.0),
        ("multinomial", ("counts", 200, 3), 1.0),
        ("multinomial", ("sparse", 150, 30), 10.0),
        ("bernoulli", ("binary", 200, 9), 1.0),
        ("bernoulli", ("binary", 150, 30), 0.1),
        ("geometric", ("counts", 200, 3), 1.0),
        (bhc.BetaGeometric(yes=2.0, no=9.0), ("sparse", 150, 12), 0.1),
        ("exponential", ("positive", 200, 3), 1.0),
        ("von_mises_fisher", ("blobs", 200, 3), 1.0),
        ("von_mises_fisher", ("normal", 150, 12), 0.1),
        (bhc.GammaExponential(shape=2.0, waited=9.0), ("grid", 150, 12), 0.1),
    ):
        yield bhc_case(model, data, alpha)
    for n_jobs in (1, 2):
        yield bhc_case("diagonal_gaussian", ("blobs", 700, 3), 1.0, n_jobs)


def _values() -> Iterator[Case]:
    for family, data in (
        ("spherical_gaussian", ("blobs", 40, 3)),
        ("gaussian", ("blobs", 40, 3)),
        ("poisson", ("counts", 40, 5)),
        ("multinomial", ("counts", 40, 5)),
        ("bernoulli", ("shares", 40, 9)),
        ("exponential", ("positive", 40, 3)),
        ("diagonal_gaussian", ("blobs", 40, 3)),
        ("von_mises_fisher", ("blobs", 40, 3)),
    ):
        for measure in (fastrbhc.dissimilarity, fastrbhc.taylor_dissimilarity):
            between = partial(_between_groups, measure, family)
            yield values_case(measure.__name__, family, data, between)
    for family, data in (
        ("poisson", ("counts", 200, 5)),
        ("gaussian", ("blobs", 200, 3)),
        ("diagonal_gaussian", ("blobs", 200, 3)),
        ("von_mises_fisher", ("blobs", 200, 5)),
    ):
        yield values_case("labels", family, data, partial(_predicted, family))
        few = partial(_predicted, family, n_clusters=4)
        yield values_case("labels_of_four", family, data, few)
    yield values_case(
        "sparse_matrix", "poisson", ("sparse", 200, 12), partial(_sparse_heights, "poisson")
    )
    # Few enough rows for k-means to sum them in one piece; several would be summed in any order.
    for family, data in (
        ("spherical_gaussian", ("normal", 200, 2)),
        ("gaussian", ("blobs", 200, 3)),
        ("poisson", ("counts", 200, 5)),
        ("diagonal_gaussian", ("blobs", 200, 3)),
        ("von_mises_fisher", ("blobs", 200, 5)),
    ):
        yield values_case("kmeans_threshold", family, data, partial(_kmeans_threshold, family))
        yield values_case("thresholds_of_tree", family, data, partial(_of_tree, family))


def _kmeans_threshold(family: str, X: np.ndarray) -> float:
    return fastrbhc.kmeans_threshold(X, family, 5, random_state=0)


def _of_tree(family: str, X: np.ndarray) -> list[float]:
    tree = fastrbhc.linkage(X, family, n_jobs=1)
    gap = fastrbhc.gap_threshold(tree)
    return [gap, fastrbhc.evidence_threshold(tree, family, n_features=X.shape[1])]


# Digests.


def digests_of(results: Results) -> dict[str, str]:
    """The digest of the numbers of each result."""
    return {name: _digest(values) for name, values in results.items()}


def _digest(values: Any) -> str:
    given = np.asarray(values)
    numbers = given.astype(np.float64 if given.dtype.kind == "f" else np.int64)
    return hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]


def circumstances() -> dict[str, str]:
    """Everything outside this package that the last bit of any case may depend on.

    Logarithms come from the system's library, which has different code for different processors; a
    few of its values identify it.
    """
    x = np.random.default_rng(0).gamma(0.5, 20.0, size=(64, 12))
    logarithms = [[math.log(v), math.log1p(v), math.exp(-v), math.lgamma(v)] for v in x.flat]
    versions = {library: version(library) for library in LIBRARIES}
    return {"machine": platform.machine(), "logarithms": _digest(np.array(logarithms)), **versions}


def linear_algebra() -> str:
    """Identifies the code of BLAS and LAPACK, which also differs from processor to processor."""
    x = np.random.default_rng(0).gamma(0.5, 20.0, size=(64, 12))
    return _digest(np.concatenate([np.ravel(x.T @ x), np.ravel(np.linalg.eigh(x.T @ x)[1])]))


def uses_linear_algebra(name: str) -> bool:
    """Whether a case depends on BLAS: covariances of all rows, and k-means."""
    return name.startswith(("bhc-gaussian", "thresholds"))


def main() -> None:
    """Write the file again."""
    digests = {case.name: digests_of(case.compute()) for case in catalogue()}
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in digests.items()]
    body = ",\n".join(lines)
    made, blas = json.dumps(circumstances()), json.dumps(linear_algebra())
    head = f'"circumstances": {made},\n"linear_algebra": {blas},\n'
    DIGESTS.write_text(f'{{\n{head}"cases": {{\n{body}\n}}\n}}\n')


if __name__ == "__main__":
    main()
