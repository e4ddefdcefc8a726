"""Trials of reducibility: three clusters of one distribution, their d, and its Taylor value.

Trials come in chunks of fixed length, each with its own random numbers, so that the result depends
only on the seed: not on the number of threads nor, for the first trials of a longer run, on the
number of trials.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._dissimilarity import taylor_value
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import dissimilarity, merge, put_covariances
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.threads import Threads
from fastrbhc._validation import check_count
from fastrbhc.experiments._distributions import Distribution

# Trials per chunk: the overhead of a chunk is a few per cent.
CHUNK = 100

# Initial estimate of the time per chunk; the threads measure it.
_CHUNK_SECONDS = 0.02

# Slots of a trial: three clusters, and the true parameter.
_SLOTS = 4


class ClusterSizes(NamedTuple):
    """Sizes of clusters: uniform from smallest to largest rows.

    A row of scale β is the mean statistic of β independent rows, a draw from the scaled exponential
    family: the same mean, and 1/β of the covariance (paper, section 2.6).
    """

    smallest: int = 20
    largest: int = 100
    scale: int = 1


class Trials(NamedTuple):
    """The results, one value per trial."""

    exact: NDArray[np.float64]  # d of the first two clusters
    taylor: NDArray[np.float64]  # its Taylor value at the true mean
    not_reducible: NDArray[np.bool_]  # whether the three violate reducibility

    @property
    def relative_errors(self) -> NDArray[np.float64]:
        """2·|d − d̃|/(d + d̃), as in the paper; 0 if both are 0."""
        total = self.exact + self.taylor
        gap = np.abs(self.exact - self.taylor)
        return 2.0 * np.divide(gap, total, out=np.zeros_like(gap), where=total > 0.0)


def check_trials(trials: Any) -> int:
    """At least two trials, so that there are standard errors."""
    count = check_count(trials, "trials")
    if count < 2:
        raise ValueError(f"trials has to be at least 2, for standard errors, got {count}")
    return count


def check_seed(seed: Any) -> int:
    """A seed as an integer."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(f"seed has to be a whole number, got {seed!r}")
    if seed < 0:
        raise ValueError(f"seed has to be at least 0, got {seed}")
    return int(seed)


def run_trials(
    distribution: Distribution,
    trials: int,
    seed: int,
    stream: tuple[int, ...],
    n_threads: int,
    report: Callable[[int], None],
    sizes: ClusterSizes | None = None,
) -> Trials:
    """Run trials; ``stream`` identifies one of the streams of random numbers of the seed."""
    sizes = ClusterSizes() if sizes is None else sizes
    n_chunks = -(-trials // CHUNK)
    found = Trials(np.empty(trials), np.empty(trials), np.empty(trials, bool))
    geometry = distribution.family.geometry(distribution.n_features)

    def run_chunks(first: int, last: int, scratch: Any) -> None:
        for chunk in range(first, last):
            own = np.random.SeedSequence(seed, spawn_key=(*stream, chunk))
            rng = np.random.default_rng(own)
            clusters = _draw_clusters(distribution, geometry, rng, sizes)
            start, stop = chunk * CHUNK, min((chunk + 1) * CHUNK, trials)
            _measure(geometry, clusters, scratch, *(values[start:stop] for values in found))

    scratches = [new_scratch(geometry, distribution.n_features) for _ in range(n_threads)]
    with Threads(scratches) as threads:
        threads.run(
            run_chunks,
            n_chunks,
            _CHUNK_SECONDS,
            lambda begun: report(min(begun * CHUNK, trials)),
        )
    return found


def _draw_clusters(
    distribution: Distribution, geometry: Any, rng: np.random.Generator, sizes: ClusterSizes
) -> Clusters:
    """The clusters of a chunk, and in the fourth slot of each trial the true parameter."""
    family = distribution.family
    counts = sizes.scale * rng.integers(sizes.smallest, sizes.largest + 1, size=(CHUNK, 3))
    draw = distribution.draw(rng, counts.sum(axis=1))
    slots = np.arange(_SLOTS * CHUNK).reshape(CHUNK, _SLOTS)
    labels = np.append(np.repeat(slots[:, :3], counts.ravel()), slots[:, 3])
    weights = np.append(np.full(len(draw.rows), 1.0 / sizes.scale), np.ones(CHUNK))
    rows = weighted(family.observe(np.concatenate([draw.rows, draw.means])), weights)
    clusters = statistics.clusters_of_groups(geometry, rows, labels, slots.size)
    if draw.covariances is not None:
        put_covariances(geometry, clusters, slots[:, 3], draw.covariances)
    return clusters


@kernel
def _measure(geometry, clusters, scratch, exact, taylor, not_reducible):
    """Fill in the trials of a chunk. This merges their clusters."""
    for trial in range(exact.size):
        a = _SLOTS * trial
        b, x = a + 1, a + 2
        d_ab = dissimilarity(geometry, clusters, a, b, np.inf, scratch)
        d_ax = dissimilarity(geometry, clusters, a, x, np.inf, scratch)
        d_bx = dissimilarity(geometry, clusters, b, x, np.inf, scratch)
        exact[trial] = d_ab
        taylor[trial] = taylor_value(geometry, clusters, a, b, a + 3, scratch)
        # Let a and b be the nearest pair, as the definition of reducibility requires.
        if d_ax < d_ab and d_ax <= d_bx:
            b, x = x, b
            d_ab, d_ax = d_ax, d_ab
        elif d_bx < d_ab:
            a, x = x, a
            d_ab, d_bx = d_bx, d_ab
        merge(geometry, clusters, a, b, scratch)
        d_cx = dissimilarity(geometry, clusters, a, x, np.inf, scratch)
        not_reducible[trial] = d_cx < min(d_ax, d_bx)
