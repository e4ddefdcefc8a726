"""A comparison of ways to choose λ: the number and the quality of the clusters they find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from fastrbhc._validation import check_count, check_threads
from fastrbhc.experiments import _labelled
from fastrbhc.experiments._comparison import Source, compare
from fastrbhc.experiments._methods import Dataset
from fastrbhc.experiments._mixtures import MIXTURES, Mixture
from fastrbhc.experiments._spec import Experiment, Option
from fastrbhc.experiments._trials import check_seed
from fastrbhc.families import Gaussian, Multinomial, Poisson, SphericalGaussian, as_family
from fastrbhc.selection.number import predictive_threshold
from fastrbhc.thresholds import evidence_threshold, gap_threshold, kmeans_threshold

_GUESS = 8  # if nothing is known
_MOST = 60  # the most clusters of the best cut
_STREAM = 40  # of random numbers, distinct from those of other experiments

Choice = Callable[[Dataset, int, int], NDArray[np.int64]]


def _kmeans(guess: Callable[[int], int]) -> Choice:
    def cluster(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
        guessed = guess(data.n_clusters)
        threshold = kmeans_threshold(data.X, data.family, guessed, random_state=seed)
        return data.tree(n_threads).cut(threshold=threshold)

    return cluster


def _gap(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    tree = data.tree(n_threads)
    return tree.cut(threshold=gap_threshold(tree))


def _evidence(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    tree = data.tree(n_threads)
    return tree.cut(threshold=evidence_threshold(tree))


def _predictive(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    tree = data.tree(n_threads)
    choice = predictive_threshold(tree, data.X, family=data.family)
    return tree.cut(threshold=choice.threshold)


def _true_number(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    return data.tree(n_threads).cut(n_clusters=data.n_clusters)


def _best_cut(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    tree = data.tree(n_threads)
    cuts = tree.cut(n_clusters=range(1, min(_MOST, tree.n_leaves) + 1))
    return max(cuts.T, key=lambda labels: adjusted_rand_score(data.labels, labels))


CHOICES: dict[str, Choice] = {
    "kmeans_true": _kmeans(lambda k: k),
    "kmeans_half": _kmeans(lambda k: max(1, k // 2)),
    "kmeans_twice": _kmeans(lambda k: 2 * k),
    "kmeans_8": _kmeans(lambda k: _GUESS),
    "predictive": _predictive,
    "gap": _gap,
    "evidence": _evidence,
    "true_number": _true_number,
    "best_cut": _best_cut,
}
TITLES = {
    "kmeans_true": "kmeans, guess k",
    "kmeans_half": "guess k/2",
    "kmeans_twice": "guess 2k",
    "kmeans_8": "guess 8",
    "predictive": "predictive",
    "gap": "gap",
    "evidence": "evidence",
    "true_number": "cut at k",
    "best_cut": "best cut",
}


def compare_thresholds(
    repeats: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    *,
    caltech: str | Path | None = None,
    mnist: str | Path | None = None,
    also: Mapping[str, tuple[Any, str | Path]] | None = None,
) -> dict[str, Any]:
    """Compare choices of λ on the data of Tables 2 and 3, and on digits as counts.

    Every choice cuts the same greedy tree: `kmeans_threshold` with the true number of clusters k
    as the guess, with k/2, 2k and 8; `predictive_threshold`; `gap_threshold`; and
    `evidence_threshold`. For comparison
    there are two cuts that use the true classes: the cut into k clusters, and the best of all cuts
    into 1 to 60 clusters.

    Parameters
    ----------
    repeats : int, default=10
        Number of data sets of each kind. Digits as counts, and files of at most 3,000 rows, are
        always the same; only the seed of k-means varies.
    seed : int, default=0
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    progress : bool, default=False
        Show progress bars.
    caltech, mnist : str or Path, optional
        Files, as for `table3`.
    also : dict, optional
        Further data by name: the family, and an NPZ file with rows and classes.

    Returns
    -------
    dict
        ``repeats``, ``seed``, ``n_clusters`` with the true number for each data set, and ``rows``:
        for each choice and data set the ``mean`` and ``std`` of the adjusted Rand index, and the
        same for the number of ``clusters``.

    Examples
    --------
    >>> from fastrbhc.experiments import compare_thresholds
    >>> rows = compare_thresholds(repeats=1)["rows"]  # doctest: +SKIP
    >>> rows["gap"]["mnist"]["clusters"]["mean"] < 10  # doctest: +SKIP
    True
    """
    repeats, seed = check_count(repeats, "repeats"), check_seed(seed)
    n_threads = check_threads(n_jobs)
    draws = {name: _drawing(mixture) for name, mixture in MIXTURES.items()}
    draws["mnist"] = _labelled.mnist(Gaussian(), mnist)
    draws["mnist_ward"] = _labelled.mnist(SphericalGaussian(), mnist)
    draws["digits_poisson"] = _labelled.digit_counts(Poisson())
    draws["digits_multinomial"] = _labelled.digit_counts(Multinomial())
    if caltech is not None:
        draws["caltech101"] = _labelled.caltech(Multinomial(), caltech)
        draws["caltech101_rows"] = _labelled.caltech(Multinomial(weight_by_total=False), caltech)
    for name, (family, path) in (also or {}).items():
        draws[name] = _labelled.labelled_file(as_family(family), path)
    numbers: dict[str, int] = {}
    sources = {name: Source(_noting(name, draw, numbers)) for name, draw in draws.items()}
    rows = compare(sources, CHOICES, repeats, seed, _STREAM, n_threads, progress)
    return {"repeats": repeats, "seed": seed, "n_clusters": numbers, "rows": rows}


def _drawing(mixture: Mixture) -> Callable[[np.random.Generator], Dataset]:
    def draw(rng: np.random.Generator) -> Dataset:
        X, labels = mixture.draw(rng)
        return Dataset(X, labels, mixture.family)

    return draw


def _noting(
    name: str, draw: Callable[[np.random.Generator], Dataset], numbers: dict[str, int]
) -> Callable[[np.random.Generator], Dataset]:
    """The same draws, with the true number of clusters written to ``numbers``."""

    def noted(rng: np.random.Generator) -> Dataset:
        data = draw(rng)
        numbers[name] = data.n_clusters
        return data

    return noted


def report(result: dict[str, Any]) -> str:
    """One line per data set, one column per choice: index @ clusters found."""
    names = result["n_clusters"]
    first = max(len(name) for name in names) + 2
    width = 17
    lines = [
        f"Choices of lambda: adjusted Rand index @ clusters found, means of {result['repeats']} "
        f"repeats, seed {result['seed']}; k is the true number",
        "",
        " " * first + "k   " + "".join(f"{TITLES[choice]:<{width}}" for choice in result["rows"]),
    ]
    for name, k in names.items():
        cells = (
            f"{row[name]['mean']:.3f} @ {row[name]['clusters']['mean']:.1f}"
            for row in result["rows"].values()
        )
        lines.append(f"{name:<{first}}{k:<4}" + "".join(f"{cell:<{width}}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def _named_files(given: list[str]) -> dict[str, tuple[str, str]]:
    """NAME=FAMILY=PATH as a dictionary."""
    files = {}
    for text in given:
        parts = text.split("=", 2)
        if len(parts) < 3 or not all(parts):
            raise ValueError(f"--also takes NAME=FAMILY=PATH, got {text!r}")
        files[parts[0]] = (parts[1], parts[2])
    return files


EXPERIMENT = Experiment(
    "compare_thresholds",
    "choices of lambda compared on all data",
    "How many clusters each choice of lambda finds, and how good they are, on the data of "
    "Tables 2 and 3, digits as counts, and your own files.",
    "--repeats 10 --json thresholds.json --also words=multinomial=20newsgroups.npz",
    ("repeats", 10, "data sets of each kind"),
    (
        _labelled.CALTECH_OPTION,
        _labelled.MNIST_OPTION,
        Option(
            "also",
            {
                "metavar": "NAME=FAMILY=PATH",
                "action": "append",
                "default": [],
                "help": "further rows with classes, an NPZ file; may be given several times",
            },
            _named_files,
        ),
    ),
)
