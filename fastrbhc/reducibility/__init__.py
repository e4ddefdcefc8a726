"""Violations of reducibility in a tree: counted in `audit`, told in `report`, seen by `compare`."""

from __future__ import annotations

from fastrbhc.reducibility.compare import first_departure
from fastrbhc.reducibility.report import Band, ReducibilityReport, Worst

__all__ = ["Band", "ReducibilityReport", "Worst", "first_departure"]
