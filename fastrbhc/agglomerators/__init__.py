"""Algorithms that turn statistics into merges."""

from __future__ import annotations

from fastrbhc.agglomerators._merges import Merges
from fastrbhc.agglomerators.greedy import greedy
from fastrbhc.agglomerators.levels import levels
from fastrbhc.agglomerators.nn_chain import nn_chain

ALGORITHMS = {"greedy": greedy, "nn_chain": nn_chain, "levels": levels}

__all__ = ["ALGORITHMS", "Merges", "greedy", "levels", "nn_chain"]
