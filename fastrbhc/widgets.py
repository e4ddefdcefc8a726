"""A slider for λ, in notebooks."""

from __future__ import annotations

from fastrbhc.plotting.widgets import explore

__all__ = ["explore"]
