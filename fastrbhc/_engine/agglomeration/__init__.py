"""Algorithms that turn statistics into merges."""

from __future__ import annotations

from fastrbhc._engine.agglomeration.greedy import greedy
from fastrbhc._engine.agglomeration.levels import levels
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.nn_chain import nn_chain

ALGORITHMS = {"greedy": greedy, "nn_chain": nn_chain, "levels": levels}

__all__ = ["ALGORITHMS", "Merges", "greedy", "levels", "nn_chain"]
