"""Real data with known classes: digits that ship with the package, and the user's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fastrbhc._containers import as_matrix
from fastrbhc._files import Arrays
from fastrbhc.datasets import load_digit_counts, load_mnist_7x7
from fastrbhc.experiments._methods import Dataset
from fastrbhc.experiments._spec import Option

# As in the paper, section 4.2.
_MNIST_CLASSES = (0, 3, 7, 9)
_MNIST_ROWS = 3_000
_CALTECH_CLASSES = ("airplanes", "Motorbikes", "Faces_easy")

# The largest number of rows, and of entries, that a repeat samples from another file.
_ROWS = 3_000
_ENTRIES = 10_000_000

# Names of files on the command line.
MNIST_OPTION = Option(
    "mnist", {"metavar": "PATH", "help": "digits, an NPZ file with X (49 columns) and y"}
)
CALTECH_OPTION = Option(
    "caltech",
    {
        "metavar": "PATH",
        "help": "counts of visual words, an NPZ file with X or a CSR matrix, and y",
    },
)

Draw = Callable[[np.random.Generator], Dataset]


def mnist(family: Any, path: str | Path | None = None, scale: float = 1.0 / 255.0) -> Draw:
    """Samples of 3,000 digits 0, 3, 7 and 9; grey values times the scale.

    They are drawn from the digits that ship with the package, or from a file.
    """
    X, y = load_mnist_7x7() if path is None else read_labelled(path)
    ours = np.flatnonzero(np.isin(y, _MNIST_CLASSES))
    if X.shape[1] != 49 or len(ours) < _MNIST_ROWS:
        raise ValueError(
            f"{path} has to hold at least {_MNIST_ROWS:,} digits 0, 3, 7 and 9 in 49 columns; it "
            f"holds {len(ours):,} in {X.shape[1]}"
        )

    def draw(rng: np.random.Generator) -> Dataset:
        chosen = np.sort(rng.choice(ours, _MNIST_ROWS, replace=False))
        return Dataset(_dense(X[chosen]) * scale, y[chosen], family)

    return draw


def caltech(family: Any, path: str | Path, proportions: bool = False) -> Draw:
    """The 2,033 pictures of airplanes, motorbikes and faces as counts of visual words."""
    X, y = read_labelled(path, _CALTECH_CLASSES)
    rows = _dense(X)
    if proportions:
        rows = rows / rows.sum(axis=1, keepdims=True)
    data = Dataset(rows, y, family)
    return lambda rng: data


def digit_counts(family: Any) -> Draw:
    """The 1,500 digits that ship with the package, as counts."""
    X, y = load_digit_counts()
    data = Dataset(X.astype(np.float64), y, family)
    return lambda rng: data


def labelled_file(family: Any, path: str | Path) -> Draw:
    """Samples of 3,000 rows of a file, or fewer if there are very many columns."""
    X, y = read_labelled(path)
    size = min(_ROWS, max(1, _ENTRIES // X.shape[1]))

    def draw(rng: np.random.Generator) -> Dataset:
        chosen = np.arange(len(y))
        if len(y) > size:
            chosen = np.sort(rng.choice(len(y), size, replace=False))
        rows = _dense(X[chosen])
        if family.domain.needs_positive_total:
            kept = rows.sum(axis=1) > 0.0
            rows, chosen = rows[kept], chosen[kept]
        return Dataset(rows, y[chosen], family)

    return draw


def read_labelled(
    path: str | Path, classes: tuple[str, ...] | None = None
) -> tuple[Any, NDArray[Any]]:
    """Rows and classes from an NPZ file: X and y, or data, indices, indptr, shape and y.

    With ``classes``, only the rows of these classes are returned. They are identified by the names
    in the file's ``classes``; without these names, the file must have exactly that many classes.
    """
    arrays = Arrays(Path(path))
    names = set(arrays.names)
    if {"X", "y"} <= names:
        X = as_matrix(arrays["X"], str(path))
    elif {"data", "shape", "y"} <= names:
        X = arrays.sparse().tocsr()
    else:
        raise ValueError(
            f"{path} holds {', '.join(sorted(names))}; expected X and y, or data, indices, "
            "indptr, shape and y of a sparse matrix"
        )
    y = arrays["y"]
    titles = arrays["classes"] if "classes" in names else None
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise ValueError(f"{path}: X has shape {X.shape} and y {y.shape}: not one class per row")
    if classes is None:
        return X, y
    if titles is not None and set(classes) <= set(titles.tolist()):
        wanted = np.flatnonzero(np.isin(titles, classes))
    elif len(np.unique(y)) == len(classes):
        wanted = np.unique(y)
    else:
        raise ValueError(f"{path} does not say which rows are {', '.join(classes)}")
    ours = np.flatnonzero(np.isin(y, wanted))
    return X[ours], y[ours]


def _dense(X: Any) -> NDArray[np.float64]:
    rows = X.toarray() if scipy.sparse.issparse(X) else X
    return np.ascontiguousarray(rows, dtype=np.float64)
