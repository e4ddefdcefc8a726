"""What a tree remembers: what it was built from, and the λ that was chosen for it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from fastrbhc._stamps import version
from fastrbhc.families import Family, as_family
from fastrbhc.families import registered as registered_families
from fastrbhc.families._interface import FamilyLike

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

AnyTree = TypeVar("AnyTree", bound="Dendrogram")
# How a λ may have been chosen.
WAYS = ("given", "n_clusters", "predictive", "gap", "evidence", "kmeans")
# How merges may have been chosen.
ALGORITHMS = ("greedy", "levels", "nn_chain", "cells")
# How a tree may have used a graph of its rows.
CONNECTIVITIES = ("graph", "joined")
# Parameters of families that JSON has no numbers for.
_NOT_FINITE = ("inf", "-inf", "nan")


@dataclass(frozen=True)
class Chosen:
    """The λ that was chosen for a tree, and how.

    Attributes
    ----------
    threshold : float
        λ; with a number of clusters, the level of the first merge that is not made.
    by : {"given", "n_clusters", "predictive", "gap", "evidence", "kmeans"}
        How it was chosen.
    n_clusters : int or None
        The number of clusters, if that was given. Merges at the same level may come between it
        and λ, and it decides.
    """

    threshold: float
    by: str
    n_clusters: int | None = None

    def __str__(self) -> str:
        ways = {"given": "as given", "n_clusters": f"for {self.n_clusters} clusters"}
        return f"{self.threshold:.6g}, {ways.get(self.by, f'by {self.by}')}"


@dataclass(frozen=True)
class Origin:
    """What a tree was built from.

    Attributes
    ----------
    family : record or None
        The family with its parameters; None if it is unknown.
    n_features : int or None
        Number of columns.
    feature_names : tuple of str or None
        Names of the columns, if the rows came with names or names were given.
    version : str
        The version of fastrbhc that built the tree.
    missing : {"error", "ignore"}
        What NaN meant in the rows.
    algorithm : {"greedy", "levels", "nn_chain", "cells"} or None
        How the merges were chosen; "cells" is `fastrbhc.distributed.linkage`. None if unknown.
    connectivity : {"graph", "joined"} or None
        "graph" if only clusters merged that were adjacent in a graph, "joined" if the pieces of
        that graph were joined afterwards as if all were adjacent. None if there was no graph.
    approximate : bool
        Whether only near neighbours were compared until few clusters were left.
    """

    family: Family | None
    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    version: str = field(default_factory=version)
    missing: str = "error"
    algorithm: str | None = None
    connectivity: str | None = None
    approximate: bool = False

    # Families go into pickles by name: a class from a notebook cannot be found in another process,
    # and the tree should be read there all the same.
    def __reduce__(self) -> tuple[Any, ...]:
        family = None if self.family is None else described(self.family)
        columns = self.n_features, self.feature_names, self.version
        how = self.missing, self.algorithm, self.connectivity, self.approximate
        return _restored, (family, *columns, *how)


def _restored(family: Any, *others: Any) -> Origin:
    return Origin(None if family is None else family_described(family), *others)


def remembering(
    tree: AnyTree, names: Sequence[str] | None, chosen: Chosen | None = None
) -> AnyTree:
    """The same tree, with the names of its columns and the λ that was chosen."""
    origin = tree.origin
    if origin is not None and names is not None:
        origin = replace(origin, feature_names=tuple(names))
    return replace(tree, origin=origin, chosen=chosen)


def family_for(tree: Dendrogram, given: FamilyLike | None) -> Family:
    """The family that is given, or the one that the tree remembers."""
    if given is not None:
        return as_family(given)
    if tree.family is None:
        raise ValueError(
            "this tree does not remember its family: give family=, a name or a record from "
            "fastrbhc.families"
        )
    return tree.family


def missing_in(tree: Dendrogram) -> str:
    """What NaN means in the rows of a tree."""
    return "error" if tree.origin is None else tree.origin.missing


def refuse_graph(tree: Dendrogram, what: str) -> None:
    """Reject a tree whose rows had a graph, for what samples of the rows would have to tell."""
    if tree.origin is not None and tree.origin.connectivity is not None:
        raise ValueError(
            f"{what} needs trees of samples of the rows, and samples have no graph: it is not "
            "there for trees built with connectivity="
        )


def is_greedy(origin: Origin | None) -> bool | None:
    """Whether a tree of that origin is the greedy one for certain; None if that is unknown."""
    if origin is None or origin.algorithm is None or origin.family is None:
        return None
    if origin.approximate:
        return False
    # With missing cells, no d is reducible.
    reducible = origin.family.reducible and origin.missing == "error"
    return origin.algorithm in ("greedy", "levels") or reducible


def described(family: Any) -> dict[str, Any]:
    """A family as its name and its parameters, for files."""
    parameters: dict[str, Any] = {
        key: _written(value) for key, value in family._asdict().items() if value is not None
    }
    return {"name": family.name, "parameters": parameters}


def _written(value: Any) -> Any:
    if hasattr(value, "separable"):  # a family of a product
        return described(value)
    if isinstance(value, tuple):
        return [_written(number) for number in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return family_described(value)
    if isinstance(value, list):
        return tuple(map(_read, value))
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else value


def family_described(content: Any) -> Family | None:
    """The family of a description; None, with a warning, if no family has that name.

    Nothing in it is trusted: ValueError says what is wrong.
    """
    if not (isinstance(content, dict) and set(content) == {"name", "parameters"}):
        raise ValueError("this tree has a family that is not a name with parameters")
    name, given = content["name"], content["parameters"]
    if not (isinstance(name, str) and isinstance(given, dict)):
        raise ValueError("this tree has a family that is not a name with parameters")
    cls: Any = registered_families().get(name)
    if cls is None:
        warnings.warn(
            f"this tree is of the family {name[:80]!r}, which is not declared here: it is read "
            "without its family. Import what declares it first, or give family= where needed.",
            UserWarning,
            stacklevel=4,
        )
        return None
    if not set(given) <= set(cls._fields):
        unknown = min(set(given) - set(cls._fields))
        raise ValueError(f"this tree has a family {name!r} with an unknown parameter {unknown!r}")
    given = {key: _read(value) for key, value in given.items()}
    for key, value in given.items():
        if not _is_parameter(value, cls._field_defaults.get(key)):
            raise ValueError(
                f"this tree has a family {name!r} whose parameter {key!r} is {value!r}"
            )
    try:
        return as_family(cls(**given))
    except (ValueError, TypeError) as error:
        raise ValueError(f"this tree has a family {name!r} that is not valid: {error}") from error


def _is_parameter(value: Any, default: Any) -> bool:
    """Whether the value is a number, a truth value or a tuple, whichever the default is.

    A tuple may hold numbers, names of levels, families and further tuples.
    """
    if hasattr(value, "separable"):  # a family of a product, which has been checked
        return default is None
    for kind in (bool, tuple):
        if default is not None and isinstance(value, kind) != isinstance(default, kind):
            return False
    if isinstance(value, tuple):
        return all(_is_parameter(entry, None) or type(entry) is str for entry in value)
    return type(value) in (bool, int, float)
