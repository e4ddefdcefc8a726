"""The columns that tell a cluster most from all other rows: what a table of wide rows shows.

For a separable family d between a cluster and all other rows together is a sum over columns. The
term of a column says how much of d is due to it, so it takes into account how frequent a word is,
how large the cluster is, and the smoothing.

Other families have no such terms. If clusters have variances, the term of a column is d of that
column by itself, which for a diagonal covariance is its part of d; else it is that of Ward's d.

A category has a column for each of its levels, and the terms of these are exact. A product has the
terms of its blocks, times their weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build_sparse import sparse_contrasts
from fastrbhc._engine.clusters.comparison import column_terms, separations
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc.families import Family
from fastrbhc.tree.observed_columns import statistics_of, views_of_blocks

# Ratios from here on are written as whole numbers.
_LARGE_RATIO = 100.0
# Terms with the same digits are equal.
_DIGITS = 9


class Column(NamedTuple):
    """A column of the statistics, and whether its means are compared by their ratio."""

    label: str
    by_ratio: bool
    is_spare: bool = False  # a place for levels that no row has


class Telling(NamedTuple):
    """A cluster beside all other rows: a term, and the two means, of each of some columns."""

    slot: int
    columns: NDArray[np.int64]
    terms: NDArray[np.float64]
    own: NDArray[np.float64]
    rest: NDArray[np.float64]


def top_columns(
    family: Family,
    geometry: Any,
    clusters: Clusters,
    n_columns: int,
    names: Sequence[str] | None,
    n_top: int,
) -> dict[str, Any]:
    """Columns of a table with one row per cluster; `summary_of_clusters` says what they hold."""
    k = clusters.weights.size
    apart, share = np.zeros(k), np.full(k, np.nan)
    more: list[str] = [""] * k
    less: list[str] = [""] * k
    if not family.separable:
        apart = separations(geometry, clusters)[0]
    labelled = columns_of(family, n_columns, names)
    for slot, columns, terms, own, rest in contrasts(family, clusters, n_columns):
        total, top = float(terms.sum()), columns[:0]
        if family.separable:
            apart[slot] = total
        if total > 0.0:
            # Of terms that only rounding tells apart, the first column comes first.
            order = np.lexsort((columns, -np.round(terms / terms.max(), _DIGITS)))
            top = order[: min(n_top, np.count_nonzero(terms))]
            share[slot] = terms[top].sum() / total
        texts = [
            f"{labelled[column].label} {compared(labelled[column].by_ratio, *means)}"
            for column, *means in zip(columns[top].tolist(), own[top], rest[top], strict=True)
        ]
        larger = own[top] > rest[top]
        more[slot] = ", ".join(text for text, is_more in zip(texts, larger, strict=True) if is_more)
        less[slot] = ", ".join(
            text for text, is_more in zip(texts, larger, strict=True) if not is_more
        )
    return {"apart": apart, "top_share": share, "more_of": more, "less_of": less}


def columns_of(family: Any, n_columns: int, names: Sequence[str] | None) -> list[Column]:
    """The columns of the statistics; those of a product block by block."""
    labels = [f"x{k}" for k in range(n_columns)] if names is None else names
    if hasattr(family, "blocks"):
        return [
            column
            for block in family.blocks
            for column in columns_of(
                block.family, len(block.columns), [labels[k] for k in block.columns]
            )
        ]
    if hasattr(family, "levels"):
        columns = [
            Column(f"{label}={level}", True)
            for label, levels in zip(labels, family.levels, strict=True)
            for level in levels
        ]
        # Other levels of each column have a place too, which is empty in the rows of the fit.
        return columns + [Column(label, True, is_spare=True) for label in labels]
    return [Column(label, family.domain.lower >= 0.0) for label in labels]


def compared(by_ratio: bool, own: float, rest: float) -> str:
    """A mean beside that of the other rows: a ratio of counts, a difference of measurements."""
    if not by_ratio:
        return f"{own - rest:+.3g}"
    if rest == 0.0:
        return "only here"
    ratio = own / rest
    return f"{ratio:,.0f}×" if ratio >= _LARGE_RATIO else f"{ratio:.2g}×"


def contrasts(family: Any, clusters: Clusters, n_columns: int) -> Iterator[Telling]:
    """Every cluster that has weight beside the others; none if it is the only one."""
    if hasattr(family, "blocks"):
        yield from _contrasts_of_blocks(family, clusters)
        return
    if hasattr(family, "levels"):  # one column for each level
        n_columns = statistics_of(family, n_columns)
        geometry: Any = family.geometry(n_columns)
        smoothing = (geometry.scale, geometry.offset)
        yield from _contrasts_of_columns(geometry.family, clusters, n_columns, smoothing)
        return
    yield from _contrasts_of_columns(family, clusters, n_columns, family.smoothing_map(n_columns))


def _contrasts_of_blocks(family: Any, clusters: Clusters) -> Iterator[Telling]:
    """The same for a product: the columns of all blocks, one after another."""
    views = views_of_blocks(clusters, len(family.blocks))
    found = [
        contrasts(block.family, view, len(block.columns))
        for block, view in zip(family.blocks, views, strict=True)
    ]
    widths = [statistics_of(block.family, len(block.columns)) for block in family.blocks]
    starts = np.cumsum([0, *widths])
    for parts in zip(*found, strict=True):
        yield Telling(
            parts[0].slot,
            np.concatenate(
                [part.columns + start for part, start in zip(parts, starts, strict=False)]
            ),
            np.concatenate(
                [
                    block.weight * part.terms
                    for block, part in zip(family.blocks, parts, strict=True)
                ]
            ),
            np.concatenate([part.own for part in parts]),
            np.concatenate([part.rest for part in parts]),
        )


def _contrasts_of_columns(
    family: Family, clusters: Clusters, n_columns: int, smoothing: tuple[float, float]
) -> Iterator[Telling]:
    """The same for the columns of one family."""
    weights, taken = clusters.weights, np.flatnonzero(clusters.weights > 0.0)
    if taken.size < 2:
        return
    everything = float(weights[taken].sum())
    if clusters.segments.n_columns:
        for slot, used, own, rest, _ in sparse_contrasts(clusters, taken):
            weight, centre = float(weights[slot]), np.zeros(used.size)
            others = everything - weight
            terms = column_terms(family, smoothing, centre, own, weight, rest, others)
            yield Telling(slot, used.astype(np.int64), terms, own / weight, rest / others)
        return
    if clusters.means.shape[0] == 2 * n_columns:
        yield from _contrasts_with_gaps(family, clusters, taken, smoothing)
        return
    means, columns = clusters.means[:, taken].T, np.arange(n_columns)
    shares = weights[taken] / everything
    # Zeros have to stay zeros: the sum of all others is never a difference.
    centre = np.zeros(n_columns) if family.domain.lower >= 0.0 else shares @ means
    sums = weights[taken, None] * (means - centre)
    before, after = np.zeros(n_columns), np.zeros((taken.size + 1, n_columns))
    np.cumsum(sums[::-1], axis=0, out=after[1:])
    variances = _variances(family, clusters, taken)
    for place, slot in enumerate(taken.tolist()):
        weight = float(weights[slot])
        own, rest, others = sums[place], before + after[-2 - place], everything - weight
        before = before + own
        if family.separable:
            terms = column_terms(family, smoothing, centre, own, weight, rest, others)
        else:
            terms = 0.5 * weight * others / everything * (own / weight - rest / others) ** 2
            if variances is not None:
                within = np.delete(shares, place) / np.delete(shares, place).sum()
                apart = np.delete(means, place, axis=0) - (centre + rest / others)
                scattered = within @ (np.delete(variances, place, axis=0) + apart**2)
                terms = _gaussian_terms(
                    weight, variances[place], others, scattered, terms, smoothing[1]
                )
        both = family.in_units_of_rows(centre + np.array([own / weight, rest / others]))
        yield Telling(slot, columns, terms, both[0], both[1])


def _contrasts_with_gaps(
    family: Family,
    clusters: Clusters,
    taken: NDArray[np.int64],
    smoothing: tuple[float, float],
) -> Iterator[Telling]:
    """The same if every column has a weight of its own, as in `partly_observed`."""
    n_columns = clusters.means.shape[0] // 2
    own, weights = clusters.means[:n_columns, taken].T, clusters.means[n_columns:, taken].T
    columns = np.arange(n_columns)
    for place, slot in enumerate(taken.tolist()):
        others = np.delete(weights, place, axis=0)
        total = others.sum(axis=0)
        # Of a column that no other row has observed, the mean is its own: the term is 0.
        shares = others / np.where(total > 0.0, total, 1.0)
        rest = (shares * np.delete(own, place, axis=0)).sum(axis=0)
        rest = np.where(total > 0.0, rest, own[place])
        mean = np.where(weights[place] > 0.0, own[place], rest)
        sums = total * (rest - mean)
        nothing = np.zeros(n_columns)
        terms = column_terms(family, smoothing, mean, nothing, weights[place], sums, total)
        both = family.in_units_of_rows(np.array([mean, rest]))
        yield Telling(slot, columns, terms, both[0], both[1])


def _gaussian_terms(
    weight0: float,
    variance0: NDArray[np.float64],
    weight1: float,
    variance1: NDArray[np.float64],
    between: NDArray[np.float64],
    smoothing: float,
) -> NDArray[np.float64]:
    """d of each column by itself, from its variances and Ward's d of the two means."""
    weight = weight0 + weight1
    joint = (weight0 * variance0 + weight1 * variance1 + 2.0 * between) / weight
    terms: NDArray[np.float64] = 0.5 * (
        weight * np.log(joint + smoothing)
        - weight0 * np.log(variance0 + smoothing)
        - weight1 * np.log(variance1 + smoothing)
    )
    return np.maximum(terms, 0.0)


def _variances(
    family: Family, clusters: Clusters, slots: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """The variance of each column in each of the slots, where clusters have any: (k, d)."""
    d, scatter = clusters.means.shape[0], clusters.scatter[slots]
    if family.covariance == "diagonal" and scatter.shape[1] == 2 * d:
        return scatter[:, :d]
    if family.covariance == "full" and scatter.shape[1] == d * (d + 1):
        column = np.arange(d)
        sums = scatter[:, column * (column + 3) // 2]
        return np.maximum(sums / clusters.weights[slots, None], 0.0)
    return None
