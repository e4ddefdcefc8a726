"""Labels of the rows of a tree in files, one file for each partition of the rows."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._optional import require
from fastrbhc.distributed._crown import Crown, Undone, crown_of
from fastrbhc.distributed._scratch import (
    TemporaryFolder,
    new_folder,
    read_table,
    write_array,
    write_json,
    write_table,
)
from fastrbhc.distributed._stage_files import StageFiles

# Rows whose labels are put into their order together: 8 bytes each.
_ROWS_AT_A_TIME = 50_000_000


@dataclass(frozen=True, eq=False)
class PartitionedLabels:
    """Labels of rows in partitions, in a folder of parquet files.

    File ``part-00012.parquet`` has the column ``label`` of the rows of partition 12, in their
    order. Labels are numbered as `fastrbhc.Dendrogram.cut` numbers them: the heaviest cluster is 0.

    Attributes
    ----------
    folder : Path
        Where they are.
    sizes : tuple of int
        Number of rows of each partition.
    weights : ndarray of shape (n_clusters,), float64
        Total weight of each cluster; without sample weights, its number of rows.

    Examples
    --------
    >>> import numpy as np, fastrbhc.distributed
    >>> X = np.repeat([[0.0], [9.0], [1.0]], 100, axis=0)
    >>> blocks = (X[start : start + 100] for start in (0, 100, 200))
    >>> tree = fastrbhc.distributed.linkage(blocks, "ward", output="files")
    >>> labels = tree.cut(n_clusters=2)
    >>> labels.weights.tolist(), [int(part[0]) for part in labels]
    ([200.0, 100.0], [0, 1, 0])
    """

    folder: Path
    sizes: tuple[int, ...]
    weights: NDArray[np.float64]
    _owner: Any = field(default=None, repr=False)  # removes a temporary folder with the labels

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.weights.size

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: int) -> NDArray[np.int64]:
        """The labels of one partition."""
        count = len(self.sizes)
        number = operator.index(number)
        if not -count <= number < count:
            raise IndexError(f"there are {count} partitions, and no number {number}")
        (labels,) = read_table(_file(self.folder, number % count), "label")
        return labels

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[number] for number in range(len(self)))

    def to_numpy(self) -> NDArray[np.int64]:
        """The labels of all rows, in memory.

        Returns
        -------
        ndarray of int64
        """
        return np.concatenate([*self]) if self.sizes else np.empty(0, np.int64)

    def to_dask(self) -> Any:
        """The labels as a Dask series with the same partitions.

        Labels in a temporary folder stay there until this process ends.

        Returns
        -------
        dask.dataframe.Series
        """
        frames = require("dask.dataframe", "a Dask series")
        if self._owner is not None:
            self._owner.stay()
        files = [str(_file(self.folder, number)) for number in range(len(self))]
        return frames.from_map(_series, files, meta=_meta())

    def beside(self, frame: Any, column: str = "label") -> Any:
        """A Dask data frame with the labels of its rows as one more column.

        Partitions are joined one by one, whatever their index. To assign `to_dask` would sort all
        rows by their index, which is that of the labels only by chance.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            The rows, in the partitions of which the tree was made.
        column : str, default="label"
            The name of the new column.

        Returns
        -------
        dask.dataframe.DataFrame
        """
        if frame.npartitions != len(self):
            raise ValueError(
                f"the frame has {frame.npartitions} partitions, and the labels have {len(self)}"
            )
        return frame.map_partitions(
            _labelled,
            self.to_dask(),
            column,
            meta=frame._meta.assign(**{column: np.empty(0, np.int64)}),
            align_dataframes=False,
        )

    def __repr__(self) -> str:
        return (
            f"<PartitionedLabels: {sum(self.sizes):,} rows in {len(self.sizes)} partitions, "
            f"{self.n_clusters:,} clusters, in {self.folder}>"
        )


def _file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.parquet"


def _series(path: str) -> Any:
    pandas = require("pandas", "a Dask series")
    return pandas.Series(read_table(Path(path), "label")[0], name="label")


def _labelled(rows: Any, labels: Any, column: str) -> Any:
    if len(rows) != len(labels):
        raise ValueError(f"a partition has {len(rows):,} rows, and {len(labels):,} labels")
    return rows.assign(**{column: labels.to_numpy()})


def _meta() -> Any:
    pandas = require("pandas", "a Dask series")
    return pandas.Series([], dtype=np.int64, name="label")


def write_labels(
    stages: Sequence[StageFiles],
    undone: Undone,
    sizes: Sequence[int],
    output: str | Path | None,
) -> PartitionedLabels:
    """The labels of a cut, partition by partition, in a folder that is new or empty."""
    owner = None
    if output is None:
        owner = TemporaryFolder()
        output = owner.path / "labels"
    folder = Path(output).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise FileExistsError(f"{folder} {what}: name a new folder for the labels")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder, "Name a folder on a larger disk for the labels") as files:
        crown = _write(stages, undone, sizes, files)
    return PartitionedLabels(folder, tuple(sizes), crown.weights, owner)


def _write(
    stages: Sequence[StageFiles], undone: Undone, sizes: Sequence[int], files: Path
) -> Crown:
    named: list[tuple[Path, Path]] = []

    def keep(rows: NDArray[np.int64], names: NDArray[np.int64]) -> None:
        paths = files / f"rows-{len(named)}.npy", files / f"names-{len(named)}.npy"
        for path, values in zip(paths, (rows, names), strict=True):
            write_array(path, values)
        named.append(paths)

    crown = crown_of(stages, undone, keep)
    ends = np.cumsum([0, *sizes])
    first = 0
    while first < len(sizes):
        last = max(
            first + 1, int(np.searchsorted(ends, ends[first] + _ROWS_AT_A_TIME, "right")) - 1
        )
        labels = np.empty(ends[last] - ends[first], np.int64)
        for rows_file, names_file in named:
            rows, names = (np.load(path, mmap_mode="r") for path in (rows_file, names_file))
            start, stop = np.searchsorted(rows, [ends[first], ends[last]])
            labels[rows[start:stop] - ends[first]] = crown.labels[names[start:stop]]
        for number in range(first, last):
            own = slice(ends[number] - ends[first], ends[number + 1] - ends[first])
            write_table(_file(files, number), {"label": labels[own]})
        first = last
    for paths in named:
        for path in paths:
            path.unlink()
    write_json(
        files / "labels.json",
        {"format": "fastrbhc.labels", "version": 1, "sizes": list(map(int, sizes))},
    )
    write_table(files / "clusters.parquet", {"weight": crown.weights})
    return crown
