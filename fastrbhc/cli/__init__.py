"""The command ``fastrbhc``."""

from __future__ import annotations

from fastrbhc.cli.main import main

__all__ = ["main"]
