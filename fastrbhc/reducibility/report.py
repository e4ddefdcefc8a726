"""How often d is reducible in a tree, and whether the tree is the greedy one.

A dissimilarity is *reducible* if no union of a pair that is each other's nearest neighbour is
nearer to a third cluster than both parts were (paper, section 4). Where that holds, merging such
pairs in any order gives the greedy tree; where it fails, a nearest-neighbour chain may build
another tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from fastrbhc._engine.traversal import merged_sums
from fastrbhc._optional import require

if TYPE_CHECKING:
    from fastrbhc.reducibility.audit import Tally
    from fastrbhc.tree.dendrogram import Dendrogram

# Confidence level of the interval of a sample.
_CONFIDENCE = 0.95


class Worst(NamedTuple):
    """The violation with the largest deficit, 1 − d(c, x) / min(d(a, x), d(b, x))."""

    deficit: float
    merge: int  # a row of tree.merges
    cluster: int  # the node x


class Band(NamedTuple):
    """Violations in a part of the tree."""

    lower: float
    upper: float
    merges: int
    triples: int
    violations: int
    consequential: int


@dataclass(frozen=True)
class ReducibilityReport:
    """The report of an audit; ``tree.audit`` of a tree built with ``linkage(..., audit=...)``.

    A *triple* is a merge a∪b = c and another cluster x that is active at the time. It is a
    *violation* if d(c, x) < min(d(a, x), d(b, x)), by more than the relative accuracy 1e-10 of d,
    and *consequential* if c is nearer to x than all other clusters were: only then can it mislead
    an algorithm that merges reciprocal pairs.

    Attributes
    ----------
    method : {"exact", "sample", "proof"}
        All triples, evaluated or ruled out by a bound; a random sample of them; or none, because
        the family is proven reducible.
    triples : int
        Number of triples examined; (n−1)(n−2)/2 for a whole tree of n rows.
    violations, consequential : int
        Number of such triples among them.
    premises : int
        Number of violations with d(a, b) ≤ d(a, x) and d(a, b) ≤ d(b, x), the premise of
        reducibility: all of them, because only nearest neighbours are merged.
    worst : Worst or None
        The violation with the largest relative deficit.
    by_height, by_size : tuple of Band
        Violations by the height of the merge, and by the number of rows in c.
    inversions : int
        Number of merges below one of their parts.
    certified : bool
        Whether the tree is proven to be the greedy one: by construction, or because the greedy tree
        was built as well and has the same clusters.
    departure : int or None
        The first row of ``tree.merges`` whose cluster the greedy tree does not have; their number
        if it has all of them, and more.
    heights, counts, deficits : ndarray of shape (m,)
        Height of every merge, number of its violations, and their largest deficit.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> report = fastrbhc.linkage(X, "gaussian", audit=True).audit
    >>> report.triples, report.certified
    (1711, True)
    >>> print(report.sentence)  # doctest: +NORMALIZE_WHITESPACE
    This is exactly the greedy tree; reducibility was violated in 5 of its 1,711 triples (0.29 %),
    which made no difference to the tree.
    >>> report.violations >= report.consequential
    True
    """

    method: str
    triples: int
    violations: int
    consequential: int
    premises: int
    worst: Worst | None
    by_height: tuple[Band, ...]
    by_size: tuple[Band, ...]
    inversions: int
    certified: bool
    departure: int | None = None
    heights: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    deficits: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def rate(self) -> float:
        """Violations per triple."""
        return self.violations / self.triples if self.triples else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval of the rate over all triples of the tree.

        For a sample, the Clopper–Pearson interval, which is conservative. If all triples were
        examined, both ends are the rate.
        """
        if self.method != "sample" or self.triples == 0:
            return self.rate, self.rate
        tail, k, n = 0.5 * (1.0 - _CONFIDENCE), self.violations, self.triples
        lower = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
        upper = betaincinv(k + 1, n - k, 1.0 - tail) if k < n else 1.0
        return float(lower), float(upper)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence: whether this is the greedy tree, and what was found."""
        return f"{self._against_greedy()}; {self._found()}."

    def _against_greedy(self) -> str:
        if self.certified:
            return "This is exactly the greedy tree"
        if self.departure is None or self.departure == self.heights.size:
            return "This is not the greedy tree, which has further clusters"
        return (
            "This is not the greedy tree, which has no cluster like that of merge "
            f"{self.departure:,}"
        )

    def _found(self) -> str:
        if self.heights.size == 0:
            return "nothing was merged, so that nothing could violate reducibility"
        if self.method == "proof":
            return "the family is proven reducible, so that no triple had to be examined"
        if self.triples == 0:
            return "there are no triples that could violate reducibility"
        among, share = f"its {self.triples:,} triples", _percent(self.rate)
        if self.method == "sample":
            lower, upper = (_percent(end) for end in self.interval)
            among = f"{self.triples:,} triples drawn at random"
            share += f"; 95 % interval {lower} to {upper}"
        if self.violations == 0:
            share = f" ({share})" if self.method == "sample" else ""
            return f"reducibility was violated in none of {among}{share}"
        # Whatever built a tree that is the greedy one, violations have not led it elsewhere.
        effect = (
            "which made no difference to the tree"
            if self.certified
            else f"{self.consequential:,} of them consequential"
        )
        return f"reducibility was violated in {self.violations:,} of {among} ({share}), {effect}"

    def _lines(self) -> list[tuple[str, str]]:
        how = {
            "exact": "all of them, one by one or ruled out by bounds",
            "sample": "a random sample",
            "proof": "none had to be looked at: the family is proven reducible",
        }
        if self.heights.size == 0:
            how["proof"] = "nothing was merged"
        lower, upper = self.interval
        rate = f"{self.rate:.3g} per triple"
        if self.method == "sample":
            rate += f" (95 % interval {lower:.3g} to {upper:.3g})"
        worst = "none"
        if self.worst is not None:
            worst = (
                f"{100 * self.worst.deficit:.3g} % nearer, merge {self.worst.merge:,} and "
                f"cluster {self.worst.cluster:,}"
            )
        certified = "yes" if self.certified else "no"
        if self.departure is not None and self.departure < self.heights.size:
            certified += f": they depart at merge {self.departure:,}"
        elif self.departure is not None:
            certified += ": it has further clusters"
        return [
            ("triples", f"{self.triples:,} ({how[self.method]})"),
            ("violations", f"{self.violations:,}, {rate}"),
            ("consequential", f"{self.consequential:,}"),
            ("worst", worst),
            ("inversions", f"{self.inversions:,}"),
            ("the greedy tree", certified),
        ]

    def __str__(self) -> str:
        lines = [self.sentence, "", "Reducibility"]
        lines += [f"  {name:16} {text}" for name, text in self._lines()]
        for name, bands in (("height", self.by_height), ("rows in c", self.by_size)):
            if self.violations:
                lines += ["", f"  {name:>23}  {'merges':>9} {'violations':>11} {'conseq.':>8}"]
                lines += [
                    f"  {band.lower:>10.4g} to {band.upper:>9.4g}  {band.merges:>9,} "
                    f"{band.violations:>11,} {band.consequential:>8,}"
                    for band in bands
                ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from fastrbhc.plotting import html

        picture = html.picture(self.plot, (6.0, 3.2)) if self.violations else ""
        return html.table(self.sentence, self._lines()) + picture

    def to_pandas(self) -> Any:
        """Where in the tree the violations are, as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per band; the column ``by`` is "height" or "size".

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> frame = fastrbhc.linkage(X, "gaussian", audit=True).audit.to_pandas()
        >>> int(frame[frame["by"] == "height"]["triples"].sum())
        1711
        """
        pd = require("pandas", "to_pandas")
        rows = [("height", *band) for band in self.by_height]
        rows += [("size", *band) for band in self.by_size]
        return pd.DataFrame(rows, columns=["by", *Band._fields])

    def plot(self, ax: Any = None) -> Any:
        """Draw the violations along the tree: their number and size per merge.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from fastrbhc.plotting.audit import draw_audit

        return draw_audit(self, ax)


