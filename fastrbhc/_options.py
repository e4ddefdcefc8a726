"""The options that `linkage`, `RBHC` and the command line share.

Importing this module loads nothing else, so that the command line lists its options at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastrbhc.families import Family

# The keys of ALGORITHMS and BACKENDS in the engine, which tests compare with these.
ALGORITHM_NAMES = ("auto", "greedy", "levels", "nn_chain")
# "approximate" is not a way to the same tree, as all others are: see `_build_approximate`.
APPROXIMATE = "approximate"
NEIGHBOR_NAMES = ("auto", "brute", "kd_tree", "inverted", APPROXIMATE)
# What NaN may mean: an error, or a cell that was not observed.
MISSING_NAMES = ("error", "ignore")
# Ways to choose λ: functions in `fastrbhc.selection`, for the first, and `fastrbhc.thresholds`.
THRESHOLD_NAMES = ("predictive", "gap", "evidence", "kmeans")
# The guess and the multiplier of "kmeans", if none are given.
DEFAULT_GUESS, DEFAULT_MULTIPLIER = 8, 4


@dataclass(frozen=True)
class LinkageOptions:
    """The options of a tree as the user gives them; `checked` validates and converts them."""

    algorithm: str = "auto"
    neighbors: str = "auto"
    threshold: float | str | None = None
    n_jobs: int | None = None
    progress: bool = False
    audit: bool | str = False
    missing: str = "error"

    def checked(self, family: Family) -> CheckedOptions:
        """The same options after validation; raises an error for invalid ones."""
        from fastrbhc._validation import (
            check_algorithm,
            check_audit,
            check_choice,
            check_missing,
            check_threads,
            check_threshold,
        )

        check_choice(self.algorithm, "algorithm", ALGORITHM_NAMES)
        check_choice(self.neighbors, "neighbors", NEIGHBOR_NAMES)
        check_algorithm(self.algorithm, family)
        check_missing(self.missing, family, self.algorithm)
        if self.neighbors == APPROXIMATE:
            self._check_approximate()
        choice = self.threshold if isinstance(self.threshold, str) else None
        if choice is not None and choice not in THRESHOLD_NAMES:
            names = ", ".join(map(repr, THRESHOLD_NAMES))
            raise ValueError(f"threshold has to be one of {names} or a number, got {choice!r}")
        return CheckedOptions(
            self.algorithm,
            self.neighbors,
            check_threshold(None if choice else self.threshold),
            check_threads(self.n_jobs),
            bool(self.progress),
            check_audit(self.audit),
            choice,
            self.missing,
        )

    def _check_approximate(self) -> None:
        """Reject options that have no meaning for approximate trees; see that pynndescent is there.

        Other libraries are asked for near neighbours, and the order of merging is that of d.
        """
        if self.algorithm not in ("auto", "greedy"):
            raise ValueError(
                f"algorithm={self.algorithm!r} finds the same tree in another order, and "
                "neighbors='approximate' another tree: leave one of them out"
            )
        if self.audit is not False:
            raise ValueError(
                "audit= certifies exact trees. With neighbors='approximate' leave it out, and ask "
                "tree.approximation(X) how good the tree is"
            )
        if self.missing != "error":
            raise ValueError(
                "missing='ignore' is not there with neighbors='approximate': neighbours are found "
                "by distances, and rows that were not observed in the same columns have none"
            )
        from fastrbhc._near_rows import require_near_rows

        require_near_rows()


def layout_for(neighbors: str) -> str:
    """How rows have to be stored for an option ``neighbors``; see `check_rows`."""
    if neighbors in ("auto", APPROXIMATE):
        return "auto"
    from fastrbhc._engine.neighbors.backends import BACKENDS

    backend = BACKENDS.get(neighbors)  # None for a word that is refused later
    return "sparse" if backend is not None and backend.sparse else "dense"


@dataclass(frozen=True)
class CheckedOptions:
    """Options that have been checked."""

    algorithm: str
    neighbors: str
    threshold: float  # infinite for a whole tree
    n_threads: int
    progress: bool
    audit: Any  # False, True or "sample"
    choice: str | None = None  # how the threshold is still to be chosen
    missing: str = "error"  # what NaN means
    connections: Any = None  # `Connections`, if only adjacent clusters merge


def of_a_sample(options: CheckedOptions) -> CheckedOptions:
    """Options for whole trees of samples: the same threads, and nothing shown or audited."""
    return CheckedOptions("auto", "auto", math.inf, options.n_threads, False, False)
