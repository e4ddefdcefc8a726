"""Dask arrays and data frames: their partitions are written to the scratch folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastrbhc._optional import require
from fastrbhc.distributed._partitions import Partition, Source, names_to_take, write_block
from fastrbhc.distributed._runners import OnDask, Runner
from fastrbhc.distributed._sources import source_of_blocks

# Rows, weights or None, names of columns to take or None, name of the column of weights or None.
_Block = tuple[Any, Any, Sequence[str] | None, str | None]


def written(
    collection: Any,
    weights: Any,
    columns: Sequence[str] | None,
    folder: Path,
    runner: Runner,
    done: Callable[[int], None],
) -> Source:
    """The partitions of a collection, each computed once.

    They are written because a collection may be the end of a long computation, which two passes
    would do twice.
    """
    dask = require("dask", "a Dask collection")
    if hasattr(collection, "columns") and getattr(collection, "ndim", 2) == 2:
        blocks = _blocks_of_frame(collection, weights, columns)
    else:
        blocks = _blocks_of_array(collection, weights, columns)
    tasks = [
        dask.delayed(_write)(folder, number, *block, pure=False)
        for number, block in enumerate(blocks)
    ]
    partitions: list[Partition] = []
    if isinstance(runner, OnDask):
        partitions = runner.compute(tasks, done)
    else:
        for task in tasks:  # one by one, as memory is short
            partitions += dask.compute(task)
            done(len(partitions))
    return source_of_blocks(partitions)


def _blocks_of_array(array: Any, weights: Any, columns: Any) -> list[_Block]:
    if getattr(array, "ndim", None) != 2 or not hasattr(array, "rechunk"):
        shape = getattr(array, "shape", "unknown")
        raise ValueError(
            f"a Dask array with rows and columns or a data frame was expected, got the type "
            f"{type(array).__name__} of shape {shape}"
        )
    if columns is not None:
        raise ValueError("columns= is for data frames: choose the columns of an array yourself")
    blocks = array.rechunk({1: -1}).to_delayed().ravel().tolist()
    if weights is None:
        return [(block, None, None, None) for block in blocks]
    if not hasattr(weights, "to_delayed") or weights.ndim != 1:
        raise ValueError("sample_weight for a Dask array is a Dask array with one axis")
    own = weights.to_delayed()
    own = own.ravel().tolist() if hasattr(own, "ravel") else own  # a list of those of a series
    if len(own) != len(blocks):
        raise ValueError(
            f"sample_weight has {len(own)} chunks, and the rows have {len(blocks)}: rechunk it"
        )
    return [(block, column, None, None) for block, column in zip(blocks, own, strict=True)]


def _blocks_of_frame(frame: Any, weights: Any, columns: Sequence[str] | None) -> list[_Block]:
    if weights is not None and not isinstance(weights, str):
        raise ValueError("sample_weight for a Dask data frame is the name of its column of weights")
    wanted = names_to_take([str(name) for name in frame.columns], columns, weights)
    return [(block, None, wanted, weights) for block in frame.to_delayed()]


def _write(
    folder: Path,
    number: int,
    block: Any,
    weights: Any,
    columns: Sequence[str] | None,
    weight: str | None,
) -> Partition:
    pair = block if weights is None else (block, weights)
    return write_block(folder, number, pair, columns, weight)