def report_of(
    tree: Dendrogram,
    method: str,
    certified: bool,
    departure: int | None = None,
    tally: Tally | None = None,
    sample: NDArray[np.int64] | None = None,
    nodes: NDArray[np.int64] | None = None,
) -> ReducibilityReport:
    """The report of a tally, in the numbering of the tree.

    Parameters
    ----------
    tree : Dendrogram
        The tree that the report is about.
    method : {"exact", "sample", "proof"}
        See `ReducibilityReport`.
    certified : bool
        Whether the tree is the greedy one.
    departure : int, optional
        Where it differs from the greedy tree.
    tally : Tally, optional
        The counts for the merges of distinct rows; None for a proof.
    sample : ndarray of int64, optional
        The triples of distinct rows that were examined, if not all.
    nodes : ndarray of int64, optional
        Node of every distinct row, in the order in which merges were made.

    Returns
    -------
    ReducibilityReport
    """
    n, m = tree.n_leaves, len(tree.merges)
    counts, consequential, worst = np.zeros(m, np.int64), np.zeros(m, np.int64), None
    deficits = np.zeros(m)
    looked_at = n - 2 - tree.steps
    if tally is not None and nodes is not None:
        # Repeated rows were merged first; the union of equal rows is never nearer than they were.
        repeated = m - tally.violations.size
        counts[:] = np.append(np.zeros(repeated, np.int64), tally.violations)[tree.steps]
        consequential[:] = np.append(np.zeros(repeated, np.int64), tally.consequential)[tree.steps]
        deficits[:] = np.append(np.zeros(repeated), tally.deficits)[tree.steps]
        if sample is not None:
            by_step = np.zeros(m, np.int64)
            others = np.cumsum(nodes.size - 2 - np.arange(m - repeated))
            np.add.at(by_step, repeated + np.searchsorted(others, sample, side="right"), 1)
            looked_at = by_step[tree.steps]
        if tally.worst_merge >= 0:
            row_of_step = np.empty(m, np.int64)
            row_of_step[tree.steps] = np.arange(m)
            merge, cluster = tally.worst_merge, tally.worst_node
            made = nodes[cluster] if cluster < nodes.size else n + repeated + cluster - nodes.size
            node = int(made) if made < n else n + int(row_of_step[made - n])
            worst = Worst(float(tally.deficits[merge]), int(row_of_step[repeated + merge]), node)
    sizes = merged_sums(tree.merges, np.ones(n, np.int64))
    return ReducibilityReport(
        method=method,
        triples=int(looked_at.sum()),
        violations=int(counts.sum()),
        consequential=int(consequential.sum()),
        premises=0 if tally is None else tally.n_premise_holds,
        worst=worst,
        by_height=_bands(tree.heights, _decades(tree.heights), looked_at, counts, consequential),
        by_size=_bands(sizes, _doublings(sizes), looked_at, counts, consequential),
        inversions=tree.n_inversions,
        certified=certified,
        departure=departure,
        heights=tree.heights,
        counts=counts,
        deficits=deficits,
    )


