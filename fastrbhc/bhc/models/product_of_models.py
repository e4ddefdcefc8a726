"""Columns of different kinds: each block of columns has a model of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc.bhc._interface import as_model, model
from fastrbhc.bhc.likelihoods.product import Both
from fastrbhc.bhc.likelihoods.rearranged import Rearranged
from fastrbhc.families import Domain
from fastrbhc.families._columns import Table, placed_columns
from fastrbhc.families.product import IGNORE


class ModelBlock(NamedTuple):
    """Columns with one model: see `fastrbhc.families.Block`."""

    model: Any
    columns: Any


@model("product", domain=Domain(), tunable=())
class ProductOfModels(NamedTuple):
    """A product of models: columns of different blocks are independent given the cluster.

    Parameters
    ----------
    blocks : dict or tuple of (model, columns)
        From models to columns, as for `fastrbhc.families.Product`: names of models or records, and
        names or positions of columns. Those of the key "ignore" are left out. Hyperparameters that
        are open come from the data, those of each block from its columns; with
        ``hyperparameters="evidence"`` those of all blocks are searched together.
    n_columns : int
        Number of columns of the rows, once it is known.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[0, 0.0], [1, 0.1], [0, 0.2], [30, 9.0], [33, 9.1], [31, 9.3]]
    >>> tree = fastrbhc.bhc_linkage(X, {"poisson": [0], "diagonal_gaussian": [1]})
    >>> tree.cut().tolist()
    [0, 0, 0, 1, 1, 1]
    """

    blocks: Any = ()
    n_columns: int = 0

    def place(self, table: Table) -> ProductOfModels:
        """The same with positions instead of names, and with the levels of categories."""
        given = self.blocks.items() if isinstance(self.blocks, dict) else self.blocks
        pairs: list[tuple[Any, Any]] = [
            (IGNORE if key == IGNORE else as_model(key), columns) for key, columns in given
        ]
        if any(hasattr(record, "blocks") for record, _ in pairs):
            raise ValueError("a product of models cannot be a block of another: list all blocks")
        names = [IGNORE if record == IGNORE else record.name for record, _ in pairs]
        found = placed_columns(names, [columns for _, columns in pairs], table)
        blocks = tuple(
            ModelBlock(
                record.place(table.some(positions)) if hasattr(record, "place") else record,
                positions,
            )
            for (record, _), positions in zip(pairs, found, strict=True)
            if record != IGNORE and positions
        )
        if not blocks:
            raise ValueError("a product of models needs at least one block with columns")
        return ProductOfModels(blocks, table.n_columns)

    def encode(self, table: Table) -> NDArray[np.float64]:
        """The rows as numbers: levels as codes, and 0 in columns that are left out."""
        values = np.zeros((table.n_rows, table.n_columns))
        for block in self.blocks:
            some = table.some(block.columns)
            encoded = block.model.encode(some) if hasattr(block.model, "encode") else None
            values[:, list(block.columns)] = some.numbers() if encoded is None else encoded
        return values

    def parts(self, X: NDArray[np.float64]) -> list[tuple[Any, NDArray[np.float64]]]:
        """Each model with its columns of the rows."""
        return [(block.model, np.take(X, np.array(block.columns), axis=1)) for block in self.blocks]

    def with_defaults(self, X: NDArray[np.float64]) -> ProductOfModels:
        blocks = tuple(
            block._replace(model=part.with_defaults(rows))
            for block, (part, rows) in zip(self.blocks, self.parts(X), strict=True)
        )
        return self._replace(blocks=blocks)

    def check(self, n_features: int) -> None:
        for block in self.blocks:
            block.model.check(len(block.columns))

    def check_rows(self, X: NDArray[np.float64]) -> None:
        for part, rows in self.parts(X):
            part.check_rows(rows)

    def likelihood(self, X: NDArray[np.float64]) -> Any:
        found = [
            (part.likelihood(rows), rows, np.array(block.columns))
            for block, (part, rows) in zip(self.blocks, self.parts(X), strict=True)
        ]
        (second, _, others), level = found[-1], 0
        if len(found) == 1:
            everything = np.array_equal(others, np.arange(X.shape[1]))
            return second if everything else Rearranged(second, others, np.zeros_like(others))
        for first, rows, columns in reversed(found[:-1]):
            outermost = level == len(found) - 2
            split = first.observe(rows[:1]).shape[1]
            here = np.concatenate([columns, others])
            # Pairs within see the columns of their blocks alone, one after another.
            own = columns if outermost else np.arange(columns.size)
            rest = others if outermost else np.arange(columns.size, here.size)
            second = Both(first, second, own, rest, int(split), level)
            others, level = here, level + 1
        return second

    def log_base_measure(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sum([part.log_base_measure(rows) for part, rows in self.parts(X)], axis=0)
