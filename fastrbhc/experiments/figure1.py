"""Figure 1 of the paper: the Taylor value of the Gaussian's d improves with size and scale."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from fastrbhc._files import save_picture
from fastrbhc._progress import Progress
from fastrbhc._validation import check_count, check_threads
from fastrbhc.experiments._distributions import DISTRIBUTIONS
from fastrbhc.experiments._spec import Experiment
from fastrbhc.experiments._trials import ClusterSizes, check_seed, check_trials, run_trials
from fastrbhc.experiments.table1 import standard_error
from fastrbhc.plotting._style import DASHES, FAINT, INK

_LARGEST_SIZES = (25, 50, 100, 200, 400)
_SCALES = (1, 2, 4, 8, 16)
_BLUE = "#3366aa"
# Streams of random numbers, distinct from those of other experiments.
_STREAMS = {"largest_size": 10, "scale": 11}


def figure1(
    trials: int = 2_000,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    *,
    largest_sizes: Sequence[int] = _LARGEST_SIZES,
    scales: Sequence[int] = _SCALES,
) -> dict[str, Any]:
    """Reproduce Figure 1 of Lee & Choi (2015): the average relative error of the Taylor value.

    Clusters are drawn as in the Gaussian row of Table 1. In the first curve the largest size n
    varies, and sizes are uniform between 20 and n. In the second curve sizes are from 20 to 100,
    and the scale β of the scaled exponential family varies: a row of scale β has a mean statistic
    with the same mean and 1/β of the covariance, like an average over β independent rows. By the
    paper's analysis, the error of the Taylor value relative to d vanishes as n or β grows.

    Parameters
    ----------
    trials : int, default=2_000
        Number of trials per point of the figure.
    seed : int, default=0
        Seed of all random numbers.
    n_jobs : int, optional
        Number of threads. None stands for NUMBA_NUM_THREADS, by default one per core. The result
        does not depend on it.
    progress : bool, default=False
        Show progress bars.
    largest_sizes : sequence of int
        The largest sizes of clusters, at least 20.
    scales : sequence of int
        The scales β, integers.

    Returns
    -------
    dict
        ``trials``, ``seed`` and two curves, ``largest_size`` and ``scale``, each with the lists
        ``values``, ``relative_error_percent`` and ``relative_error_percent_se``.

    Examples
    --------
    >>> from fastrbhc.experiments import figure1
    >>> curve = figure1(trials=100, largest_sizes=[20, 200], scales=[1])["largest_size"]
    >>> curve["values"]
    [20, 200]
    >>> curve["relative_error_percent"][0] > curve["relative_error_percent"][1]
    True
    """
    trials, seed = check_trials(trials), check_seed(seed)
    n_threads = check_threads(n_jobs)
    smallest = ClusterSizes().smallest
    if not (len(largest_sizes) and len(scales)):
        raise ValueError("largest_sizes and scales have to hold at least one value each")
    for size in largest_sizes:
        if check_count(size, "largest_sizes") < smallest:
            raise ValueError(f"largest_sizes have to be at least {smallest}, got {size}")
    curves = {
        "largest_size": {int(size): ClusterSizes(largest=int(size)) for size in largest_sizes},
        "scale": {check_count(scale, "scales"): ClusterSizes(scale=int(scale)) for scale in scales},
    }
    result: dict[str, Any] = {"trials": trials, "seed": seed}
    totals = {f"{name} {value}": trials for name, points in curves.items() for value in points}
    with Progress(progress, totals) as bar:
        for name, points in curves.items():
            curve: dict[str, list[Any]] = {
                "values": list(points),
                "relative_error_percent": [],
                "relative_error_percent_se": [],
            }
            for value, sizes in points.items():
                found = run_trials(
                    DISTRIBUTIONS["gaussian"],
                    trials,
                    seed,
                    (_STREAMS[name], value),
                    n_threads,
                    functools.partial(bar, f"{name} {value}"),
                    sizes,
                )
                errors = 100.0 * found.relative_errors
                curve["relative_error_percent"].append(float(errors.mean()))
                curve["relative_error_percent_se"].append(standard_error(errors))
            result[name] = curve
    return result


def report(result: dict[str, Any]) -> str:
    """Both curves as text."""
    lines = [
        f"Figure 1: {result['trials']:,} trials for each point, seed {result['seed']}; "
        "± is a standard error"
    ]
    for name, head in (("largest_size", "largest size"), ("scale", "scale beta")):
        curve = result[name]
        lines += ["", f"{head:<14}relative error %"]
        for point in zip(*curve.values(), strict=True):
            lines.append("{:<14}{:.3f} ± {:.3f}".format(*point))
    return "\n".join(lines)


def draw(result: dict[str, Any], output: str | Path | IO[bytes]) -> None:
    """Draw both curves with their standard errors, and the slope of 1/√β next to the second.

    Parameters
    ----------
    result : dict
        From `figure1`.
    output : str, Path or file
        Where to write the picture. The suffix decides the format; without one it is PNG.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9.0, 3.8), dpi=110, facecolor="white", layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    sizes = ClusterSizes()
    _draw_curve(left, result["largest_size"], "largest size of a cluster")
    _draw_curve(right, result["scale"], "scale β")
    title = {"loc": "left", "fontsize": 11, "color": INK}
    left.set_title(f"Sizes from {sizes.smallest} on, β = {sizes.scale}", **title)
    right.set_title(f"Sizes from {sizes.smallest} to {sizes.largest}", **title)
    left.set_ylabel("average relative error, %", color=INK)
    # Not on the left, where the smallest size stays the same.
    scales = np.array(result["scale"]["values"], float)
    first = result["scale"]["relative_error_percent"][0]
    guide = first * np.sqrt(scales[0] / scales)
    right.plot(scales, guide, color=FAINT, linestyle=DASHES, label="1/√β", zorder=1)
    right.legend(frameon=False)
    save_picture(figure, output)


def _draw_curve(axes: Any, curve: dict[str, list[Any]], label: str) -> None:
    from matplotlib.ticker import NullLocator, StrMethodFormatter

    values = curve["values"]
    axes.errorbar(
        values,
        curve["relative_error_percent"],
        yerr=curve["relative_error_percent_se"],
        color=_BLUE,
        marker="o",
        capsize=3,
        label="measured",
    )
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(label, color=INK)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    "figure1",
    "the error of the Taylor value against size and scale",
    "Figure 1: the average relative error of the Taylor value of the Gaussian's d, against "
    "the largest cluster size and the scale beta.",
    "--json figure1.json --plot figure1.png",
    ("trials", 2_000, "trials for each point"),
    draws=True,
)
