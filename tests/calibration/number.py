"""Measure how often the predictive choice finds more than one cluster in noise.

    PYTHONPATH=tests python -m calibration.number --draws 200

Prints a line for each population, with the data sets in which more than one was found.
"""

from __future__ import annotations

import argparse
import warnings

import fastrbhc
from calibration.rows import (
    NOISES,
    Noise,
    binary,
    draw_case,
    long_tailed,
    skewed,
    uniform_box,
)

# Families that the default stands for, beside those that are chosen for counts.
DEFAULT = {"ward": "ward", "gaussian": "auto"}
# Beside those whose splits are calibrated.
POPULATIONS = (
    *NOISES,
    Noise("uniform in a box", "gaussian", uniform_box),
    Noise("binary", "bernoulli", binary),
    Noise("exponential", "gaussian", skewed),
    Noise("exponential", "exponential", skewed),
    Noise("Student's t, 3 degrees", "gaussian", long_tailed),
)


def number_of_clusters(X, family):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fastrbhc.RBHC(DEFAULT.get(family, family)).fit(X).choice_


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="data sets of each population")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=5_000, help="the largest number of rows")
    parser.add_argument("--only", action="append", help="families")
    arguments = parser.parse_args()
    for which, noise in enumerate(POPULATIONS):
        if arguments.only and noise.family not in arguments.only:
            continue
        found = []
        for draw in range(arguments.draws):
            case = draw_case(noise, (arguments.seed, which, draw), arguments.largest)
            choice = number_of_clusters(case.X, noise.family)
            if choice.n_clusters > 1:
                found.append(f"{case.n} × {case.n_columns}: {choice.gain:.2f}")
        print(
            f"{noise.name}, {noise.family}: {len(found)} of {arguments.draws}",
            *found,
            sep="\n    ",
            flush=True,
        )


if __name__ == "__main__":
    main()
