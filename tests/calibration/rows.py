"""Rows without clusters, and rows with some, drawn from a generator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SIZES, COLUMNS, CUTS = (100, 200, 500, 1_000, 2_000, 5_000), (2, 3, 5, 10, 20), (2, 3, 5)


class Noise(NamedTuple):
    """One population: its name, the family of the tree, and a function (rng, n, d) → rows."""

    name: str
    family: str
    draw: object


class Case(NamedTuple):
    """One data set of noise, and a number of clusters to cut it into."""

    noise: Noise
    n: int
    n_columns: int
    n_clusters: int
    X: np.ndarray


def normal(rng, n, d):
    return rng.normal(size=(n, d))


def stretched(rng, n, d):
    """A normal population whose axes are not those of the columns, nor of the same length."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (rng.normal(size=(n, d)) * rng.lognormal(0.0, 0.8, d)) @ rotation


def uniform(rng, n, d):
    return rng.uniform(size=(n, d))


def uniform_box(rng, n, d):
    return rng.uniform(size=(n, d)) * rng.lognormal(0.0, 0.8, d)


def counts(rng, n, d):
    return rng.poisson(rng.choice([0.5, 1.0, 3.0, 10.0, 100.0]), (n, d)).astype(float)


def uneven_counts(rng, n, d):
    return rng.poisson(rng.lognormal(1.0, 1.0, d), (n, d)).astype(float)


def compositions(rng, n, d):
    total = rng.choice([5, 20, 100, 1_000])
    return rng.multinomial(total, rng.dirichlet(np.full(d, 3.0)), n).astype(float)


def uneven_compositions(rng, n, d):
    totals = 1 + rng.poisson(rng.lognormal(3.0, 1.0, n))
    return rng.multinomial(totals, rng.dirichlet(np.full(d, 3.0))).astype(float)


def binary(rng, n, d):
    return (rng.random((n, d)) < rng.uniform(0.1, 0.9, d)).astype(float)


def skewed(rng, n, d):
    return rng.exponential(size=(n, d))


def long_tailed(rng, n, d):
    return rng.standard_t(3, size=(n, d))


NOISES = (
    Noise("normal", "ward", normal),
    Noise("normal", "gaussian", normal),
    Noise("stretched normal", "ward", stretched),
    Noise("stretched normal", "gaussian", stretched),
    Noise("uniform", "ward", uniform),
    Noise("uniform", "gaussian", uniform),
    Noise("uniform in a box", "ward", uniform_box),
    Noise("Poisson", "poisson", counts),
    Noise("Poisson", "ward", counts),
    Noise("Poisson, uneven columns", "poisson", uneven_counts),
    Noise("multinomial", "multinomial", compositions),
    Noise("multinomial, uneven totals", "multinomial", uneven_compositions),
    Noise("exponential", "ward", skewed),
    Noise("Student's t, 3 degrees", "ward", long_tailed),
)


def draw_case(noise, seed, largest=SIZES[-1]):
    """A case whose size, number of columns and cut are drawn from the seed too."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([size for size in SIZES if size <= largest]))
    d, k = int(rng.choice(COLUMNS)), int(rng.choice(CUTS))
    X = noise.draw(rng, n, d)
    if noise.family == "multinomial":
        X = X[X.sum(axis=1) > 0.0]
    return Case(noise, n, d, k, X)


def separated(rng, n, d, distance, n_clusters=3):
    """Normal clusters of equal size, whose means are that many standard deviations apart."""
    means = np.zeros((n_clusters, d))
    means[np.arange(1, n_clusters), np.arange(n_clusters - 1)] = distance
    labels = np.arange(n) % n_clusters
    return means[labels] + rng.normal(size=(n, d)), labels
