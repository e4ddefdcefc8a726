"""The experiments of the paper, and two more, one per file.

On the command line: ``fastrbhc reproduce`` with ``table1``, ``table2``, ``table3``, ``figure1``,
``thresholds`` or ``mnist``.
"""

from __future__ import annotations

from fastrbhc.experiments.figure1 import figure1
from fastrbhc.experiments.mnist import mnist_settings
from fastrbhc.experiments.table1 import table1
from fastrbhc.experiments.table2 import table2
from fastrbhc.experiments.table3 import table3
from fastrbhc.experiments.thresholds import compare_thresholds

__all__ = ["compare_thresholds", "figure1", "mnist_settings", "table1", "table2", "table3"]