def _percent(share: float) -> str:
    """A share in percent; one that is tiny, but not 0, is not written as 0."""
    return "less than 0.01 %" if 0.0 < share < 1e-4 else f"{100 * share:.2g} %"


def _decades(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ends of bands: powers of ten; the first band begins at 0."""
    positive = heights[heights > 0.0]
    if positive.size == 0:
        return np.array([0.0, 1.0])
    first, last = (int(np.floor(np.log10(end))) for end in (positive.min(), positive.max()))
    return np.array([0.0, *(10.0**power for power in range(first + 1, last + 2))])


def _doublings(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ends of bands: 2, 4, 8, …"""
    largest = int(sizes.max(initial=2))
    return np.array([2.0**power for power in range(1, largest.bit_length() + 1)])


def _bands(
    values: NDArray[Any],
    ends: NDArray[np.float64],
    others: NDArray[np.int64],
    counts: NDArray[np.int64],
    consequential: NDArray[np.int64],
) -> tuple[Band, ...]:
    """Sums over the merges with values from one end to the next, which is excluded."""
    band = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, ends.size - 2)
    columns = [
        np.bincount(band, weights, ends.size - 1)
        for weights in (np.ones(values.size), others, counts, consequential)
    ]
    return tuple(
        Band(float(lower), float(upper), *(int(column[b]) for column in columns))
        for b, (lower, upper) in enumerate(pairwise(ends))
    )
