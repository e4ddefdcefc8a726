"""What the measures of the tables mean, in a sentence each, for readers of the dashboard."""

from __future__ import annotations

import re

# By measure: the first pattern that is found in it.
_SENTENCES = (
    (
        r"^first call, empty cache",
        "How long the first tree on a new machine takes, compilation included. Y is what Numba "
        "takes for 21 small functions.",
    ),
    (
        r"^first call less a later call ÷ Y",
        "What it costs to compile for another number of columns, in the same unit.",
    ),
    (
        r"^first call less a later call, full cache",
        "How many seconds a new process waits before its first tree, once all is compiled.",
    ),
    (
        r"÷ KD$",
        "How long the whole tree takes. As long as SciPy's kd-tree takes to find the nearest "
        "neighbour of every row would be 1.",
    ),
    (r"÷ scipy linkage", "How long a small tree takes. As long as SciPy's would be 1."),
    (
        r"^memory at its peak",
        "How much memory a tree takes beside its rows: bytes for each row, or in all.",
    ),
    (r"^peak resident memory", "How much memory the process takes in all, in gigabytes."),
    (r"^growth of the time", "How many times as long the larger data take."),
    (r"^fastcluster", "How many times as fast as fastcluster's Ward method for rows."),
    (
        r"ward_tree",
        "How many times as fast as scikit-learn, whose trees of images are the same.",
    ),
    (
        r"minimum_spanning_tree",
        "How long a tree along the graph takes. As long as SciPy's minimum spanning tree of that "
        "graph would be 1.",
    ),
    (
        r"n²/2",
        "How long the tree takes. As long as NumPy takes for the costliest part of d alone, once "
        "for every pair of rows, would be 1.",
    ),
    (r"^one thread ÷ two threads", "How much a second thread helps: twice as fast would be 2."),
    (r"÷ whole tree", "Whether less than the whole tree takes less time."),
    (r"÷ time without audit", "What it costs to count every violation of reducibility."),
    (
        r"÷ SNN",
        "How long the tree of sparse rows takes. As long as scikit-learn takes to find the nearest "
        "neighbours of all rows would be 1.",
    ),
    (r"÷ time of the dense rows", "What it costs to store rows as sparse that have no zeros."),
    (r"÷ Ward on the same numbers", "What columns of three kinds cost over columns of one."),
    (r"columns of counts$", "What columns of two kinds cost over as many of the dearer kind."),
    (
        r"÷ NND$",
        "How long an approximate tree takes. As long as pynndescent takes for its index alone "
        "would be 1.",
    ),
    (
        r"^cost ÷ exact tree",
        "How well clusters of an approximate tree fit: 1 is as well as those of the exact tree.",
    ),
    (r"÷ linkage|that of linkage", "What it costs to leave the rows in files, or to Dask workers."),
    (r"^time of 1 worker", "How much a second worker helps: twice as fast would be 2."),
    (r"^left by", "The share of rows that cannot be merged within one cell of space."),
    (r"^scratch folder", "How many bytes of disk a row takes while its tree is being made."),
)


def sentence(measure: str) -> str:
    """What a measure means; empty for one that nobody has explained."""
    for pattern, text in _SENTENCES:
        if re.search(pattern, measure):
            return text
    return ""
