"""Columns of different kinds: each block of columns has a family of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.contract import storage
from fastrbhc._engine.geometry.product import product_geometry
from fastrbhc.families._columns import Table, placed_columns
from fastrbhc.families._interface import Domain, as_family, family

# The key of columns that belong to no block.
IGNORE = "ignore"


class Block(NamedTuple):
    """Columns of one kind.

    Parameters
    ----------
    family : str or record
        Their family.
    columns : list, slice, mask or callable
        Names or positions of columns, a slice of positions, one truth value for every column, or a
        function of X that returns names, such as ``sklearn.compose.make_column_selector``. One name
        or position stands for itself.
    weight : float, default=1.0
        A factor of the block's dissimilarity, one over a temperature. Two says that every row
        counts as two as far as these columns are concerned.

    Examples
    --------
    >>> from fastrbhc.families import Block
    >>> Block("poisson", ["visits", "orders"], weight=0.5).columns
    ['visits', 'orders']
    """

    family: Any
    columns: Any
    weight: float = 1.0


@family("product", separable=False, reducible=False, domain=Domain())
class Product(NamedTuple):
    """A product of families: φ(t) = Σ c·φ_b(t_b) over blocks of columns.

    The columns of different blocks are independent given the cluster. A product of exponential
    families is one again, so d is the sum of the blocks' dissimilarities, and the tree is exact. A
    product is not reducible in general, even if its families are.

    In a product every row is one observation. A multinomial block therefore takes the proportions
    of each row, whatever its total; its ``weight`` says how much these count.

    Parameters
    ----------
    blocks : dict or tuple of Block
        From families to columns, ``{"poisson": ["visits"], "gaussian": ["age", "income"]}``, or
        blocks. A value of the dict may be a pair of columns and a weight. Columns of the key
        "ignore" are left out; all others have to be in exactly one block.
    n_columns : int
        Number of columns of the rows, once it is known.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.families import Block, Product
    >>> X = [[0, 30.0], [1, 31.0], [2, 30.0], [19, 30.0], [18, 31.0]]
    >>> fastrbhc.linkage(X, {"poisson": [0], "ward": [1]}).cut(n_clusters=2).tolist()
    [0, 0, 0, 1, 1]
    >>> family = Product((Block("poisson", [0], weight=0.01), Block("ward", [1])))
    >>> fastrbhc.linkage(X, family).cut(n_clusters=2).tolist()
    [0, 1, 0, 0, 1]

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749.
    """

    blocks: Any = ()
    n_columns: int = 0

    def normalised(self) -> Product:
        """The same with blocks as records, and each family with its parameters."""
        blocks = _blocks(self.blocks)
        return Product(tuple(map(_checked, blocks)), int(self.n_columns))

    def check(self) -> None:
        if not any(block.family != IGNORE for block in self.blocks):
            raise ValueError("a product of families needs at least one block of columns")

    def place(self, table: Table) -> Product:
        """The same with positions instead of names, and with the levels of categories."""
        names = [IGNORE if block.family == IGNORE else block.family.name for block in self.blocks]
        found = placed_columns(names, [block.columns for block in self.blocks], table)
        blocks = []
        for block, positions in zip(self.blocks, found, strict=True):
            if block.family != IGNORE and positions:
                placed = block.family
                if hasattr(placed, "place"):
                    placed = placed.place(table.some(positions))
                blocks.append(Block(placed, positions, block.weight))
        if not blocks:
            raise ValueError("a product of families needs at least one block with columns")
        if len(blocks) == 1 and blocks[0].weight != 1.0:
            raise ValueError("a weight compares blocks: with a single block it has to be 1")
        return Product(tuple(blocks), table.n_columns)

    def encode(self, table: Table) -> NDArray[np.float64]:
        """The rows as numbers: levels as codes, and 0 in columns that are left out."""
        values = np.zeros((table.n_rows, table.n_columns))
        for block in self.blocks:
            some = table.some(block.columns)
            encoded = block.family.encode(some) if hasattr(block.family, "encode") else None
            values[:, list(block.columns)] = some.numbers() if encoded is None else encoded
        return values

    def parts(self, X: NDArray[np.float64]) -> list[tuple[Any, NDArray[np.float64]]]:
        """Each family with its columns of the rows."""
        return [
            (block.family, np.ascontiguousarray(X[:, list(block.columns)])) for block in self.blocks
        ]

    def observe(self, X: NDArray[np.float64]) -> Observations | SparseObservations:
        observed = [block.observe(part) for block, part in self.parts(X)]
        if len(observed) == 1:
            return observed[0]
        sparse = tuple(part for part in observed if isinstance(part, SparseObservations))
        found = [part for part in observed if not isinstance(part, SparseObservations)]
        if not found:
            return Observations(np.empty((X.shape[0], 0)), sparse=sparse)
        rests = [part.residuals for part in found]
        residuals = None
        if any(rest is not None for rest in rests):
            residuals = np.concatenate(
                [
                    np.zeros(part.shape) if rest is None else rest
                    for part, rest in zip(found, rests, strict=True)
                ],
                axis=1,
            )
        means = np.concatenate([part.means for part in found], axis=1)
        return Observations(means, residuals, sparse=sparse)

    def geometry(self, n_features: int) -> Any:
        blocks = []
        for block, width in zip(self.blocks, self.widths(), strict=True):
            geometry = block.family.geometry(width)
            # Sparse statistics have no columns among the dense ones.
            dense = 0 if storage(geometry, width).sparse_columns else width
            blocks.append((geometry, dense, block.weight))
        return blocks[0][0] if len(blocks) == 1 else product_geometry(blocks)

    def observed_geometry(self, rows: PartlyObserved) -> Any:
        """The geometry if some blocks have gaps."""
        if len(self.blocks) == 1:
            return self.blocks[0].family.observed_geometry(rows)
        blocks = []
        for block, (columns, gaps) in zip(self.blocks, rows.layout, strict=True):
            if gaps:
                part = PartlyObserved(np.empty((0, 2 * columns)))
                blocks.append((block.family.observed_geometry(part), 2 * columns, block.weight))
            else:
                blocks.append((block.family.geometry(columns), columns, block.weight))
        return product_geometry(blocks)

    def widths(self) -> list[int]:
        """The number of columns of each block's statistics."""
        return [
            block.family.width(len(block.columns))
            if hasattr(block.family, "width")
            else len(block.columns)
            for block in self.blocks
        ]

    def in_units_of_rows(self, means: Any) -> NDArray[Any]:
        parts, ends = [], np.cumsum([0, *self.widths()])
        for block, (start, stop) in zip(self.blocks, pairwise(ends), strict=True):
            part = means[:, start:stop]
            if issparse(part) and not hasattr(block.family, "levels"):
                part = part.toarray()
            parts.append(block.family.in_units_of_rows(part))
        kind = object if any(part.dtype == object for part in parts) else np.float64
        out = np.full((means.shape[0], self.n_columns), np.nan, kind)
        for block, part in zip(self.blocks, parts, strict=True):
            out[:, list(block.columns)] = part
        return out

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate(
            [
                np.sqrt(block.weight) * block.family.coordinates(part)
                for block, (_, part) in zip(self.blocks, self.parts(X), strict=True)
            ],
            axis=1,
        )

    def candidates(
        self, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
    ) -> Sequence[Product]:
        offered = [list(block.candidates(part, sample_weight)) for block, part in self.parts(X)]
        return [
            Product(
                tuple(
                    block._replace(family=choices[min(k, len(choices) - 1)]) if choices else block
                    for block, choices in zip(self.blocks, offered, strict=True)
                ),
                self.n_columns,
            )
            for k in range(max(map(len, offered)))
        ]

    def n_parameters(self, n_features: int) -> int:
        return sum(
            block.family.n_parameters(width)
            for block, width in zip(self.blocks, self.widths(), strict=True)
        )

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        out = np.zeros(X.shape)
        for block, (_, part) in zip(self.blocks, self.parts(X), strict=True):
            drawn = block.family.draw_one_cluster(part, rng)
            if drawn is None:
                return None
            out[:, list(block.columns)] = drawn
        return out

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        found: list[str] = []
        for block, (_, part) in zip(self.blocks, self.parts(X), strict=True):
            some = None if names is None else [names[k] for k in block.columns]
            found += block.family.advice(part, some)
        return found


