"""Algorithms that turn statistics into merges."""

from __future__ import annotations

from fastrbhc.agglomerators.greedy import greedy
from fastrbhc.agglomerators.nn_chain import nn_chain

ALGORITHMS = {"greedy": greedy, "nn_chain": nn_chain}

__all__ = ["ALGORITHMS", "greedy", "nn_chain"]
