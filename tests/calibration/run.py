"""Measure how often clusters are called stable, in noise and in separated clusters.

    PYTHONPATH=tests python -m calibration.run --draws 100

Prints a table by population, and by size, columns and cut; then the same for real clusters.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict

import numpy as np

import fastrbhc
from calibration.rows import NOISES, draw_case, separated


def count_stable(X, family, n_clusters):
    """How many clusters of a cut are called stable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = fastrbhc.linkage(X, family)
        report = tree.stability(X, family=family, n_clusters=n_clusters)
    return report.verdicts.count("stable")


def measure_noise(draws, seed, largest, only):
    tallies = defaultdict(lambda: np.zeros(4, int))
    for which, noise in enumerate(NOISES):
        if only and noise.family not in only:
            continue
        for draw in range(draws):
            case = draw_case(noise, (seed, which, draw), largest)
            stable = count_stable(case.X, noise.family, case.n_clusters)
            row = [stable, case.n_clusters, stable > 0, 1]
            keys = (
                (f"{noise.name}, {noise.family}"),
                f"n = {case.n:,}",
                f"{case.n_columns} columns",
                f"k = {case.n_clusters}",
                "all",
            )
            for key in keys:
                tallies[key] += row
            if stable:
                print(f"  stable: {noise} seed {(seed, which, draw)} {case[1:4]}", flush=True)
        show(f"{noise.name}, {noise.family}", tallies)
    for key in sorted(key for key in tallies if "," not in key or key.startswith("n =")):
        show(key, tallies)


def show(key, tallies):
    stable, clusters, any_stable, draws = tallies[key]
    print(
        f"{key:45} {stable:4} of {clusters:5} clusters ({100 * stable / clusters:.1f} %), "
        f"{any_stable:3} of {draws:4} draws ({100 * any_stable / draws:.1f} %)",
        flush=True,
    )


def measure_clusters(draws, seed):
    for family in ("ward", "gaussian"):
        for distance in (3.0, 4.0, 5.0, 6.0, 8.0):
            for d in (2, 5):
                rng = np.random.default_rng((seed, int(distance), d))
                found = [
                    count_stable(separated(rng, 300, d, distance)[0], family, 3)
                    for _ in range(draws)
                ]
                share = f"{np.mean(found) / 3:.0%} stable"
                print(f"{family}, {d} columns, distance {distance:g}: {share}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100, help="data sets of each population")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=5_000, help="the largest number of rows")
    parser.add_argument("--families", nargs="*", help="only these")
    options = parser.parse_args()
    measure_noise(options.draws, options.seed, options.largest, options.families)
    measure_clusters(max(options.draws // 5, 1), options.seed)


if __name__ == "__main__":
    main()
