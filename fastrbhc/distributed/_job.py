"""The whole way, from partitions to the stages of a tree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.cells import Border, joined_border
from fastrbhc._engine.clusters.kd_cells import Splits, siblings, splits_of
from fastrbhc.distributed._dividing import Divided, Piece, Survey, divide, survey
from fastrbhc.distributed._memory import Sizes
from fastrbhc.distributed._partitions import Source
from fastrbhc.distributed._runners import Runner
from fastrbhc.distributed._scratch import read_json, write_json
from fastrbhc.distributed._stage_files import StageFiles
from fastrbhc.distributed._stages import Setting, merge_cell, merge_left
from fastrbhc.families import Family
from fastrbhc.families._missing import observe
from fastrbhc.tree.origin import described

# Rows that are drawn, in all, for the splits.
_SAMPLED = 200_000
# Cells for each task that runs at the same time, so that none has to wait long for the last one.
_CELLS_EACH = 4

_JOB = "job.json"

Report = Callable[[str, int], None]


class Sample(NamedTuple):
    """Rows drawn from all partitions."""

    rows: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    n_rows: int  # from which they were drawn
    total_weight: float


class Division(NamedTuple):
    """How the rows are divided; an interrupted job goes on with that of its folder."""

    n_cells: int
    in_one_place: int  # clusters that may be left when the last stage begins


def surveyed(
    source: Source, family: Family, runner: Runner, seed: int, report: Report
) -> tuple[list[Survey], Sample]:
    """All rows checked, and some of them."""
    share = _SAMPLED / max(source.n_rows, 1)
    tasks = [
        (part, family, int(np.ceil(min(1.0, share) * part.n_rows)), seed)
        for part in source.partitions
    ]
    surveys: list[Survey] = runner.map(survey, tasks, lambda done: report("reading", done))
    some = [(part, found) for part, found in zip(source.partitions, surveys, strict=True)]
    some = [(part, found) for part, found in some if found.n_rows]
    n_rows = sum(found.n_rows for _, found in some)
    if n_rows < 2:
        what = "is one row" if n_rows else "are no rows"
        raise ValueError(f"there {what}, and a tree needs at least 2")
    first, expected = some[0][0], some[0][1].n_columns
    for part, found in some:
        if found.n_columns != expected:
            raise ValueError(f"{part} has {found.n_columns} columns, and {first} has {expected}")
    weights = [found.weights for _, found in some if found.weights is not None]
    if weights and len(weights) < len(some):
        raise ValueError("some partitions have weights, and others have none")
    sample = Sample(
        np.concatenate([found.rows for _, found in some]),
        np.concatenate(weights) if weights else None,
        n_rows,
        sum(found.total_weight for _, found in some),
    )
    return surveys, sample


def division_for(n_rows: int, n_cells: int | None, sizes: Sizes, runner: Runner) -> Division:
    """The number of cells, a power of 2, so that each fits into memory and none has to wait."""
    if n_cells is None:
        n_cells = -(-n_rows // sizes.in_a_cell)
        # With few rows a task would be over before it has begun.
        busy = min(_CELLS_EACH * runner.n_at_a_time, n_rows // 50_000)
        if runner.n_at_a_time > 1:
            n_cells = max(n_cells, busy)
    power = 1 << max(n_cells - 1, 0).bit_length()
    return Division(power, sizes.in_a_cell)


def enter(
    folder: Path,
    family: Family,
    source: Source,
    surveys: Sequence[Survey],
    seed: int,
    division: Division,
) -> Division:
    """Begin or resume the job of a folder, which holds no other one."""
    rows = hashlib.sha256(repr([found.digest for found in surveys]).encode()).hexdigest()
    content = {
        "format": "fastrbhc.job",
        "version": 1,
        "family": described(family),
        "names": source.names,
        "seed": seed,
        "partitions": [found.n_rows for found in surveys],
        "rows": rows,
    }
    content = json.loads(json.dumps(content))
    path = folder / _JOB
    if not path.exists():
        write_json(path, content | {"division": division._asdict()})
        return division
    found = read_json(path)
    for key, value in content.items():
        if found.get(key) != value:
            more = ""
            if key == "partitions" and sum(found.get(key) or [0]) == source.n_rows:
                more = " (with the memory_limit of that call they may be the same)"
            raise ValueError(
                f"the folder {folder} holds the work of another job: it differs in {key!r}{more}. "
                "Give another folder as scratch=, or remove this one"
            )
    return Division(**found["division"])


def rows_each(folder: Path) -> int | None:
    """The number of rows in the partitions of the job of a folder, if one has been begun there.

    A call that goes on with it may have another number of workers, and has to divide arrays alike.
    """
    path = folder / _JOB
    return read_json(path).get("partitions", [None])[0] if path.exists() else None


def splits_for(sample: Sample, family: Family, division: Division) -> Splits:
    """Where space is cut."""
    rows: Any = observe(family, sample.rows)
    return splits_of(rows.means, division.n_cells)


def stages_of(
    source: Source,
    splits: Splits,
    family: Family,
    division: Division,
    folder: Path,
    runner: Runner,
    n_threads: int,
    report: Report,
) -> list[StageFiles]:
    """All stages, the last of which has the root.

    ``n_threads`` are for the last stage, which begins with what all cells have left.
    """
    tasks: list[Any] = [(part, family, splits, folder / "rows") for part in source.partitions]
    partitions: list[Divided] = runner.map(divide, tasks, lambda done: report("dividing", done))
    borders = [joined_border(each) for each in zip(*(p.borders for p in partitions), strict=True)]
    n_cells = splits.n_cells
    setting = Setting(family, splits.n_columns, folder / "stages", runner.n_threads)
    tasks = [
        (cell, pieces, _outside(borders, 1, cell), setting)
        for cell, pieces in enumerate(_pieces(partitions, n_cells))
    ]
    cells: list[StageFiles] = runner.map(merge_cell, tasks, lambda done: report("merging", done))
    stages, size = list(cells), 1
    while size < n_cells:
        if sum(cell.n_left for cell in cells) <= division.in_one_place or 2 * size == n_cells:
            last = merge_left(len(stages), cells, [], setting._replace(n_threads=n_threads))
            report("merging", len(stages) + 1)
            return [*stages, last]
        size *= 2
        tasks = [
            (
                len(stages) + place,
                cells[2 * place : 2 * place + 2],
                _outside(borders, size, place),
                setting,
            )
            for place in range(n_cells // size)
        ]
        so_far = len(stages)
        cells = runner.map(merge_left, tasks, partial(_add_to, report, so_far))
        stages += cells
    return stages


def _pieces(partitions: Sequence[Divided], n_cells: int) -> list[list[Piece]]:
    """Where the rows of each cell are."""
    # A task gets what concerns its cell, which is far less than what is known of all partitions.
    first_rows = np.cumsum([0, *(int(part.starts[-1]) for part in partitions)]).tolist()
    found: list[list[Piece]] = []
    for cell in range(n_cells):
        pieces = [
            part.piece(cell, first) for part, first in zip(partitions, first_rows, strict=False)
        ]
        found.append([piece for piece in pieces if piece.stop > piece.start])
    return found


def _add_to(report: Report, before: int, done: int) -> None:
    report("merging", before + done)


def _outside(borders: Sequence[Border], size: int, place: int) -> list[Border]:
    """The boxes around all others of the cells, if so many are put together each time."""
    halves = siblings(len(borders) // size, place)
    return [joined_border(borders[size * first : size * last]) for first, last in halves]