def _blocks(given: Any) -> list[Block]:
    """The blocks of a dict, or of a sequence of blocks."""
    if not isinstance(given, dict):
        return [Block(*block) for block in given]
    blocks = []
    for key, value in given.items():
        weighted = isinstance(value, tuple) and len(value) == 2 and np.ndim(value[1]) == 0
        # A pair of columns and a weight, unless it is a pair of columns.
        if weighted and not isinstance(value[0], str | int | np.integer):
            blocks.append(Block(key, value[0], value[1]))
        else:
            blocks.append(Block(key, value))
    return blocks


def _checked(block: Block) -> Block:
    if isinstance(block.family, str) and block.family == IGNORE:
        return Block(IGNORE, block.columns)
    record: Any = as_family(block.family)
    if hasattr(record, "blocks"):
        raise ValueError("a product of families cannot be a block of another: list all blocks")
    weight = float(block.weight)
    if not 1e-100 <= weight <= 1e100:
        raise ValueError(
            f"the weight of the block {record.name!r} has to lie between 1e-100 and 1e100, "
            f"got {block.weight}"
        )
    if getattr(record, "weight_by_total", False):
        record = record._replace(weight_by_total=False)
    columns = tuple(block.columns) if isinstance(block.columns, list | tuple) else block.columns
    return Block(record, columns, weight)
