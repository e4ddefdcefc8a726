"""Repeated comparisons of methods on data sets: adjusted Rand indices, and a table of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from fastrbhc._progress import Progress
from fastrbhc.experiments._methods import Dataset


class Source(NamedTuple):
    """A source of repeats of a data set, ``draw(rng)``, and the published values for it.

    If the data set is fixed, repeats differ only in the seed of the methods. Methods in ``without``
    are left out.
    """

    draw: Callable[[np.random.Generator], Dataset]
    paper: Mapping[str, tuple[float, float | None]] = {}
    without: tuple[str, ...] = ()


def compare(
    sources: Mapping[str, Source],
    methods: Mapping[str, Callable[[Dataset, int, int], Any]],
    repeats: int,
    seed: int,
    stream: int,
    n_threads: int,
    progress: bool,
) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation of index and number of clusters, per method and source.

    Every repeat has its own random numbers, the same for all methods, so that a longer run begins
    with a shorter one, and adding a method does not change the others.
    """
    cells = [
        (method, name)
        for method in methods
        for name, source in sources.items()
        if method not in source.without
    ]
    indices: dict[tuple[str, str], list[float]] = {cell: [] for cell in cells}
    clusters: dict[tuple[str, str], list[float]] = {cell: [] for cell in cells}
    # Rounding in k-means depends on the number of OpenMP threads, so one is used.
    limits = threadpool_limits(limits=1)
    with limits, Progress(progress, dict.fromkeys(sources, repeats)) as bar:
        for number, (name, source) in enumerate(sources.items()):
            report = functools.partial(bar, name)
            for repeat in range(repeats):
                own = np.random.SeedSequence(seed, spawn_key=(stream, number, repeat))
                rng = np.random.default_rng(own)
                data = source.draw(rng)
                method_seed = int(rng.integers(2**31))
                for method, cluster in methods.items():
                    if method in source.without:
                        continue
                    labels = cluster(data, method_seed, n_threads)
                    indices[method, name].append(adjusted_rand_score(data.labels, labels))
                    clusters[method, name].append(len(np.unique(labels)))
                report(repeat + 1)
    return {
        method: {
            name: {
                **_summary(indices[method, name]),
                "clusters": _summary(clusters[method, name]),
                **_paper(sources[name], method),
            }
            for name in sources
            if (method, name) in indices
        }
        for method in methods
    }


def _summary(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation, which is 0 for a single value."""
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
    }


def _paper(source: Source, method: str) -> dict[str, dict[str, float | None]]:
    if method not in source.paper:
        return {}
    mean, deviation = source.paper[method]
    return {"paper": {"mean": mean, "std": deviation}}


def table_of(
    rows: Mapping[str, Mapping[str, Any]],
    titles: Mapping[str, str],
    heads: Mapping[str, str],
    with_clusters: bool = False,
) -> list[str]:
    """Lines of text: one line per method, with the published values in brackets."""
    cells = {
        (method, name): _cell(cell, with_clusters)
        for method, row in rows.items()
        for name, cell in row.items()
    }
    first = max(len(title) for title in titles.values()) + 2
    widths = {
        name: 2 + max(len(head), *(len(cells.get((method, name), "")) for method in rows))
        for name, head in heads.items()
    }
    lines = [" " * first + "".join(f"{head:<{widths[name]}}" for name, head in heads.items())]
    for method in rows:
        texts = (f"{cells.get((method, name), '–'):<{widths[name]}}" for name in heads)
        lines.append(f"{titles[method]:<{first}}" + "".join(texts))
    return [line.rstrip() for line in lines]


def _cell(cell: Mapping[str, Any], with_clusters: bool) -> str:
    mean = round(cell["mean"], 3) + 0.0  # an index of -0.0001 is not "-0.000"
    text = f"{mean:.3f} ({cell['std']:.3f})"
    if with_clusters:
        text += f" k {cell['clusters']['mean']:.1f}"
    if "paper" in cell:
        printed, deviation = cell["paper"]["mean"], cell["paper"]["std"]
        text += f" [{printed:.3f}" + ("]" if deviation is None else f" ({deviation:.3f})]")
    return text
