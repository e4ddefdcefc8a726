"""How many rows a task takes at a time, so that it stays within a limit of memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from fastrbhc._containers import memory
from fastrbhc._engine.geometry.contract import storage

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# What the interpreter, the libraries and the compiled kernels take.
_BASE = 500_000_000
# The least that a worker of Dask may have.
_LEAST_OF_WORKER = 1_000_000_000
# Bytes that a row takes in the finished tree, and while it is put together.
_IN_A_TREE = 112
# Rows of a partition that is cut from an array: more would not be faster.
_MOST_ROWS = 2_000_000


class Sizes(NamedTuple):
    """Numbers of rows that fit into memory."""

    in_a_cell: int
    in_a_tree: int


def check_memory_limit(limit: Any, usual: int | None) -> int:
    """A limit in bytes: a number, or a text such as "4GB" or "4 GiB".

    None is for the usual limit, or half of the memory of the machine.
    """
    if limit is None:
        return memory() // 2 if usual is None else usual
    if isinstance(limit, str):
        found = re.fullmatch(r"([0-9.]+)\s*([kmgt]?)(i?)b?", limit.strip().lower())
        if not found or (found[3] and not found[2]):
            raise ValueError(f"memory_limit has to be like 4e9 or '4GB', got {limit!r}")
        unit = _BINARY[found[2]] if found[3] else _UNITS[found[2]]
        limit = float(found[1]) * unit
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise TypeError(f"memory_limit has to be a number of bytes or a text, got {limit!r}")
    if not limit >= 2 * _BASE:
        raise ValueError(
            f"memory_limit={limit:,.0f} bytes are too few: the libraries take {_BASE / 1e9:g} GB, "
            f"so that {2 * _BASE / 1e9:g} GB are the least"
        )
    return int(limit)


def limit_of_workers(workers: Sequence[dict[str, Any]]) -> int:
    """What a task may take on the workers of Dask, which share their memory among threads."""
    on_host = Counter(worker["host"] for worker in workers)
    limits = []
    for worker in workers:
        # Workers may have been told of no limit: then those on one machine share it.
        size = worker["memory_limit"] or memory() // on_host[worker["host"]]
        if size < _LEAST_OF_WORKER:
            raise ValueError(
                f"a worker of Dask has {size / 1e9:.2f} GB of memory, and the libraries alone take "
                f"{_BASE / 1e9:g}: start workers with at least {_LEAST_OF_WORKER / 1e9:g} GB, "
                "rather fewer of them"
            )
        # Dask pauses a worker at 80 % of its memory.
        limits.append(_BASE + (0.6 * size - _BASE) / worker["nthreads"])
    return int(min(limits))


def rows_at_a_time(limit: int, n_columns: int, n_rows: int, n_tasks: int) -> int:
    """How many rows of an array are one partition, if so many tasks run at the same time."""
    fitting = (limit - _BASE) // (4 * (24 * n_columns + 48))
    return int(max(1, min(_MOST_ROWS, fitting, -(-n_rows // n_tasks))))


def sizes_within(limit: int, geometry: Any, points: Any) -> Sizes:
    """How many rows fit, from a few of them and the limit of a task."""
    width = points.means.shape[1]
    # Rows as they came, as statistics and as distinct points, with hashes and positions.
    per_row = points.bytes_per_row(storage(geometry, width)) + 24 * width + 40
    room = limit - _BASE
    return Sizes(
        in_a_cell=max(1, int(0.8 * room / per_row)),
        in_a_tree=room // _IN_A_TREE,
    )
