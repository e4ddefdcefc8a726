"""Backends that find nearest clusters, behind one contract."""

from __future__ import annotations

from fastrbhc._engine.neighbors.brute import brute
from fastrbhc._engine.neighbors.kd_tree import kd_tree

BACKENDS = {"brute": brute, "kd_tree": kd_tree}

__all__ = ["BACKENDS", "brute", "kd_tree"]
