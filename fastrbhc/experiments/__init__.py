"""The paper's experiments on reducibility, each a function and a file.

On the command line: ``fastrbhc reproduce table1`` and ``fastrbhc reproduce figure1``.
"""

from __future__ import annotations

from fastrbhc.experiments.figure1 import figure1
from fastrbhc.experiments.table1 import table1

__all__ = ["figure1", "table1"]
