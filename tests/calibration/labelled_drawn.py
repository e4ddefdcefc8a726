"""Labelled rows that are drawn: blobs, counts, topics, zeros and ones, mixtures of the paper.

Each function takes a word that stands for the seed, and returns rows and the cluster of each.
"""

from __future__ import annotations

import zlib

import numpy as np
from sklearn.datasets import make_circles, make_moons

from fastrbhc.experiments._mixtures import MIXTURES


def generator(word):
    """A generator whose seed is a word: the same one in every process."""
    return np.random.default_rng(zlib.crc32(word.encode()))


def blobs(word, n_clusters, n_columns, distance, n_rows, uneven=False, stretched=False):
    """Normal clusters; the coordinates of their means have the standard deviation ``distance``."""
    rng = generator(word)
    means = distance * rng.normal(size=(n_clusters, n_columns))
    labels = rng.choice(n_clusters, n_rows, p=_shares(rng, n_clusters, uneven))
    X = np.empty((n_rows, n_columns))
    for cluster in range(n_clusters):
        axes = np.eye(n_columns)
        if stretched:
            rotation = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0]
            axes = rotation * np.exp(rng.normal(0.0, 0.6, n_columns))
        own = labels == cluster
        X[own] = means[cluster] + rng.normal(size=(own.sum(), n_columns)) @ axes
    return X, labels


def long_tailed_blobs(word, n_clusters, n_columns, distance, n_rows, degrees):
    """Like blobs, but each column of a cluster follows Student's t distribution."""
    rng = generator(word)
    means = distance * rng.normal(size=(n_clusters, n_columns))
    labels = rng.integers(n_clusters, size=n_rows)
    return means[labels] + rng.standard_t(degrees, size=(n_rows, n_columns)), labels


def lognormal_blobs(word, n_clusters, n_columns, distance, n_rows):
    """Exponentials of half of blobs: clusters are skewed, and wider where values are larger."""
    X, labels = blobs(word, n_clusters, n_columns, distance, n_rows)
    return np.exp(0.5 * X), labels


def apart_in_some(word, n_clusters, n_columns, n_apart, distance, n_rows, uneven=False):
    """Normal clusters that differ in some columns only, in which neighbours are ``distance`` apart.

    All columns have another unit each.
    """
    rng = generator(word)
    labels = rng.choice(n_clusters, n_rows, p=_shares(rng, n_clusters, uneven))
    X = rng.normal(size=(n_rows, n_columns))
    for column in range(n_apart):
        X[:, column] += distance * rng.permutation(n_clusters)[labels]
    return X * rng.lognormal(0.0, 1.0, n_columns), labels


def counts(word, n_clusters, n_columns, n_rows, shape=None, mean=20.0):
    """Poisson counts, or negative binomial ones, which vary more the smaller ``shape`` is."""
    rng = generator(word)
    means = rng.gamma(2.0, mean / 2.0, (n_clusters, n_columns))
    labels = rng.integers(n_clusters, size=n_rows)
    rates = means[labels]
    if shape is not None:
        rates = rng.gamma(shape, rates / shape)
    return rng.poisson(rates).astype(float), labels


def topics(word, n_clusters, n_words, n_rows, length, concentration, shape=None):
    """Words of documents with one topic each.

    With a ``shape`` the lengths are negative binomial, and each document has its own shares.
    """
    rng = generator(word)
    shares = rng.dirichlet(np.full(n_words, concentration), n_clusters)
    labels = rng.integers(n_clusters, size=n_rows)
    own = shares[labels]
    if shape is None:
        lengths = rng.poisson(length, n_rows)
    else:
        lengths = rng.negative_binomial(shape, shape / (shape + length), n_rows)
        own = np.array([rng.dirichlet(60.0 * row + 1e-3) for row in own])
    lengths = np.maximum(5, lengths)
    rows = [rng.multinomial(n, row / row.sum()) for n, row in zip(lengths, own, strict=True)]
    return np.array(rows, dtype=float), labels


def binary(word, n_clusters, n_columns, n_rows, concentration):
    """Zeros and ones; the share of ones in each column of a cluster follows a beta distribution."""
    rng = generator(word)
    shares = rng.beta(concentration, concentration, (n_clusters, n_columns))
    labels = rng.integers(n_clusters, size=n_rows)
    return (rng.random((n_rows, n_columns)) < shares[labels]).astype(float), labels


def mixture(word, name):
    """A mixture of the paper's Table 2."""
    return MIXTURES[name].draw(generator(word))


def moons(noise):
    return make_moons(600, noise=noise, random_state=1)


def circles(noise):
    return make_circles(600, noise=noise, factor=0.4, random_state=1)


def _shares(rng, n_clusters, uneven):
    """Shares of the clusters; a generator is asked for numbers only if they are uneven."""
    if uneven:
        return rng.dirichlet(np.full(n_clusters, 2.0))
    return np.full(n_clusters, 1.0 / n_clusters)
