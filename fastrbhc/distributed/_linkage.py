"""From partitions of rows to a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from fastrbhc._advice import warn_of_misfits
from fastrbhc._options import DEFAULT_GUESS, DEFAULT_MULTIPLIER
from fastrbhc._progress import Progress, compiling_shown
from fastrbhc._table import placed
from fastrbhc._validation import (
    check_audit,
    check_choice,
    check_count,
    check_threads,
    check_threshold,
)
from fastrbhc.distributed._assembly import dendrogram_of_stages
from fastrbhc.distributed._audit import audited_tree
from fastrbhc.distributed._collections import written
from fastrbhc.distributed._job import (
    Sample,
    division_for,
    enter,
    rows_each,
    splits_for,
    stages_of,
    surveyed,
)
from fastrbhc.distributed._job_folder import JobFolder
from fastrbhc.distributed._memory import check_memory_limit, sizes_within
from fastrbhc.distributed._partitions import Source, named_errors
from fastrbhc.distributed._runners import is_dask, runner_for
from fastrbhc.distributed._sources import Reading, source_of
from fastrbhc.distributed._tree import PartitionedDendrogram, of_stages
from fastrbhc.families import Family, as_family, geometry_of
from fastrbhc.families._interface import FamilyLike
from fastrbhc.families._missing import observe
from fastrbhc.families.product import IGNORE
from fastrbhc.thresholds import FROM_ROWS, FROM_TREE
from fastrbhc.tree.dendrogram import Dendrogram, forest_at
from fastrbhc.tree.origin import Chosen, Origin

_OUTPUTS = ("auto", "memory", "files")


@overload
def linkage(
    data: Any,
    family: FamilyLike | dict[Any, Any],
    *,
    threshold: float | str | None = ...,
    sample_weight: Any = ...,
    columns: Sequence[str] | None = ...,
    n_cells: int | None = ...,
    memory_limit: int | float | str | None = ...,
    scratch: str | Path | None = ...,
    output: Literal["memory"],
    client: Any = ...,
    n_jobs: int | None = ...,
    random_state: int = ...,
    progress: bool = ...,
    audit: bool | str = ...,
) -> Dendrogram: ...
@overload
def linkage(
    data: Any,
    family: FamilyLike | dict[Any, Any],
    *,
    threshold: float | str | None = ...,
    sample_weight: Any = ...,
    columns: Sequence[str] | None = ...,
    n_cells: int | None = ...,
    memory_limit: int | float | str | None = ...,
    scratch: str | Path | None = ...,
    output: Literal["files"],
    client: Any = ...,
    n_jobs: int | None = ...,
    random_state: int = ...,
    progress: bool = ...,
    audit: bool | str = ...,
) -> PartitionedDendrogram: ...
@overload
def linkage(
    data: Any,
    family: FamilyLike | dict[Any, Any],
    *,
    threshold: float | str | None = ...,
    sample_weight: Any = ...,
    columns: Sequence[str] | None = ...,
    n_cells: int | None = ...,
    memory_limit: int | float | str | None = ...,
    scratch: str | Path | None = ...,
    output: str = ...,
    client: Any = ...,
    n_jobs: int | None = ...,
    random_state: int = ...,
    progress: bool = ...,
    audit: bool | str = ...,
) -> Dendrogram | PartitionedDendrogram: ...
def linkage(
    data: Any,
    family: FamilyLike | dict[Any, Any],
    *,
    threshold: float | str | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    n_cells: int | None = None,
    memory_limit: int | float | str | None = None,
    scratch: str | Path | None = None,
    output: str = "auto",
    client: Any = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool = False,
    audit: bool | str = False,
) -> Dendrogram | PartitionedDendrogram:
    """The tree of rows that do not fit into memory, or that live on several machines.

    Space is cut into cells. The rows of each cell are merged as far as nothing outside the cell can
    be nearer, and then what is left of all cells: see ``docs/beyond-one-machine.md``. For a
    reducible family, such as "ward", the tree is that of `fastrbhc.linkage`, to the bit.

    Parameters
    ----------
    data : path, array, data frame, Dask collection or iterator of blocks
        An ``.npy`` file, a parquet file or a folder of them; an array, best a memory map; a data
        frame; a Dask array or data frame; or blocks of rows one after another, each an array, a
        data frame or a pair of rows and weights.
    family : str, record or dict
        A family whose columns are separate: see `fastrbhc.linkage`.
    threshold : float or {"gap", "evidence", "kmeans"}, optional
        λ, as in `fastrbhc.linkage`. A number gives the forest that is left at λ; "kmeans" looks at
        a sample of the rows with their total weight, "gap" and "evidence" at the top of the tree.
    sample_weight : str, array or path, optional
        Weights of the rows: the name of a column of data frames and parquet files; for arrays an
        array of the same kind, or an ``.npy`` file. A weight of 0 is refused.
    columns : sequence of str, optional
        The columns of parquet files and data frames to take; by default all others than that of the
        weights.
    n_cells : int, optional
        The number of cells, rounded up to a power of 2. By default so many that the rows of a cell
        fit into the memory of a task, and that all workers have enough to do. A call that goes on
        with an earlier one has the cells of that.
    memory_limit : int, float or str, optional
        What a task may take, in bytes or as a text such as "4GB". By default half of the memory of
        the machine, or 60 % of that of a worker for each of its threads.
    scratch : path, optional
        A folder for what does not fit into memory: about 60 bytes per row and 8 per value, and 8
        per value more for blocks and Dask collections; more in three columns and beyond, where
        cells leave more. It has to be one that all workers see. A call that was interrupted goes on
        where it was if it is repeated with the same folder; one call at a time works there. By
        default a temporary one, which is removed.
    output : {"auto", "memory", "files"}, default="auto"
        "memory" returns a `Dendrogram`, and "files" a `PartitionedDendrogram`, whose merges stay
        on disk. "auto" chooses by the memory limit: a row takes 112 bytes in memory.
    client : dask.distributed.Client, optional
        Whose workers do the work. By default the current one if the data are a Dask collection;
        without one, the cells are merged one after another in this process.
    n_jobs : int, optional
        Number of threads in this process, as in `fastrbhc.linkage`. Workers of Dask have threads of
        their own.
    random_state : int, default=0
        Seed of the sample that decides where space is cut. The tree does not depend on it if the
        family is reducible.
    progress : bool, default=False
        Show progress bars.
    audit : bool or "sample", default=False
        Count violations of reducibility and compare with the greedy tree, as in
        `fastrbhc.linkage`. It needs all rows and the tree in memory, unless the family is
        reducible.

    Returns
    -------
    Dendrogram or PartitionedDendrogram

    Raises
    ------
    ValueError
        Rows that the family does not take: the message names the partition and the row.
    FileNotFoundError
        A file that held a partition is gone.
    ScratchFullError
        There is no room left in the scratch folder.
    RuntimeError
        A task whose workers died one after another, most often for lack of memory.

    Notes
    -----
    If the family is not reducible, as "poisson", each merge joins two clusters that are each
    other's nearest neighbours at that time, as in a nearest-neighbour chain. Such a tree can differ
    from the greedy one, and ``tree.certified`` is False unless an audit finds otherwise.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> import fastrbhc.distributed
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> blocks = (X[start : start + 100] for start in range(0, 1000, 100))
    >>> tree = fastrbhc.distributed.linkage(blocks, "ward", n_cells=4)
    >>> np.array_equal(tree.heights, fastrbhc.linkage(X, "ward").heights)
    True
    """
    distribution = as_family(family)
    _check_family(distribution)
    level, choice = _level(threshold)
    check_choice(output, "output", _OUTPUTS)
    wanted = check_audit(audit)
    if wanted is not False and output == "files":
        raise ValueError("an audit needs the tree in memory: output='memory'")
    if n_cells is not None:
        check_count(n_cells, "n_cells")
    n_threads = check_threads(n_jobs)
    runner = runner_for(data, client, n_threads)
    limit = check_memory_limit(memory_limit, runner.memory_limit)
    totals: dict[str, Any] = dict.fromkeys(("blocks", "reading", "dividing", "merging"))
    with (
        JobFolder(scratch, runner) as folder,
        compiling_shown(progress),
        Progress(progress, totals) as report,
    ):
        reading = Reading(limit, folder.path / "blocks", runner, rows_each(folder.path))
        source = _source(data, sample_weight, columns, reading, report)
        totals["reading"] = totals["dividing"] = len(source.partitions)
        distribution = _placed(distribution, source)
        surveys, sample = surveyed(source, distribution, runner, random_state, report)
        warn_of_misfits(sample.rows, distribution, source.names)
        observed = observe(distribution, sample.rows[:2])
        sizes = sizes_within(limit, geometry_of(distribution, observed), observed)
        division = division_for(sample.n_rows, n_cells, sizes, runner)
        division = enter(folder.path, distribution, source, surveys, random_state, division)
        splits = splits_for(sample, distribution, division)
        stages = stages_of(
            source, splits, distribution, division, folder.path, runner, n_threads, report
        )
        names = None if source.names is None else tuple(source.names)
        origin = Origin(distribution, sample.rows.shape[1], names, algorithm="cells")
        if choice in FROM_ROWS:
            level = _of_sample(choice, sample, distribution, random_state)
        fits = sample.n_rows <= sizes.in_a_tree
        if output == "memory" or (output == "auto" and fits) or wanted is not False:
            whole = dendrogram_of_stages(stages, sample.n_rows, origin)
            if wanted is not False:
                whole = audited_tree(whole, source, wanted, n_threads)
            level = FROM_TREE[choice](whole) if choice in FROM_TREE else level
            tree = forest_at(whole, level) if level < np.inf else whole
            return tree if threshold is None else replace(tree, chosen=_chosen(level, choice))
        counts = [found.n_rows for found in surveys]
        stored = of_stages(
            stages, folder.path, counts, origin, distribution.reducible, folder.owner
        )
        folder.keep()
        if threshold is None:
            return stored
        level = stored.choose_threshold(choice) if choice in FROM_TREE else level
        return stored.with_chosen(_chosen(level, choice))


def _chosen(level: float, choice: str | None) -> Chosen:
    return Chosen(level, choice or "given")


def _check_family(family: Family) -> None:
    """Refuse families for which nothing bounds what other cells may hold."""
    parts = [block.family for block in getattr(family, "blocks", ()) if block.family != IGNORE]
    for part in parts or [family]:
        if part.separable:
            continue
        raise ValueError(
            f"the family {part.name!r} cannot be merged cell by cell: its columns are not "
            "separate, and no bound is known of their dissimilarities from what other cells may "
            "hold. Use 'ward' for measurements, with SphericalGaussian(scale=...) if "
            "columns differ in width, 'poisson' or another family of counts, or a product of such "
            "families; or fastrbhc.linkage, if the rows fit into memory"
        )


def _level(threshold: Any) -> tuple[float, str | None]:
    """λ as a number, infinite for the whole tree, and how it is chosen otherwise."""
    if not isinstance(threshold, str):
        return check_threshold(threshold), None
    if threshold not in (*FROM_ROWS, *FROM_TREE):
        names = ", ".join(map(repr, (*FROM_TREE, *FROM_ROWS)))
        raise ValueError(f"threshold has to be one of {names} or a number, got {threshold!r}")
    return np.inf, threshold


def _source(
    data: Any,
    weights: Any,
    columns: Sequence[str] | None,
    reading: Reading,
    report: Callable[[str, int], None],
) -> Source:
    if is_dask(data):
        folder, runner = reading.folder, reading.runner
        return written(data, weights, columns, folder, runner, lambda done: report("blocks", done))
    return source_of(data, weights, columns, reading)


def _placed(family: Family, source: Source) -> Family:
    """The family with the positions of its columns, if it names them."""
    if not hasattr(family, "place"):
        return family
    for partition in source.partitions:
        if partition.n_rows:
            with named_errors(partition):
                some, _ = partition.read()
            return placed(family, some[:1], feature_names=source.names)
    return family


def _of_sample(choice: str, sample: Sample, family: Family, seed: int) -> float:
    """λ from some of the rows, which stand for all others: they share the total weight."""
    weights = np.ones(len(sample.rows)) if sample.weights is None else sample.weights
    weights = weights * (sample.total_weight / weights.sum())
    level: float = FROM_ROWS[choice](
        sample.rows, family, DEFAULT_GUESS, DEFAULT_MULTIPLIER, weights, seed
    )
    return level
