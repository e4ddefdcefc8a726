"""The options that `linkage`, `RBHC` and the command line share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.planning.execution import ALGORITHMS
from fastrbhc._validation import (
    check_algorithm,
    check_audit,
    check_choice,
    check_threads,
    check_threshold,
)
from fastrbhc.families import Family

ALGORITHM_NAMES = ("auto", *ALGORITHMS)
NEIGHBOR_NAMES = ("auto", *BACKENDS)

# The number of clusters that the k-means heuristic starts from if nobody guesses one.
DEFAULT_GUESS = 8


@dataclass(frozen=True)
class LinkageOptions:
    """The options of a tree as the user gives them; `checked` validates and converts them."""

    algorithm: str = "auto"
    neighbors: str = "auto"
    threshold: float | None = None
    n_jobs: int | None = None
    progress: bool = False
    audit: bool | str = False

    def checked(self, family: Family) -> CheckedOptions:
        """The same options after validation; raises an error for invalid ones."""
        check_choice(self.algorithm, "algorithm", ALGORITHM_NAMES)
        check_choice(self.neighbors, "neighbors", NEIGHBOR_NAMES)
        check_algorithm(self.algorithm, family)
        return CheckedOptions(
            self.algorithm,
            self.neighbors,
            check_threshold(self.threshold),
            check_threads(self.n_jobs),
            bool(self.progress),
            check_audit(self.audit),
        )


@dataclass(frozen=True)
class CheckedOptions:
    """Options that have been checked."""

    algorithm: str
    neighbors: str
    threshold: float  # infinite for a whole tree
    n_threads: int
    progress: bool
    audit: Any  # False, True or "sample"
