"""A kind of labelled data, and short ways to write down several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from calibration import labelled_drawn as drawn
from calibration import labelled_files as files
from fastrbhc.experiments._mixtures import MIXTURES


class Kind(NamedTuple):
    """One kind of data: its set, its name, the family for it, and a function for rows and classes.

    ``seen`` says whether rows of it are in an earlier set too, with other classes.
    """

    set: str
    name: str
    family: str
    source: Callable
    seen: bool = False

    def rows(self):
        """Rows (n, d) without constant columns, and the class of each."""
        X, y = self.source()
        return np.ascontiguousarray(X[:, X.std(axis=0) > 0]), y

    @property
    def heading(self):
        """The set, as it is called in the table of results."""
        return f"{self.set}, rows seen before" if self.seen else self.set


# The families of the mixtures of the paper; Gaussian rows are standardised, like measurements.
_FAMILIES = {"poisson": "poisson", "multinomial": "multinomial", "gaussian": "auto"}


def mixtures(set_, prefix):
    """The six mixtures of the paper, with other seeds for each prefix."""
    return [
        Kind(set_, name, _FAMILIES[name.split("_")[0]], partial(drawn.mixture, prefix + name, name))
        for name in MIXTURES
    ]


def keel_kinds(set_, names, folder, seen=False):
    """Tables of KEEL, from one line of names."""
    return [
        Kind(set_, name, "auto", partial(files.keel, name, folder), seen) for name in names.split()
    ]


def bundled_kinds(set_, names):
    """Tables of scikit-learn."""
    return [Kind(set_, name, "auto", partial(files.bundled, name)) for name in names]


def r_kinds(set_, rows, seen=()):
    """Tables of R from rows (name, package, item, label, columns to drop, word for the seed)."""
    return [
        Kind(
            set_,
            name,
            "auto",
            partial(files.r_table, package, item, label, drop, word=word or name),
            name in seen,
        )
        for name, package, item, label, drop, word in rows
    ]


def kinds(set_, family, sources, seen=False):
    """Kinds of one family, from a dictionary of names and sources."""
    return [Kind(set_, name, family, source, seen) for name, source in sources.items()]
