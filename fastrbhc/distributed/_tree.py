"""A tree whose merges stay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from fastrbhc._stamps import version, warn_of
from fastrbhc._validation import check_choice, check_count, check_threshold
from fastrbhc.distributed._assembly import dendrogram_of_stages
from fastrbhc.distributed._crown import Undone, crown_of, last_undone, undone_at
from fastrbhc.distributed._labels import PartitionedLabels, write_labels
from fastrbhc.distributed._scratch import copy_files, new_folder, read_json, write_json
from fastrbhc.distributed._stage_files import StageFiles, stage_files
from fastrbhc.thresholds import FROM_TREE
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges, refuse_misplaced
from fastrbhc.tree.origin import Chosen, Origin, described, family_described

if TYPE_CHECKING:
    from fastrbhc.families import Family

_FORMAT, _VERSION = "fastrbhc.partitioned_dendrogram", 1
# The number of clusters whose tree is looked at first to choose λ.
_FIRST_TOP = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedDendrogram:
    """A tree over rows in partitions, in a folder of parquet files.

    It answers what `fastrbhc.Dendrogram` does where that makes sense beyond memory: ``cut`` writes
    labels partition by partition, ``top`` is the tree of the highest merges.

    A tree in a temporary folder goes with that, and refuses to be pickled: `save` it first. Other
    pickles hold the name of the folder, and not what is in it.

    Attributes
    ----------
    folder : Path
        Where the merges are.
    n_leaves : int
        Number of rows.
    sizes : tuple of int
        Number of rows of each partition.
    origin : Origin
        What the tree was built from: the family, the columns and their names.
    chosen : Chosen or None
        The λ that was chosen, where ``cut`` cuts by default.
    certified : bool
        Whether it is proved to be the greedy tree: because the family is reducible.

    Examples
    --------
    >>> import numpy as np, fastrbhc.distributed
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> tree = fastrbhc.distributed.linkage(X, "ward", n_cells=4, output="files")
    >>> tree
    <PartitionedDendrogram: 500 leaves in 1 partitions, 499 merges in 5 stages>
    >>> tree.top(3).n_leaves
    3
    """

    folder: Path
    n_leaves: int
    sizes: tuple[int, ...]
    origin: Origin
    certified: bool
    n_stages: int
    chosen: Chosen | None = None
    _owner: Any = field(default=None, repr=False)  # removes a temporary folder with the tree

    @property
    def family(self) -> Family | None:
        """The family that the tree was built with; None if that is unknown."""
        return self.origin.family

    @property
    def n_features(self) -> int | None:
        """Number of columns of the rows."""
        return self.origin.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns; None if they have none."""
        return self.origin.feature_names

    @cached_property
    def stages(self) -> list[StageFiles]:
        """The merges of each cell, and of what was left of them."""
        return [
            stage_files(number, self.folder / "stages" / f"{number:05d}")
            for number in range(self.n_stages)
        ]

    def cut(
        self,
        *misplaced: Never,
        threshold: float | None = None,
        n_clusters: int | None = None,
        output: str | Path | None = None,
    ) -> PartitionedLabels:
        """Labels of the rows at a threshold, or for a number of clusters, in files.

        Parameters
        ----------
        *misplaced
            None: 3 could be three clusters or λ = 3, so that one of the names has to be given.
        threshold : float, optional
            Keep the merges whose level is below it.
        n_clusters : int, optional
            Undo the last merges so that exactly this many clusters remain.
        output : path, optional
            A folder for the labels, new or empty. By default a temporary one, which is removed
            together with the labels.

        Returns
        -------
        PartitionedLabels
            The labels that `fastrbhc.Dendrogram.cut` gives. Without a threshold and a number, at
            the λ that was chosen for the tree.

        Examples
        --------
        >>> import numpy as np, fastrbhc.distributed
        >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
        >>> tree = fastrbhc.distributed.linkage(X, "ward", output="files")
        >>> tree.cut(n_clusters=2).to_numpy().tolist()
        [0, 0, 1, 1]
        """
        refuse_misplaced(misplaced)
        return write_labels(self.stages, self._undone(threshold, n_clusters), self.sizes, output)

    def _undone(self, threshold: Any, n_clusters: Any) -> Undone:
        if threshold is not None and n_clusters is not None:
            raise ValueError("cut needs either threshold or n_clusters, and not both")
        if threshold is None and n_clusters is None:
            if self.chosen is None:
                raise ValueError(
                    "cut needs either threshold or n_clusters: no λ was chosen for this tree"
                )
            threshold = self.chosen.threshold
        if threshold is not None:
            return undone_at(self.stages, check_threshold(threshold))
        return last_undone(self.stages, check_count(n_clusters, "n_clusters", self.n_leaves) - 1)

    def top(self, n_clusters: int) -> Dendrogram:
        """The tree of the highest merges, as one in memory.

        Parameters
        ----------
        n_clusters : int
            The number of its leaves. They are the clusters of a cut, in the order of their labels,
            and have their weights.

        Returns
        -------
        Dendrogram

        Examples
        --------
        >>> import numpy as np, fastrbhc.distributed
        >>> X = np.array([[0.0], [1.0], [5.0], [7.0], [8.0]])
        >>> tree = fastrbhc.distributed.linkage(X, "ward", output="files")
        >>> top = tree.top(3)
        >>> top.merges.tolist(), top.leaf_weights.tolist()
        ([[1, 2], [0, 3]], [2.0, 2.0, 1.0])
        """
        k = check_count(n_clusters, "n_clusters", self.n_leaves)
        crown = crown_of(self.stages, last_undone(self.stages, k - 1))
        tree = dendrogram_of_merges(crown.merges, crown.heights, crown.weights, origin=self.origin)
        return replace(tree, chosen=self.chosen)

    def with_chosen(self, chosen: Chosen) -> PartitionedDendrogram:
        """The same tree with a λ that was chosen for it, which its folder says from now on."""
        tree = replace(self, chosen=chosen)
        write_json(self.folder / "tree.json", _content(tree))
        return tree

    def choose_threshold(self, by: str) -> float:
        """λ by a rule that looks at the heights of the tree.

        Parameters
        ----------
        by : {"gap", "evidence"}
            See `fastrbhc.gap_threshold` and `fastrbhc.evidence_threshold`.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np, fastrbhc.distributed
        >>> X = np.array([[0.0], [1.0], [5.0], [7.0], [8.0]])
        >>> tree = fastrbhc.distributed.linkage(X, "ward", output="files")
        >>> tree.cut(threshold=tree.choose_threshold("gap")).n_clusters
        3
        """
        check_choice(by, "by", tuple(FROM_TREE))
        most = _FIRST_TOP
        while True:
            k = min(most, self.n_leaves)
            level = FROM_TREE[by](self.top(k))
            # The choice stands if a larger top would not change it: it is well below the last one.
            if k == self.n_leaves or level == np.inf or level > self._level_of(k // 2):
                return level
            most *= 8

    def _level_of(self, n_clusters: int) -> float:
        """The level of the merge that leaves so many clusters, if it is undone."""
        undone = last_undone(self.stages, n_clusters - 1)
        kept = zip(self.stages, undone.kept, strict=True)
        return min(
            (float(stage.read_levels()[k]) for stage, k in kept if k < stage.n_merges),
            default=np.inf,
        )

    def to_dendrogram(self) -> Dendrogram:
        """The whole tree in memory: 40 bytes per row, and 112 while it is read.

        Returns
        -------
        Dendrogram
        """
        tree = dendrogram_of_stages(self.stages, self.n_leaves, self.origin)
        return replace(tree, chosen=self.chosen)

    def save(self, folder: str | Path) -> PartitionedDendrogram:
        """Copy the tree to another folder.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet.

        Returns
        -------
        PartitionedDendrogram
            The tree there; `fastrbhc.distributed.load` finds it again.
        """
        target = Path(folder).absolute()
        if target.exists():
            raise FileExistsError(f"{target} exists already: name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(target, "Name a folder on a larger disk for the tree") as files:
            (files / "stages").mkdir()
            for stage in self.stages:
                copy_files(stage.folder, files / "stages" / stage.folder.name)
            write_json(files / "tree.json", _content(self))
        return replace(self, folder=target, _owner=None)

    def __repr__(self) -> str:
        return (
            f"<PartitionedDendrogram: {self.n_leaves:,} leaves in {len(self.sizes):,} partitions, "
            f"{self.n_leaves - 1:,} merges in {self.n_stages:,} stages>"
        )


def of_stages(
    stages: Sequence[StageFiles],
    folder: Path,
    sizes: Sequence[int],
    origin: Origin,
    certified: bool,
    owner: Any,
) -> PartitionedDendrogram:
    """The tree of stages in a folder, which says so from now on."""
    tree = PartitionedDendrogram(
        folder, sum(sizes), tuple(sizes), origin, certified, len(stages), _owner=owner
    )
    write_json(folder / "tree.json", _content(tree))
    return tree


def load(folder: str | Path) -> PartitionedDendrogram:
    """The tree in a folder, as `PartitionedDendrogram.save` or ``scratch=`` have left it.

    Parameters
    ----------
    folder : path
        The folder with the file ``tree.json``.

    Returns
    -------
    PartitionedDendrogram

    Raises
    ------
    ValueError
        There is no tree, or one of another format, or it is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, fastrbhc.distributed
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> tree = fastrbhc.distributed.linkage(X, "ward", output="files")
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "tree"
    >>> tree.save(folder).n_leaves
    4
    >>> fastrbhc.distributed.load(folder).cut(n_clusters=2).to_numpy().tolist()
    [0, 0, 1, 1]
    """
    path = Path(folder).absolute()
    try:
        content = read_json(path / "tree.json")
    except (FileNotFoundError, NotADirectoryError):
        unfinished = (path / "job.json").exists()
        more = ": the job has not finished. Repeat its call to go on" if unfinished else ""
        raise ValueError(f"there is no tree in {path}{more}") from None
    if content.get("format") != _FORMAT:
        raise ValueError(f"{path / 'tree.json'} does not describe a tree")
    if content.get("version") != _VERSION:
        raise ValueError(
            f"the tree in {path} has the format {content.get('version')!r}, and this version of "
            f"fastrbhc ({version()}) reads {_VERSION}: use the version that wrote it, "
            f"{content.get('package_version')}, or a later one"
        )
    warn_of(content.get("package_version"), "tree")
    try:
        tree = _tree_of(path, content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path / 'tree.json'} is damaged: {what}") from error
    try:
        n_rows = sum(stage.n_leaves for stage in tree.stages if stage.of_rows)
    except FileNotFoundError as error:
        raise ValueError(f"the tree in {path} is not whole: {error.filename} is gone") from error
    if n_rows != tree.n_leaves:
        raise ValueError(
            f"the tree in {path} has {n_rows:,} rows in its files, and {tree.n_leaves:,} are "
            "expected: they do not belong together"
        )
    return tree


def _tree_of(path: Path, content: dict[str, Any]) -> PartitionedDendrogram:
    family, names, chosen = content["family"], content["feature_names"], content["chosen"]
    origin = Origin(
        None if family is None else family_described(family),
        content["n_features"],
        None if names is None else tuple(names),
        content["package_version"],
        algorithm="cells",
    )
    return PartitionedDendrogram(
        path,
        int(content["n_leaves"]),
        tuple(map(int, content["partitions"])),
        origin,
        bool(content["certified"]),
        int(content["n_stages"]),
        None if chosen is None else Chosen(float(chosen["threshold"]), chosen["by"]),
    )


def _content(tree: PartitionedDendrogram) -> dict[str, Any]:
    """What a file says of a tree, for `load`."""
    names, chosen = tree.feature_names, tree.chosen
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "package_version": tree.origin.version,
        "n_leaves": tree.n_leaves,
        "partitions": list(map(int, tree.sizes)),
        "n_stages": tree.n_stages,
        "family": None if tree.family is None else described(tree.family),
        "n_features": tree.n_features,
        "feature_names": None if names is None else list(names),
        "certified": tree.certified,
        # As text: JSON has no infinite numbers.
        "chosen": None if chosen is None else {"threshold": str(chosen.threshold), "by": chosen.by},
    }
