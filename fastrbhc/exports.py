"""Trees in the formats of others: pandas, networkx, Newick, JSON."""

from __future__ import annotations

from fastrbhc.tree.exports import to_networkx, to_newick, to_pandas
from fastrbhc.tree.json_format import from_json, to_json

__all__ = ["from_json", "to_json", "to_networkx", "to_newick", "to_pandas"]
