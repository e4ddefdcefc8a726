"""Print ratios to other libraries, measured in one run: ``make bench``."""

from __future__ import annotations

import os
import platform

os.environ.setdefault("OMP_NUM_THREADS", "1")

import fastcluster
import numpy as np
from benchmarks.datasets import normal
from benchmarks.timing import ratio
from scipy.cluster.hierarchy import linkage as scipy_linkage

import fastrbhc


def main() -> None:
    """One line a comparison; larger is better for fastrbhc."""
    print(f"{platform.processor() or platform.machine()}, one thread, median of 5 ratios")
    for n, d in ((10_000, 10), (10_000, 2), (5_000, 50)):
        X = normal(n, d)
        ours = fastrbhc.linkage(X, "ward", algorithm="greedy", n_jobs=1)
        theirs = fastcluster.linkage_vector(X, "ward")
        error = np.abs(2.0 * np.sqrt(ours.heights) / theirs[:, 2] - 1.0).max()
        speed = ratio(
            lambda X=X: fastcluster.linkage_vector(X, "ward"),
            lambda X=X: fastrbhc.linkage(X, "ward", algorithm="greedy", n_jobs=1),
        )
        print(
            f"{n:>7,} × {d:<3} Ward: fastcluster.linkage_vector / fastrbhc = {speed:.2f}, "
            f"heights agree to {error:.1e}"
        )
    X = normal(5_000, 10)
    speed = ratio(
        lambda: scipy_linkage(X, "ward"),
        lambda: fastrbhc.linkage(X, "ward", algorithm="greedy", n_jobs=1),
    )
    print(f"  5,000 × 10  Ward: scipy linkage / fastrbhc = {speed:.2f}")


if __name__ == "__main__":
    main()
