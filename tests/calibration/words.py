"""Measure how often clusters of sparse rows are called stable, in noise and with topics.

    PYTHONPATH=tests python -m calibration.words --draws 16

Rows are texts of a vocabulary in which the r-th word has a frequency proportional to 1/r.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy import sparse

import fastrbhc
from fastrbhc.families._draws import sparse_binary, sparse_multinomial, sparse_poisson

ROWS, WORDS, CUTS = 300, 5_000, (2, 3, 5, 8)
FREQUENCIES = 1.0 / np.arange(1.0, WORDS + 1.0)
FREQUENCIES /= FREQUENCIES.sum()


def texts(rng):
    return sparse_multinomial(np.full(ROWS, 40), FREQUENCIES, rng)


def uneven_texts(rng):
    return sparse_multinomial(3 + rng.poisson(rng.lognormal(3.0, 0.8, ROWS)), FREQUENCIES, rng)


def bursty_texts(rng):
    """A word that a text has already is more likely to come again (Pólya's urn)."""
    totals = 3 + rng.poisson(rng.lognormal(3.0, 0.5, ROWS))
    columns = [_words(rng, FREQUENCIES, total) for total in totals]
    for words in columns:
        for place in range(1, words.size):
            if rng.random() < place / (place + 40.0):
                words[place] = words[rng.integers(place)]
    return _counted(totals, np.concatenate(columns))


def counts(rng):
    return sparse_poisson(np.minimum(40.0 * FREQUENCIES, 5.0), ROWS, rng)


def binary(rng):
    return sparse_binary(np.minimum(12.0 * FREQUENCIES, 0.9), ROWS, rng)


def gradient(rng):
    """Mixtures of two topics, in proportions that are uniform."""
    topics = [rng.permutation(FREQUENCIES) for _ in range(2)]
    second = rng.random((ROWS, 60)) < rng.random((ROWS, 1))
    words = [_words(rng, topic, ROWS * 60) for topic in topics]
    return _counted(np.full(ROWS, 60), np.where(second.ravel(), words[1], words[0]))


def topics(rng):
    """Three topics, each with half of its words in common with the others."""
    mixed = [0.5 * FREQUENCIES + 0.5 * rng.permutation(FREQUENCIES) for _ in range(3)]
    totals = np.full(ROWS // 3, 60)
    return sparse.vstack([sparse_multinomial(totals, topic, rng) for topic in mixed], "csr")


def _words(rng, frequencies, n):
    return np.minimum(np.searchsorted(np.cumsum(frequencies), rng.random(n)), WORDS - 1)


def _counted(totals, words):
    rows = np.repeat(np.arange(totals.size), totals)
    return sparse.csr_array((np.ones(rows.size), (rows, words)), shape=(totals.size, WORDS))


NOISES = {
    "texts": ("multinomial", texts),
    "texts of uneven lengths": ("multinomial", uneven_texts),
    "texts with bursts": ("multinomial", bursty_texts),
    "Poisson": ("poisson", counts),
    "texts of uneven lengths, as Poisson counts": ("poisson", uneven_texts),
    "zeros and ones": ("bernoulli", binary),
    "a gradient between two topics": ("multinomial", gradient),
}


def verdicts(X, family, n_clusters):
    """The verdicts on the clusters of a cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = fastrbhc.linkage(X, family)
        return tree.stability(X, n_clusters=n_clusters).verdicts


def show(name, family, found):
    print(
        f"{name + ', ' + family:60} {found.count('stable'):3} of {len(found):4} clusters stable, "
        f"{found.count('doubtful'):3} doubtful",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=16, help="data sets of each population")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, (family, draw) in NOISES.items():
        found = []
        for which in range(options.draws):
            rng = np.random.default_rng((options.seed, which))
            found += verdicts(draw(rng), family, int(rng.choice(CUTS)))
        show(name, family, found)
    found = []
    for which in range(options.draws):
        found += verdicts(topics(np.random.default_rng((options.seed, which))), "multinomial", 3)
    show("three topics", "multinomial", found)


if __name__ == "__main__":
    main()
