"""Rows for a model: the checks of `_row_validation`, then those of the model itself.

Large sparse rows stay sparse for models that take them; see ``takes_sparse_rows``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from fastrbhc._row_validation import check_rows
from fastrbhc.bhc._interface import Model
from fastrbhc.families import Domain


@dataclass
class Border:
    """What `_row_validation` asks of a model before its own checks."""

    name: str
    kind: str
    domain: Domain
    entropy_share: float  # with a positive one, "auto" leaves large sparse rows sparse

    def check_rows(self, X: Any) -> None:
        """Leave it to `supported`, which sees sparse rows as they are."""


class EncodingBorder(Border):
    """The same for a model of rows that need not be numbers."""

    def __init__(self, model: Any) -> None:
        super().__init__(model.name, model.kind, model.domain, 0.0)
        self.encode = model.encode


class ProductBorder(EncodingBorder):
    """The same for a product of models, whose blocks are checked one by one."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.model, self.blocks = model, model.blocks

    def parts(self, X: Any) -> list[tuple[Border, Any]]:
        """What is asked of each model, with its columns of the rows."""
        return [(border_of(part), rows) for part, rows in self.model.parts(X)]


def border_of(model: Model) -> Border:
    """The properties of a model that the checks of values ask for."""
    if hasattr(model, "parts"):
        return ProductBorder(model)
    if hasattr(model, "encode"):
        return EncodingBorder(model)
    return Border(model.name, model.kind, model.domain, float(model.takes_sparse_rows))


def layout_for(model: Model) -> str:
    """What may become of sparse rows in a fit."""
    return "auto" if model.takes_sparse_rows else "dense"


def supported(rows: Any, model: Model) -> Any:
    """The rows, if the model supports them; as a CSR array if they are sparse."""
    rows = csr_array(rows) if issparse(rows) else rows
    model.check_rows(rows)
    return rows


def rows_of(X: ArrayLike, model: Model, *, min_rows: int = 2, feature_names: Any = None) -> Any:
    """X as rows in the domain of the model, dense or sparse; names of columns are for messages."""
    checked = check_rows(
        X,
        border_of(model),
        min_rows=min_rows,
        layout=layout_for(model),
        feature_names=feature_names,
    )
    return supported(checked, model)
