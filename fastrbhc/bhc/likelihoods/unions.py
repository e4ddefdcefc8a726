"""Unions of two clusters, or a single one, as the two Gaussian likelihoods see them."""

from __future__ import annotations

from fastrbhc._engine.clusters.record import difference
from fastrbhc._engine.jit import inlined_kernel

# Terms 1 + C, or pivots, are multiplied up to here before their logarithm is taken.
LARGE_PRODUCT = 1e100


@inlined_kernel
def weights_of_union(likelihood, clusters, i, j):
    """The weights of a squared step between two means, and of one from the prior; two shares.

    For the union of slots i and j, or slot i alone for j = −1. The steps are those of
    `steps_of_union`, and the shares are the parts that i and j have in the union.
    """
    w0 = clusters.weights[i]
    w1 = clusters.weights[j] if j >= 0 else 0.0
    size = w0 + w1
    from_prior = likelihood.strength * size / (likelihood.strength + size)
    return w0 * w1 / size, from_prior, w0 / size, w1 / size


@inlined_kernel
def steps_of_union(likelihood, clusters, i, j, k, share0, share1):
    """In column k, from the mean of i to that of j, and from the prior's to that of both."""
    prior = likelihood.prior_mean[k]
    away0 = (clusters.means[k, i] - prior) + clusters.residuals[k, i]
    if j < 0:
        return 0.0, away0
    away1 = (clusters.means[k, j] - prior) + clusters.residuals[k, j]
    return difference(clusters, i, j, k), share0 * away0 + share1 * away1
