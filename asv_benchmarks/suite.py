"""The benchmarks as a whole: where they are, and which of them are quick."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCHMARKS = HERE / "benchmarks"
RESULTS = ROOT / ".asv" / "results"
ENVIRONMENTS = ROOT / ".asv" / "environments.json"  # versions installed, by environment and commit

_SMALL_TREES = (
    # All algorithms and backends for one family per geometry, one combination for the others.
    r"spherical_gaussian', '\w+', '\w+', 1000, 2\)",
    r"(gaussian|poisson)', '(greedy|nn_chain)', '\w+', 1000, 2\)",
    r"(multinomial|bernoulli|exponential)', 'greedy', 'kd_tree', 1000, 2\)",
    r"(spherical_gaussian|gaussian|poisson)', 'greedy', 'brute', 1000, 8\)",
    r"(spherical_gaussian|poisson)', 'greedy', 'brute', 1000, 32\)",
    r"(gaussian|poisson)', 'greedy', 'kd_tree', 10000, 2\)",
)

# What `make bench` and `make bench-compare` run: regular expressions for names with parameters, as
# asv writes them. A test checks that each of them matches something.
QUICK = (
    *(rf"^linkage\.Trees\.time_tree\('{small}" for small in _SMALL_TREES),
    r"^linkage\.Scaling\.time_ward\(10{3,5}, ",
    r"^linkage\.Threads\.time_ward\(100000, ",
    r"^linkage\.Threshold\.",
    r"^thresholds\..*(spherical_gaussian|gaussian|poisson)', 10{3,4}\)",
    r"^cuts\.",
    r"^memory\.Ward\.\w+\(10{4,5}\)",
    r"^memory\.Families\..*'(spherical_gaussian|gaussian|poisson)', 3\)",
    r"^startup\.Import\.",
    r"^distributed\.\w+\.\w+\(100000\b(?!, 10000)",
    r"^audit\.Audit\.track_(exact|violations)\(.*, 10000\)",
    r"^bhc\.Models\.time_tree\('\w+', 1000\)",
    r"^ratios\.WardAgainstPeers\.track_auto\('\w+', 2000, ",
    r"^ratios\.AgainstNeighbours\..*'(spherical_gaussian|poisson)', 2\)",
    r"^ratios\.SmallTrees\.",
    r"^ratios\.AgainstOurselves\.",
)

# Ratios to peers are left out when two versions of our package are compared: they would only add
# noise of the peers.
QUICK_TO_COMPARE = tuple(pattern for pattern in QUICK if not pattern.startswith(r"^ratios\."))


class Case(NamedTuple):
    """A benchmark with one combination of its parameters."""

    name: str
    index: int | None  # among all combinations; None without parameters
    parameters: tuple[str, ...]
    kind: str  # "time", "peakmemory" or "track"
    unit: str

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name

    @property
    def identifier(self) -> str:
        """The name as asv expects it."""
        return self.name if self.index is None else f"{self.name}-{self.index}"


def cases(benchmark: dict[str, Any]) -> Iterator[Case]:
    """All combinations of the parameters of a benchmark, given asv's description of it."""
    name, kind, unit = benchmark["name"], benchmark["type"], benchmark["unit"]
    if not benchmark["params"]:
        yield Case(name, None, (), kind, unit)
        return
    for index, parameters in enumerate(itertools.product(*benchmark["params"])):
        yield Case(name, index, parameters, kind, unit)


def chosen(all_cases: Iterable[Case], patterns: Iterable[str]) -> list[Case]:
    """The cases that match any of the regular expressions, as asv chooses them."""
    compiled = [re.compile(pattern) for pattern in patterns]
    return [case for case in all_cases if any(one.search(str(case)) for one in compiled)]
