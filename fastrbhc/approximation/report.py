"""The report on how good an approximate tree is: in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy.special import betaincinv

from fastrbhc._optional import require

# Confidence level of the interval of the share of merges.
_CONFIDENCE = 0.95


class CutComparison(NamedTuple):
    """A cut of the tree beside cuts of trees of the sampled rows alone.

    Attributes
    ----------
    n_clusters : int
        Where the tree was cut.
    present : int
        The number of these clusters that have rows in the sample. The other trees are cut into as
        many.
    cost, exact, again : float
        The cost of the sampled rows within clusters, Σ f({x}) − Σ f(c) with f = n·φ(t): in the
        clusters of the tree, in those of the exact tree of the sample, and in those of an
        approximate tree of the sample.
    agreement : float
        The adjusted Rand index of the clusters of the tree and those of the exact tree of the
        sample.
    """

    n_clusters: int
    present: int
    cost: float
    exact: float
    again: float
    agreement: float

    @property
    def excess(self) -> float:
        """The share by which the cost is above that of the exact tree of the sample."""
        return self.cost / self.exact - 1.0 if self.exact > 0.0 else 0.0

    @property
    def excess_again(self) -> float:
        """The same for the approximate tree of the sample."""
        return self.again / self.exact - 1.0 if self.exact > 0.0 else 0.0


@dataclass(frozen=True, repr=False)
class ApproximationReport:
    """How good an approximate tree is; from ``tree.approximation(X)``.

    A merge of a and b is that of a *nearest pair* if, in the clustering that the merges listed
    before it make, no cluster is nearer to a or to b than they are to each other, by more than the
    relative accuracy 1e-10 of d. If d is reducible and all merges were such, the tree would be the
    greedy one. Merges are drawn at random from those at a height above 0.

    A cut is compared with the exact tree of a sample of the rows. That tree was fitted to the very
    rows that the cost is computed of, and the tree to all rows: with few rows per cluster the
    former has an advantage, which says nothing about the approximation. ``again``, the cost with
    an approximate tree of the same sample, has none, so that the sentence is about that; if all
    rows are compared, it is about the tree itself.

    Attributes
    ----------
    approximate : bool
        Whether the tree was built with ``neighbors="approximate"``.
    n_leaves : int
        The number of rows of the tree.
    merges, nearest : int
        The number of merges that were examined, and of those that joined a nearest pair.
    excess : float
        Σ d of these merges over Σ d of the nearest pair with a or b in it, less 1.
    n_rows : int
        The number of rows of the sample, all if there are no more.
    cuts : tuple of CutComparison
        Cuts beside those of the exact tree of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 10)) + 4 * rng.normal(size=(30, 10)).repeat(20, axis=0)
    >>> report = fastrbhc.linkage(X, "ward").approximation(X, n_clusters=[10, 30])
    >>> print(report)  # doctest: +NORMALIZE_WHITESPACE
    All of 200 merges drawn at random joined a nearest pair (95 % interval 98 to 100 %); its cuts
    cost as much as those of the exact tree.
    <BLANKLINE>
    Cuts beside the exact tree of all 600 rows
      clusters   cost above   again   agreement
            10        0.0 %   0.0 %        1.00
            30        0.0 %   0.0 %        1.00
    """

    approximate: bool
    n_leaves: int
    merges: int
    nearest: int
    excess: float
    n_rows: int
    cuts: tuple[CutComparison, ...]

    @property
    def share(self) -> float:
        """The share of the examined merges that joined a nearest pair."""
        return self.nearest / self.merges if self.merges else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval of that share over all merges (Clopper–Pearson)."""
        tail, k, m = 0.5 * (1.0 - _CONFIDENCE), self.nearest, self.merges
        lower = betaincinv(k, m - k + 1, tail) if k > 0 else 0.0
        upper = betaincinv(k + 1, m - k, 1.0 - tail) if k < m else 1.0
        return float(lower), float(upper)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        lower, upper = (f"{100 * end:.0f}" for end in self.interval)
        if self.merges == 0:
            found = "All rows are equal, and nothing could be merged wrongly"
        else:
            count = "All" if self.nearest == self.merges else f"{self.nearest:,}"
            among = f"{count} of {self.merges:,} merges drawn at random joined a nearest pair"
            found = f"{among} (95 % interval {lower} to {upper} %)"
            if self.nearest < self.merges:
                found += f", and d was {_percent(self.excess)} above that of nearest pairs"
        return f"{found}; {self._about_cuts()}."

    def _about_cuts(self) -> str:
        """About cuts of the tree, or if only a sample is compared, of an approximate tree of it."""
        whole = self.n_rows == self.n_leaves
        excesses = [cut.excess if whole else cut.excess_again for cut in self.cuts]
        least, most = min(excesses), max(excesses)
        what = "its cuts cost" if whole else "cuts of such a tree of a sample cost"
        if _percent(least) == _percent(most) == _percent(0.0):
            return f"{what} as much as those of the exact tree"
        ends = f"between {_more_or_less(least)} and {_more_or_less(most)}"
        if _percent(least) == _percent(most):
            ends = _more_or_less(most)
        return f"{what} {ends} than those of the exact one"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows: list[tuple[str, ...]]
        head = ("clusters", "cost above", "again", "agreement")
        rows = [
            (
                f"{cut.n_clusters:,}",
                _percent(cut.excess),
                _percent(cut.excess_again),
                f"{cut.agreement:.2f}",
            )
            for cut in self.cuts
        ]
        return head, rows

    def _caption(self) -> str:
        rows = "all" if self.n_rows == self.n_leaves else "a sample of"
        return f"Cuts beside the exact tree of {rows} {self.n_rows:,} rows"

    def __str__(self) -> str:
        head, rows = self._table()
        widths = [max(len(line[k]) for line in (head, *rows)) for k in range(len(head))]
        lines = ["   ".join(map(str.rjust, line, widths)) for line in (head, *rows)]
        return "\n".join([self.sentence, "", self._caption(), *(f"  {line}" for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastrbhc.plotting import html

        return html.grid(f"{self.sentence} {self._caption()}:", *self._table())

    def to_pandas(self) -> Any:
        """The cuts as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per cut, with the attributes of `CutComparison` and both excesses.

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> report = fastrbhc.linkage(X, "ward").approximation(X, n_clusters=[5])
        >>> report.to_pandas()[["n_clusters", "excess", "agreement"]].values.tolist()
        [[5.0, 0.0, 1.0]]
        """
        pd = require("pandas", "to_pandas")
        rows = [(*cut, cut.excess, cut.excess_again) for cut in self.cuts]
        return pd.DataFrame(rows, columns=[*CutComparison._fields, "excess", "excess_again"])


def _percent(share: float) -> str:
    """A share in percent, without a minus before 0."""
    return f"{round(100.0 * share, 1) + 0.0:.1f} %"


def _more_or_less(share: float) -> str:
    return f"{_percent(abs(share))} {'less' if round(100 * share, 1) < 0 else 'more'}"
