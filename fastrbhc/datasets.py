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
    stored = resources.files("fastrbhc").joinpath("data", "optdigits.npz").read_bytes()
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]
