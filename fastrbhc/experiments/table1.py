"""Table 1 of the paper: how close d is to its Taylor value, and how often it is not reducible."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._progress import Progress
from fastrbhc._validation import check_threads
from fastrbhc.experiments._distributions import DISTRIBUTIONS
from fastrbhc.experiments._spec import Experiment
from fastrbhc.experiments._trials import Trials, check_seed, check_trials, run_trials

# As printed in the paper.
PAPER = {
    "poisson": (0.501, 0.500, 1.577, 0.0),
    "multinomial": (3.594, 3.642, 4.675, 87.0),
    "gaussian": (8.739, 8.717, 7.716, 48.0),
}
_COLUMNS = ("exact_mean", "taylor_mean", "relative_error_percent", "not_reducible_per_100k")
_ERRORS = ("exact_se", "taylor_se", "relative_error_percent_se", "not_reducible_per_100k_se")
_PER = 100_000


def table1(
    trials: int = 100_000, seed: int = 0, n_jobs: int | None = None, progress: bool = False
) -> dict[str, Any]:
    """Reproduce Table 1 of Lee & Choi (2015).

    A trial draws three clusters of 20 to 100 rows each from one distribution with a random
    parameter: Poisson, multinomial, or Gaussian with full covariance. It computes d of the first
    two, and its Taylor value at the true mean. Then the nearest pair of the three, a and b, is
    merged. The trial is not reducible if d(a∪b, x) < min(d(a, x), d(b, x)) for the third, x.

    Parameters
    ----------
    trials : int, default=100_000
        Number of trials per row of the table.
    seed : int, default=0
        Seed of all random numbers. A longer run begins with the trials of a shorter one.
    n_jobs : int, optional
        Number of threads. None stands for NUMBA_NUM_THREADS, by default one per core. The result
        does not depend on it.
    progress : bool, default=False
        Show progress bars.

    Returns
    -------
    dict
        ``trials``, ``seed`` and ``rows``: for "poisson", "multinomial" and "gaussian" the means
        ``exact_mean`` and ``taylor_mean`` of d and its Taylor value, the average of
        ``2·|d − d̃|/(d + d̃)`` as ``relative_error_percent``, ``not_reducible_per_100k``, the
        standard errors of all four, and the published values in ``paper``.

    Examples
    --------
    >>> from fastrbhc.experiments import table1
    >>> rows = table1(trials=200)["rows"]
    >>> rows["poisson"]["not_reducible_per_100k"]
    0.0
    >>> rows["gaussian"]["relative_error_percent"] > rows["poisson"]["relative_error_percent"]
    True
    """
    trials, seed = check_trials(trials), check_seed(seed)
    n_threads = check_threads(n_jobs)
    rows = {}
    with Progress(progress, dict.fromkeys(DISTRIBUTIONS, trials)) as bar:
        for number, (name, distribution) in enumerate(DISTRIBUTIONS.items()):
            found = run_trials(
                distribution,
                trials,
                seed,
                (number,),
                n_threads,
                functools.partial(bar, name),
            )
            paper = dict(zip(_COLUMNS, PAPER[name], strict=True))
            rows[name] = {**summarise(found), "paper": paper}
    return {"trials": trials, "seed": seed, "rows": rows}


def summarise(found: Trials) -> dict[str, float]:
    """Means and standard errors of a row of the table."""
    samples = (
        found.exact,
        found.taylor,
        100.0 * found.relative_errors,
        _PER * found.not_reducible.astype(np.float64),
    )
    row = {}
    for column, error, values in zip(_COLUMNS, _ERRORS, samples, strict=True):
        row[column], row[error] = float(values.mean()), standard_error(values)
    return row


def standard_error(values: NDArray[np.float64]) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def report(result: dict[str, Any]) -> str:
    """The table as text, with standard errors, next to the published values."""
    heads = ("exact d", "Taylor d", "relative error %", "not reducible / 100k")
    digits = (3, 3, 3, 0)
    lines = [
        f"Table 1: {result['trials']:,} trials for each row, seed {result['seed']}; "
        "± is a standard error, [ ] what the paper prints",
        "",
        "             " + "".join(f"{head:<26}" for head in heads).rstrip(),
    ]
    for name, row in result["rows"].items():
        cells = [
            f"{row[column]:.{n}f} ± {row[error]:.{n}f} [{row['paper'][column]:.{n}f}]"
            for column, error, n in zip(_COLUMNS, _ERRORS, digits, strict=True)
        ]
        lines.append(f"{name:<13}" + "".join(f"{cell:<26}" for cell in cells).rstrip())
    return "\n".join(lines)


EXPERIMENT = Experiment(
    "table1",
    "d, its Taylor value, and how often d is not reducible",
    "Table 1: d and its Taylor value between random clusters, and how often d is not "
    "reducible, for Poisson, multinomial and Gaussian clusters.",
    "--trials 100000 --seed 0 --json table1.json",
    ("trials", 100_000, "trials for each row"),
)
