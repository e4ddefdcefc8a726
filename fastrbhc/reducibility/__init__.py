"""Violations of reducibility: counted in `audit`, reported in `report`; trees in `compare`."""

from __future__ import annotations

from fastrbhc.reducibility.compare import first_departure
from fastrbhc.reducibility.report import Band, ReducibilityReport, Worst

__all__ = ["Band", "ReducibilityReport", "Worst", "first_departure"]
