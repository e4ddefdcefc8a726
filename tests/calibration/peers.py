"""Other methods that choose the number of clusters, on rows that suit them."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

import fastrbhc

_NUMBERS_OF_KMEANS = (*range(2, 13), 15, 20, 25, 30)
_NUMBERS_OF_MIXTURES = (*range(1, 11), 12, 15, 20)
# The most columns of a mixture with full covariances, and how many axes stand for more.
_MOST_COLUMNS, _AXES = 60, 30


def suitable(X, family):
    """Standardised measurements, roots of counts and of shares; zeros and ones as they are."""
    if family == "auto":
        return (X - X.mean(axis=0)) / X.std(axis=0)
    if family == "poisson":
        return np.sqrt(X)
    if family == "multinomial":
        return np.sqrt(X / X.sum(axis=1, keepdims=True))
    return X


def labels_of_peers(X, family, n_classes):
    """Labels by each method; two of them, for comparison, are told the number of classes."""
    rows = suitable(X, family)
    tree = fastrbhc.linkage(rows, "ward")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mixtures that do not converge, and of empty clusters
        return {
            "ward_gap": tree.cut(threshold=fastrbhc.gap_threshold(tree)),
            "kmeans_silhouette": kmeans_by_silhouette(rows),
            "gaussian_mixture_bic": mixture_by_bic(rows),
            "hdbscan": HDBSCAN(min_cluster_size=max(5, len(rows) // 50)).fit_predict(rows),
            "ward_told_k": tree.cut(n_clusters=n_classes),
            "kmeans_told_k": kmeans(rows, n_classes),
        }


def kmeans(X, n_clusters):
    return KMeans(n_clusters, n_init=3, random_state=0).fit_predict(X)


def kmeans_by_silhouette(X):
    """The number of clusters with the largest mean silhouette, of a sample of 1,000 rows."""

    def silhouette(labels):
        return silhouette_score(X, labels, sample_size=min(1_000, len(X)), random_state=0)

    found = [kmeans(X, number) for number in _NUMBERS_OF_KMEANS if number < len(X)]
    return max(found, key=silhouette)


def mixture_by_bic(X):
    """The number of Gaussians with full covariances for which BIC is smallest."""
    if X.shape[1] > _MOST_COLUMNS:
        X = PCA(_AXES, random_state=0).fit_transform(X)
    found = []
    for number in _NUMBERS_OF_MIXTURES:
        if number >= len(X) // 2:
            break
        try:
            found.append(GaussianMixture(number, random_state=0, reg_covar=1e-3).fit(X))
        except ValueError:  # a covariance that is not positive definite
            continue
    return min(found, key=lambda mixture: mixture.bic(X)).predict(X)
