"""Methods of a tree that tell of its clusters in tables and words.

`Dendrogram` inherits them, so that its own module does not depend on how trees are presented. Their
dependencies are imported when they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fastrbhc.tree.origin import family_for

if TYPE_CHECKING:
    from fastrbhc.approximation.report import ApproximationReport
    from fastrbhc.assessment.report import ClusterAssessment
    from fastrbhc.families._interface import FamilyLike
    from fastrbhc.tree.goodness import Goodness


class Reports:
    """Base class of `Dendrogram`, with its methods for tables and reports."""

    def summary(
        self: Any,
        X: ArrayLike | None = None,
        *,
        threshold: float | None = None,
        n_clusters: int | None = None,
        family: FamilyLike | None = None,
        n_top: int | None = None,
    ) -> Any:
        """The clusters of a cut: size, weight, cost and, given the rows, what is typical of each.

        Up to 50 columns that is their means, for more the columns that tell it from the others.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d), optional
            The rows of the tree.
        threshold, n_clusters : float or int, optional
            Where to cut; by default at the λ that was chosen, or else the trees as they are.
        family : str or record, optional
            Another family of the mean parameters than that of the tree.
        n_top : int, optional
            The number of columns that are named for each cluster, in the place of means: by
            default 10 if there are more than 50 columns. 0 for means of however many columns.

        Returns
        -------
        pandas.DataFrame
            The columns are described in `fastrbhc.summaries.summary_of_clusters`.

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.summary(n_clusters=2)["cost"].tolist()
        [0.25, 1.0]

        Texts are told by their words:

        >>> import numpy as np
        >>> words = np.ones((4, 60))
        >>> words[:2, 7], words[2:, 8] = 30, 20
        >>> tree = fastrbhc.linkage(words, "multinomial")
        >>> tree.summary(words, n_clusters=2, n_top=2)["more_of"].tolist()
        ['x7 27×', 'x8 23×']
        """
        from fastrbhc.tree.summaries import summary_of_cut

        return summary_of_cut(
            self, X, threshold=threshold, n_clusters=n_clusters, family=family, n_top=n_top
        )

    def goodness(
        self: Any,
        X: ArrayLike,
        *,
        threshold: float | None = None,
        n_clusters: int | None = None,
        family: FamilyLike | None = None,
    ) -> Goodness:
        """How much rows vary within the clusters of a cut, beside what the family allows.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree. Their weights are those of the tree, and count as copies. Large
            sparse matrices stay sparse.
        threshold, n_clusters : float or int, optional
            Where to cut; by default at the λ that was chosen, or else the trees as they are.
        family : str or record, optional
            Another family than that of the tree.

        Returns
        -------
        Goodness
            Ratios per cluster and column, and for all clusters together. Printed, it is a table,
            and says in words if columns vary three times as much as the family allows.

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.negative_binomial(5, 5 / (5 + m), (200, 2)) for m in (3, 90)])
        >>> found = fastrbhc.linkage(X, "poisson").goodness(X, n_clusters=2)
        >>> print(found)  # doctest: +NORMALIZE_WHITESPACE
        cluster  size   x0  x1
              0   200  1.6   2
              1   200   20  20
            all   400   19  20
        Variance within clusters over the variance function of the family.
        2 of 2 columns vary within clusters at least 3 times as much as the family 'poisson' allows
        ('x1' 20 times, 'x0' 19 times): NegativeBinomial(dispersion=0.21) allows that.
        """
        from fastrbhc.tree.goodness import goodness_of_cut

        return goodness_of_cut(self, X, threshold=threshold, n_clusters=n_clusters, family=family)

    def stability(
        self: Any,
        X: ArrayLike,
        *,
        family: FamilyLike | None = None,
        threshold: float | None = None,
        n_clusters: int | None = None,
        n_resamples: int = 20,
        max_rows: int = 2_000,
        random_state: Any = 0,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> ClusterAssessment:
        """Whether the clusters of a cut are real: how well they come back, and a verdict on each.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree. Their weights are those of the tree. Wide sparse matrices stay
            sparse, and are compared with other populations: see ``docs/are-they-real.md``.
        family : str or record, optional
            Another family than the one that the tree remembers.
        threshold, n_clusters : float or int, optional
            Where to cut; by default the λ that was chosen for the tree, or the trees as they are.
        n_resamples : int, default=20
            Number of subsamples, each of half of the rows, drawn without replacement.
        max_rows : int, default=2000
            The largest number of rows in a subsample. Small clusters need more: below five rows in
            a subsample a cluster is at best doubtful.
        random_state : int, RandomState or None, default=0
            Seed of the subsamples and of the rows drawn for comparison. With the same seed the
            report is the same.
        n_jobs : int, optional
            Number of threads, see `linkage`.
        progress : bool, default=False
            Show a progress bar.

        Returns
        -------
        ClusterAssessment
            One entry per cluster, numbered as in ``cut``: a table, a picture, and a sentence.

        Notes
        -----
        Builds a tree of each subsample, and for each of the up to k − 1 splits that end a cluster
        40 to 60 trees of at most 1,000 rows drawn at random. The time for 100,000 rows is a few
        times that of their tree. If the tree is a forest, the whole tree is built first.

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> report = fastrbhc.linkage(X, "ward").stability(X, n_clusters=3)
        >>> print(report.sentence)
        None of the 3 clusters is distinguishable from chance.
        """
        from fastrbhc._gaps import refuse_gaps
        from fastrbhc._row_validation import check_rows
        from fastrbhc.assessment.assess import assess
        from fastrbhc.tree.origin import family_for

        known = family_for(self, family)
        refuse_gaps(X, known)
        threshold, n_clusters = self.cut_or_chosen(threshold, n_clusters)
        if threshold is None and n_clusters is None:
            n_clusters = self.n_trees
        return assess(
            self,
            check_rows(X, known, layout="auto"),
            known,
            self.cut(threshold=threshold, n_clusters=n_clusters),
            n_resamples=n_resamples,
            max_rows=max_rows,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )

    def approximation(
        self: Any,
        X: ArrayLike,
        *,
        family: FamilyLike | None = None,
        n_clusters: Sequence[int] | None = None,
        n_merges: int = 200,
        n_rows: int = 5_000,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> ApproximationReport:
        """How good an approximate tree is: merges of nearest pairs, and cuts beside exact ones.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree. Their weights are those of the tree.
        family : str or record, optional
            Another family than the one that the tree remembers.
        n_clusters : list of int, optional
            Cuts to compare; by default those of 10, 100 and 1,000 clusters that have 20 sampled
            rows per cluster.
        n_merges : int, default=200
            The number of merges that are compared with all clusters of their time.
        n_rows : int, default=5000
            The number of rows of the exact tree that cuts are compared with.
        random_state : int, RandomState or None, default=0
            Seed of both samples.
        n_jobs : int, optional
            Number of threads, see `linkage`.

        Returns
        -------
        ApproximationReport
            A sentence, a table, and the numbers in them.

        Notes
        -----
        All merges are made once more, and each of those drawn takes two values of d for every
        cluster of its time.

        Examples
        --------
        >>> import numpy as np
        >>> import fastrbhc
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> report = fastrbhc.linkage(X, "ward").approximation(X)
        >>> report.share, report.interval[1]
        (1.0, 1.0)
        """
        from fastrbhc._row_validation import check_rows
        from fastrbhc.approximation.examine import checked_examination

        known = family_for(self, family)
        return checked_examination(
            self,
            check_rows(X, known, layout="auto"),
            known,
            n_merges=n_merges,
            n_rows=n_rows,
            n_clusters=n_clusters,
            random_state=random_state,
            n_jobs=n_jobs,
        )
