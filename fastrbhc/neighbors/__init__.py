"""Backends that find nearest clusters, behind one contract."""

from __future__ import annotations

from fastrbhc.neighbors.brute import brute

BACKENDS = {"brute": brute}

__all__ = ["BACKENDS", "brute"]
