"""A family in words, for summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Names of columns that fit a line.
_NAMES_SHOWN = 10


def described(family: Any, names: Sequence[str] | None = None) -> list[str]:
    """A family with its parameters, in a line; a product has one more line for each block.

    Parameters
    ----------
    family : record
        A family.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from fastrbhc.families import Poisson, as_family
    >>> from fastrbhc.families._description import described
    >>> described(Poisson())
    ['poisson (smoothing 0.01)']
    >>> family = as_family({"poisson": [0, 2], "ward": ([1], 0.5)})
    >>> described(family, ["visits", "age", "orders"])  # doctest: +NORMALIZE_WHITESPACE
    ['product of 2 families', 'poisson (smoothing 0.01): visits, orders',
     'spherical_gaussian (variance 1.0, weight 0.5): age']
    """
    if not hasattr(family, "blocks"):
        return [_in_brackets(family.name, _parameters(family))]
    lines = []
    for block in family.blocks:
        parts = _parameters(block.family)
        if block.weight != 1.0:
            parts.append(f"weight {block.weight:g}")
        labels = [f"x{k}" if names is None else names[k] for k in block.columns]
        shown, left = ", ".join(labels[:_NAMES_SHOWN]), len(labels) - _NAMES_SHOWN
        more = f", … ({left:,} more)" if left > 0 else ""
        lines.append(f"{_in_brackets(block.family.name, parts)}: {shown}{more}")
    count = len(lines)
    return [f"product of {count} {'family' if count == 1 else 'families'}", *lines]


def family_lines(family: Any, names: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Names and texts of a table: the record of a family, or a line for each block of a product."""
    if not hasattr(family, "blocks"):
        return [("family", str(family))]
    return [("family" if k == 0 else "", line) for k, line in enumerate(described(family, names))]


def _parameters(family: Any) -> list[str]:
    given = {key: value for key, value in family._asdict().items() if value is not None}
    parts = [f"{key} {value}" for key, value in given.items() if not isinstance(value, tuple)]
    if hasattr(family, "levels"):
        parts.append(f"{sum(map(len, family.levels)):,} levels")
    elif any(isinstance(value, tuple) for value in given.values()):
        parts.append("of columns divided by their widths")
    return parts


def _in_brackets(name: str, parts: list[str]) -> str:
    return f"{name} ({', '.join(parts)})" if parts else name
