"""Violations of reducibility in a tree: counted in `audit`, told in `report`."""

from __future__ import annotations

from fastrbhc.reducibility.report import Band, ReducibilityReport, Worst, first_departure

__all__ = ["Band", "ReducibilityReport", "Worst", "first_departure"]
