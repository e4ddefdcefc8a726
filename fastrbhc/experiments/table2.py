"""Table 2 of the paper: how well clusters of Poisson, multinomial, Gaussian mixtures are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastrbhc._validation import check_count, check_threads
from fastrbhc.experiments._comparison import Source, compare, table_of
from fastrbhc.experiments._methods import METHODS, TITLES, Dataset, chosen
from fastrbhc.experiments._mixtures import MIXTURES, Mixture
from fastrbhc.experiments._spec import Experiment, Option
from fastrbhc.experiments._trials import check_seed

# As printed in the paper: mean and standard deviation of ten data sets, in the order of MIXTURES.
PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "single": (
        (0.091, 0.088), (0.015, 0.030), (0.000, 0.000),
        (0.000, 0.000), (0.270, 0.280), (0.057, 0.055),
    ),
    "complete": (
        (0.381, 0.091), (0.263, 0.059), (0.266, 0.144),
        (0.090, 0.025), (0.565, 0.166), (0.475, 0.141),
    ),
    "ward": (
        (0.465, 0.119), (0.273, 0.049), (0.770, 0.067),
        (0.564, 0.055), (0.779, 0.145), (0.763, 0.122),
    ),
    "rbhc_greedy": (
        (0.469, 0.112), (0.290, 0.056), (0.870, 0.046),
        (0.733, 0.028), (0.875, 0.087), (0.883, 0.067),
    ),
    "rbhc_nnca": (
        (0.469, 0.112), (0.290, 0.056), (0.865, 0.045),
        (0.736, 0.040), (0.875, 0.087), (0.883, 0.067),
    ),
    "bhc": (
        (0.265, 0.080), (0.134, 0.052), (0.907, 0.069),
        (0.894, 0.044), (0.863, 0.109), (0.860, 0.108),
    ),
}  # fmt: skip
_STREAM = 20  # of random numbers, distinct from those of other experiments
_EQUAL_STREAM = 21


def table2(
    repeats: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    *,
    equal_sizes: bool = False,
    methods: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Reproduce Table 2 of Lee & Choi (2015): adjusted Rand indices on synthetic data.

    Data are drawn from six mixtures: Poisson, multinomial and Gaussian clusters, 1,000 rows in 6
    clusters and 2,000 rows in 12. Single and complete linkage and Ward's method (SciPy) are cut at
    the true number of clusters. RBHC stops at the λ of `kmeans_threshold`, whose guess is the true
    number. BHC has the hyperparameters of largest evidence, searched for on 500 of the rows.

    Parameters
    ----------
    repeats : int, default=10
        Number of data sets per mixture.
    seed : int, default=0
        Seed of all random numbers. A longer run begins with the data of a shorter one.
    n_jobs : int, optional
        Number of threads. None stands for NUMBA_NUM_THREADS, by default one per core. The result
        does not depend on it.
    progress : bool, default=False
        Show progress bars.
    equal_sizes : bool, default=False
        Clusters of equal size, instead of sizes proportional to random integers from 20 to 100.
    methods : sequence of str, optional
        The lines of the table to compute; by default all. BHC takes most of the time.

    Returns
    -------
    dict
        ``repeats``, ``seed`` and ``rows``: for "single", "complete", "ward", "rbhc_greedy",
        "rbhc_nnca" and "bhc", and each of "poisson_1k", "poisson_2k", "multinomial_1k",
        "multinomial_2k", "gaussian_1k" and "gaussian_2k", the ``mean`` and standard deviation
        ``std`` of the index, the same for the number of ``clusters``, and the published values in
        ``paper``. Also ``equal_sizes``.

    Examples
    --------
    >>> from fastrbhc.experiments import table2
    >>> rows = table2(repeats=1)["rows"]  # doctest: +SKIP
    >>> rows["rbhc_greedy"]["gaussian_2k"]["mean"] > rows["ward"]["gaussian_2k"]["mean"]
    ... # doctest: +SKIP
    True
    """
    repeats, seed = check_count(repeats, "repeats"), check_seed(seed)
    n_threads = check_threads(n_jobs)
    compared = chosen(METHODS, methods)
    sources = {
        name: Source(
            _drawing(mixture, equal_sizes),
            {method: cells[number] for method, cells in PAPER.items()},
        )
        for number, (name, mixture) in enumerate(MIXTURES.items())
    }
    stream = _EQUAL_STREAM if equal_sizes else _STREAM
    rows = compare(sources, compared, repeats, seed, stream, n_threads, progress)
    return {"repeats": repeats, "seed": seed, "equal_sizes": equal_sizes, "rows": rows}


def _drawing(mixture: Mixture, equal: bool) -> Callable[[np.random.Generator], Dataset]:
    def draw(rng: np.random.Generator) -> Dataset:
        X, labels = mixture.draw(rng, equal)
        return Dataset(X, labels, mixture.family)

    return draw


def report(result: dict[str, Any]) -> str:
    """The table as text, next to the published values."""
    sizes = "clusters of equal size; " if result["equal_sizes"] else ""
    lines = [
        f"Table 2: adjusted Rand index, {result['repeats']} data sets of each kind, "
        f"seed {result['seed']}; {sizes}( ) is a deviation, [ ] what the paper prints",
    ]
    for names in (tuple(MIXTURES)[:3], tuple(MIXTURES)[3:]):
        heads = {name: name.replace("_", " ") for name in names}
        rows = {
            method: {name: row[name] for name in names} for method, row in result["rows"].items()
        }
        lines += ["", *table_of(rows, TITLES, heads)]
    return "\n".join(lines)


EXPERIMENT = Experiment(
    "table2",
    "synthetic data: linkages, RBHC and BHC",
    "Table 2: how well single, complete and Ward linkage, RBHC and BHC find the clusters of "
    "Poisson, multinomial and Gaussian mixtures.",
    "--repeats 10 --seed 0 --json table2.json",
    ("repeats", 10, "data sets of each kind"),
    (Option("equal-sizes", {"action": "store_true", "help": "clusters of equal size"}),),
)
