"""Choices that are left to the data: the number of clusters, and the smoothing.

Both are judged by prediction. Rows are divided into halves, the tree of one half is cut into
clusters, and each cut is an estimate of the density of the rows. The logarithm of that density at
the rows of the other half says how well the cut describes new rows.

``coordinates``
    Rows as points for estimates of density.
``halves``
    A sample of the rows, and its divisions into two halves.
``density``
    The density of a cut, a mixture of Gaussians.
``held_out``
    How well the cuts of trees predict held-out rows.
``smoothing``
    The smoothing of a family with ``smoothing="auto"``.
``number``
    The number of clusters: `predictive_threshold`.
"""
