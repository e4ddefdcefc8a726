"""Data that ships with the package."""

from __future__ import annotations

import io
from importlib import resources

import numpy as np
from numpy.typing import NDArray


def load_digit_counts() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Handwritten digits as counts of ink, 150 of each digit.

    Bitmaps of 32 × 32 pixels were divided into 64 blocks of 4 × 4 pixels, and each column counts
    the pixels of one block that are on, from 0 to 16. The rows are a subset of *Optical Recognition
    of Handwritten Digits* by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0;
    ``data/README.md`` in the package describes how it was drawn.

    Returns
    -------
    X : ndarray of shape (1500, 64), uint8
        Counts; ``X[i].reshape(8, 8)`` is the picture of row i.
    y : ndarray of shape (1500,), uint8
        The digits.

    Notes
    -----
    Arithmetic in ``uint8`` overflows: convert X to another type before calculating with it. The
    functions of this package do so themselves.

    Examples
    --------
    >>> from fastrbhc.datasets import load_digit_counts
    >>> X, y = load_digit_counts()
    >>> X.shape, int(X.max())
    ((1500, 64), 16)
    >>> X[0].reshape(8, 8).shape
    (8, 8)
    """
    return _load("optdigits.npz")


def load_mnist_7x7() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """12,000 handwritten digits 0, 3, 7 and 9 as 7 × 7 grey values.

    The paper's Table 3 uses these four classes. Pictures of 28 × 28 pixels were divided into 49
    blocks of 4 × 4 pixels, and each column is the mean of one block. The rows are a subset of the
    *MNIST database of handwritten digits* by Y. LeCun, C. Cortes and C. J. C. Burges, CC BY-SA 3.0;
    ``data/README.md`` in the package describes how it was drawn.

    Returns
    -------
    X : ndarray of shape (12000, 49), uint8
        Grey values from 0 to 255; ``X[i].reshape(7, 7)`` is the picture of row i.
    y : ndarray of shape (12000,), uint8
        The digits.

    Examples
    --------
    >>> from fastrbhc.datasets import load_mnist_7x7
    >>> X, y = load_mnist_7x7()
    >>> X.shape, sorted(set(y.tolist()))
    ((12000, 49), [0, 3, 7, 9])
    """
    return _load("mnist_7x7.npz")


def _load(name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    stored = resources.files("fastrbhc").joinpath("data", name).read_bytes()
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        return np.ascontiguousarray(arrays["X"]), arrays["y"]
