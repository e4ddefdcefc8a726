"""How good approximate trees are: examined in `examine`, reported in `report`."""

from __future__ import annotations

from fastrbhc.approximation.report import ApproximationReport, CutComparison

__all__ = ["ApproximationReport", "CutComparison"]
