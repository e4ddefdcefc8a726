"""Data that comes with the package."""

from __future__ import annotations

import io
from importlib import resources

import numpy as np
from numpy.typing import NDArray


def load_digit_counts() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Handwritten digits as counts of ink, 150 of each digit.

    A bitmap of 32 × 32 pixels was divided into 8 × 8 blocks, and each column counts the pixels of
    one block that are on, from 0 to 16. A subset of *Optical Recognition of Handwritten Digits* by
    E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0; ``data/README.md`` in
    the package tells how it was drawn.

    Returns
    -------
    X : ndarray of shape (1500, 64), uint8
        Counts; ``X[i].reshape(8, 8)`` is a picture of digit i.
    y : ndarray of shape (1500,), uint8
        The digits.

    Notes
    -----
    Sums of ``uint8`` differences overflow: cast X before calculating with it. The functions of
    this package do so by themselves.

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
    """Handwritten digits 0, 3, 7 and 9 as 7 × 7 grey values, 12,000 of them.

    The four classes of the paper's Table 3. A picture of 28 × 28 pixels was divided into 7 × 7
    blocks, and each column is the mean of one block. A subset of the *MNIST database of handwritten
    digits* by Y. LeCun, C. Cortes and C. J. C. Burges, CC BY-SA 3.0; ``data/README.md`` in the
    package tells how it was drawn.

    Returns
    -------
    X : ndarray of shape (12000, 49), uint8
        Grey values from 0 to 255; ``X[i].reshape(7, 7)`` is a picture of digit i.
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
