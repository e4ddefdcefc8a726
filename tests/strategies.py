"""Data sets in the domain of a family, drawn by Hypothesis.

The domain is read from the family, so that new families are tested automatically. Values that
should have no ties come from a seeded generator: Hypothesis picks the seed and the shape.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from fastrbhc.families import as_family, registered

# Families that need to know which column is which have tests of their own.
ALL_FAMILIES = sorted(
    {
        cls.name
        for cls in registered().values()
        if cls.__module__.startswith("fastrbhc.") and not hasattr(cls, "place")
    }
)
# Fewer families if they do not differ in what is tested: see the Makefile.
FAMILIES = os.environ.get("TEST_FAMILIES", " ".join(ALL_FAMILIES)).split()
REDUCIBLE = [name for name in FAMILIES if as_family(name).reducible]
ON_THE_WHOLE_LINE = [name for name in ALL_FAMILIES if np.isinf(as_family(name).domain.lower)]
# Rows with a direction depend on the origin.
TRANSLATION_INVARIANT = [
    name for name in ON_THE_WHOLE_LINE if not as_family(name).domain.needs_nonzero_row
]


class Data(NamedTuple):
    X: np.ndarray
    weights: np.ndarray | None = None


def fit_to_domain(Z, family):
    """Move numbers, most of them between −3 and 3, into the domain of a family."""
    domain = as_family(family).domain
    Z = np.asarray(Z, float)
    if np.isfinite(domain.lower) and np.isfinite(domain.upper):
        width = domain.upper - domain.lower
        return domain.lower + width * (0.5 + 0.5 * Z / max(3.0, np.abs(Z).max()))
    if np.isfinite(domain.lower):
        return domain.lower + np.exp(Z)
    return Z


def continuous_rows(family, n, d, seed):
    """n rows without ties, in three loose groups."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=1.2, size=(3, d))
    return fit_to_domain(centres[rng.integers(3, size=n)] + 0.5 * rng.normal(size=(n, d)), family)


def gridded_rows(counts, family):
    """Small integers as values of the domain; equal counts stay equal."""
    domain = as_family(family).domain
    counts = np.array(counts, float)
    if not domain.includes_lower:
        counts += 1.0
    if np.isfinite(domain.upper):
        return domain.lower + (domain.upper - domain.lower) * np.minimum(counts / 3.0, 1.0)
    if domain.needs_positive_total:
        counts[counts.sum(axis=1) == 0.0, 0] = 1.0
    values = counts + (domain.lower if np.isfinite(domain.lower) else -1.0)
    if domain.needs_nonzero_row:
        values[~values.any(axis=1), 0] = 2.0
    return values


def ordinary_rows(family, rng, n, d):
    """Shares, counts or positive numbers, whichever suit the domain; none at its ends."""
    domain = as_family(family).domain
    if np.isfinite(domain.upper):
        return domain.upper * rng.uniform(size=(n, d))
    if domain.takes_sparse:
        return rng.poisson(5.0, (n, d)) + 1.0
    return max(domain.lower, 0.0) + rng.gamma(2.0, 1.0, (n, d))


def tied_rows(family, n, d, seed):
    """n rows on a small grid: few different values, many ties."""
    return gridded_rows(np.random.default_rng(seed).integers(0, 4, size=(n, d)), family)


_shapes = st.tuples(st.integers(2, 25), st.integers(1, 4))
_seeds = st.integers(0, 2**32 - 1)


@st.composite
def continuous(draw, family):
    (n, d), seed = draw(_shapes), draw(_seeds)
    domain = as_family(family).domain
    if domain.needs_positive_total or domain.needs_nonzero_row:
        d = max(d, 2)  # the proportions, or the directions, of a single column are the same
    return Data(continuous_rows(family, n, d, seed))


@st.composite
def gridded(draw, family):
    shape = draw(_shapes)
    counts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 3)))
    return Data(gridded_rows(counts, family))


@st.composite
def repeated(draw, family):
    X = draw(st.one_of(continuous(family), gridded(family))).X
    rows = draw(st.lists(st.integers(0, len(X) - 1), min_size=2, max_size=25))
    return Data(X[rows])


@st.composite
def with_outlier(draw, family):
    X = draw(continuous(family)).X.copy()
    domain = as_family(family).domain
    X[0] = domain.upper if np.isfinite(domain.upper) else 1e4 * np.abs(X).max()
    return Data(X)


@st.composite
def collinear(draw, family):
    (n, d), rng = draw(_shapes), np.random.default_rng(draw(_seeds))
    Z = rng.uniform(-1.0, 1.0, size=(n, 1)) * rng.uniform(0.2, 1.0, size=d)
    domain = as_family(family).domain
    if np.isfinite(domain.upper):
        return Data(domain.lower + (domain.upper - domain.lower) * (0.5 + 0.5 * Z))
    return Data(Z + (domain.lower + 2.0 if np.isfinite(domain.lower) else 0.0))


@st.composite
def scaled(draw, family):
    """The same data in units from 1e-100 to 1e100, if the domain has no natural unit."""
    X = draw(continuous(family)).X
    bounded = np.isfinite(as_family(family).domain.upper)
    # Beyond that the textbook determinant of few rows, in floats, has too few digits to compare.
    largest = 100 if as_family(family).covariance == "none" else 3
    if hasattr(as_family(family), "transformed"):
        largest = 50  # squares of rows have to be in the range of rows
    origin = as_family(family).domain.lower
    origin = origin if np.isfinite(origin) else 0.0
    # Beside an origin other than 0, small differences would vanish.
    smallest = 0 if origin != 0.0 else -50 if largest == 50 else -100
    exponent = draw(st.integers(smallest, 0 if bounded else largest))
    return Data(origin + (X - origin) * 10.0**exponent)


@st.composite
def weighted(draw, family):
    X = draw(st.one_of(continuous(family), gridded(family), repeated(family))).X
    whole = st.integers(1, 5).map(float)
    real = st.floats(0.01, 100.0)
    weights = draw(hnp.arrays(np.float64, len(X), elements=st.one_of(whole, real)))
    return Data(X, weights)


def data_sets(family):
    """Any of the above."""
    kinds = (continuous, gridded, repeated, with_outlier, collinear, scaled, weighted)
    return st.one_of(*(kind(family) for kind in kinds))


def tied_data_sets(family):
    """Data in which many pairs are equally near."""
    return st.one_of(gridded(family), repeated(family))


def wide_counts(name, n, d, seed, per_row=30, groups=3):
    """Sparse whole numbers in groups, each with words of its own; zeros and ones for bernoulli."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    popular = rng.integers(d, size=(groups, 40))
    own = np.where(
        rng.random((n, per_row)) < 0.5,
        popular[group[:, None], rng.integers(40, size=(n, per_row))],
        (d * rng.random((n, per_row)) ** 3).astype(np.int64),
    )
    rows = np.repeat(np.arange(n), per_row)
    X = sparse.csr_array((np.ones(rows.size), (rows, own.ravel())), shape=(n, d))
    X.sum_duplicates()
    if np.isfinite(as_family(name).domain.upper):
        X.data[:] = 1.0
    return X
