"""What the MNIST column of the paper's Table 3 depends on: settings varied one at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._validation import check_count, check_threads
from fastrbhc.experiments import _labelled
from fastrbhc.experiments._comparison import Source, compare, table_of
from fastrbhc.experiments._methods import METHODS, Dataset
from fastrbhc.experiments._spec import Experiment
from fastrbhc.experiments._trials import check_seed
from fastrbhc.families import Gaussian
from fastrbhc.thresholds import kmeans_threshold

_GUESSES = (1, 2, 3, 4, 6, 8)
# The factor of the grey values, and the smoothing. The first is the setting of `table3`.
_SETTINGS = {
    "0 to 1, 0.01": (1.0 / 255.0, 0.01),
    "0 to 1, 0.001": (1.0 / 255.0, 0.001),
    "0 to 1, 0.1": (1.0 / 255.0, 0.1),
    "0 to 1, 1": (1.0 / 255.0, 1.0),
    "0 to 255, 0.01": (1.0, 0.01),
    "0 to 255, 1": (1.0, 1.0),
    "0 to 255, 100": (1.0, 100.0),
}
_STREAM = 50  # of random numbers, distinct from those of other experiments


def mnist_settings(
    repeats: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    *,
    mnist: str | Path | None = None,
) -> dict[str, Any]:
    """RBHC on MNIST digits, with various pixel scales, smoothings and guesses.

    Samples have 3,000 digits, as in `table3`, and are the same for every setting. For each pixel
    scale and smoothing, the greedy tree is cut at the λ of `kmeans_threshold` with guesses from 1
    to 8, and at the true number of clusters. Ward's method, by SciPy, is included for comparison.

    Parameters
    ----------
    repeats : int, default=5
        Number of samples of digits.
    seed : int, default=0
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    progress : bool, default=False
        Show progress bars.
    mnist : str or Path, optional
        A file, as for `table3`.

    Returns
    -------
    dict
        ``repeats``, ``seed`` and ``rows``: for each cut and setting the ``mean`` and ``std`` of the
        adjusted Rand index, and the same for the number of ``clusters``.

    Examples
    --------
    >>> from fastrbhc.experiments import mnist_settings
    >>> rows = mnist_settings(repeats=1)["rows"]  # doctest: +SKIP
    >>> rows["guess_3"]["0 to 1, 0.01"]["mean"] > rows["guess_8"]["0 to 1, 0.01"]["mean"]
    ... # doctest: +SKIP
    True
    """
    repeats, seed = check_count(repeats, "repeats"), check_seed(seed)
    n_threads = check_threads(n_jobs)
    sources = {
        name: Source(_same_samples(_labelled.mnist(Gaussian(smoothing), mnist, scale), seed))
        for name, (scale, smoothing) in _SETTINGS.items()
    }
    methods = {f"guess_{guess}": _cut_by_guess(guess) for guess in _GUESSES}
    methods["true_number"] = _cut_at_true_number
    methods["ward"] = METHODS["ward"]
    rows = compare(sources, methods, repeats, seed, _STREAM, n_threads, progress)
    return {"repeats": repeats, "seed": seed, "rows": rows}


def _same_samples(
    draw: Callable[[np.random.Generator], Dataset], seed: int
) -> Callable[[np.random.Generator], Dataset]:
    """Draws that take the same rows in every setting: first, second, and so on."""
    drawn = iter(range(2**31))

    def again(rng: np.random.Generator) -> Dataset:
        own = np.random.SeedSequence(seed, spawn_key=(_STREAM, next(drawn)))
        return draw(np.random.default_rng(own))

    return again


def _cut_by_guess(guess: int) -> Callable[[Dataset, int, int], NDArray[np.int64]]:
    def cluster(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
        threshold = kmeans_threshold(data.X, data.family, guess, random_state=seed)
        return data.tree(n_threads).cut(threshold=threshold)

    return cluster


def _cut_at_true_number(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    return data.tree(n_threads).cut(n_clusters=data.n_clusters)


def report(result: dict[str, Any]) -> str:
    """One line per cut, one column per setting."""
    titles = {f"guess_{guess}": f"guess {guess}" for guess in _GUESSES}
    titles |= {"true_number": "cut at 4", "ward": "Ward, SciPy"}
    lines = [
        f"MNIST: adjusted Rand index of {result['repeats']} samples, seed {result['seed']}; "
        "( ) is a deviation, k clusters found; grey values and smoothing on top",
    ]
    names = tuple(_SETTINGS)
    for part in (names[:4], names[4:]):
        rows = {cut: {name: row[name] for name in part} for cut, row in result["rows"].items()}
        lines += ["", *table_of(rows, titles, {name: name for name in part}, with_clusters=True)]
    return "\n".join(lines)


EXPERIMENT = Experiment(
    "mnist_settings",
    "what the MNIST column of Table 3 depends on",
    "RBHC on digits of MNIST with other pixel scales, smoothings and guesses.",
    "--repeats 5 --json mnist.json",
    ("repeats", 5, "samples of digits"),
    (_labelled.MNIST_OPTION,),
)
