"""Dask arrays and data frames: their partitions are written to the scratch folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastrbhc.distributed._partitions import Partition, Source, write_block
from fastrbhc.distributed._runners import OnDask, Runner


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
    blocks = (
        _blocks_of_frame(collection, weights, columns)
        if hasattr(collection, "columns")
        else (_blocks_of_array(collection, weights, columns))
    )
    from dask import compute, delayed

    tasks = [
        delayed(_write)(folder, number, *block, pure=False) for number, block in enumerate(blocks)
    ]
    if isinstance(runner, OnDask):
        results = runner.compute(tasks, done)
    else:
        results = []
        for task in tasks:  # one by one, as memory is short
            results += compute(task)
            done(len(results))
    partitions: list[Partition] = [partition for partition, _ in results]
    return Source(partitions, results[0][1])


def _blocks_of_array(array: Any, weights: Any, columns: Any) -> list[tuple[Any, Any, None]]:
    if columns is not None:
        raise ValueError("columns= is for data frames: choose the columns of an array yourself")
    if array.ndim != 2:
        raise ValueError(f"rows and columns were expected, got an array of shape {array.shape}")
    blocks = array.rechunk({1: -1}).to_delayed().ravel().tolist()
    if weights is None:
        return [(block, None, None) for block in blocks]
    if not hasattr(weights, "to_delayed") or weights.ndim != 1:
        raise ValueError("sample_weight for a Dask array is a Dask array with one axis")
    own = weights.to_delayed().ravel().tolist()
    if len(own) != len(blocks):
        raise ValueError(
            f"sample_weight has {len(own)} chunks, and the rows have {len(blocks)}: rechunk it"
        )
    return [(block, column, None) for block, column in zip(blocks, own, strict=True)]


def _blocks_of_frame(
    frame: Any, weights: Any, columns: Sequence[str] | None
) -> list[tuple[Any, None, tuple[list[str], str | None]]]:
    if weights is not None and not isinstance(weights, str):
        raise ValueError("sample_weight for a Dask data frame is the name of its column of weights")
    present = list(frame.columns)
    wanted = [name for name in present if name != weights] if columns is None else list(columns)
    absent = [name for name in (*wanted, *([weights] if weights else [])) if name not in present]
    if absent:
        raise ValueError(f"there is no column {absent[0]!r}; the columns are {present}")
    return [(block, None, (wanted, weights)) for block in frame.to_delayed()]


def _write(
    folder: Path,
    number: int,
    block: Any,
    weights: Any,
    columns: tuple[list[str], str | None] | None,
) -> tuple[Partition, list[str] | None]:
    if columns is not None:
        names, weight = columns
        weights = None if weight is None else block[weight].to_numpy()
        block = block[names]
    return write_block(folder, number, block if weights is None else (block, weights))
