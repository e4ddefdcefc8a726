"""The contract of a conjugate model: its properties, its methods and the register of names.

A *model* is a ``NamedTuple`` of hyperparameters, declared with :func:`model`. A field that is None
is taken from the data. The rest of the package asks for properties and never for a name:

name, domain
    As those of a family, see `fastrbhc.families`.
tunable
    The fields that ``hyperparameters="evidence"`` varies, all of them positive numbers.
family
    The name of the family that the model puts a prior on; None if there is none.
takes_sparse_rows
    Whether all methods take a CSR array of rows too. The likelihood then observes them as
    `SparseObservations`, and clusters have segments instead of means.

Its methods are plain Python:

``with_defaults(X)``
    The record with every field a number or an array.
``check(n_features)``
    Raises ValueError for hyperparameters out of range. Called for a complete record.
``check_rows(X)``
    Raises ValueError for rows in the domain that the model does not support. Optional.
``place(table)``, ``encode(table)``, ``parts(X)``
    As those of a product of families. Optional.
``likelihood(X)``
    The *likelihood* of a complete record for these rows: a record with the methods below.
``log_base_measure(X)``
    The term of each row in the log marginal likelihood that does not depend on the cluster:
    logarithms of factorials, of units of measurement. It cancels when hypotheses are compared, so
    merging does not use it.

The rest of log p(X_c | H_c), for a cluster c of n rows, is called ℓ(c). A likelihood computes it
from the *sufficient statistics* of c, without the rows. They are stored in
`fastrbhc._engine.clusters.record.Clusters`. Its methods in plain Python are

``observe(X)``
    The statistics of rows as they go into ``clusters.means``: (n, columns). Those of sparse rows
    go into ``clusters.segments``.
``for_new_rows(new)``
    The likelihood with room for further rows.
``storage(n_columns)``, ``scratch_shapes(n_columns)``
    Further storage per cluster, and scratch memory per thread, as for a geometry. What it caches
    begins at ``cached[i, OWN_CACHED]`` and ``scan_features[OWN_FEATURES, i]``: the values before
    those are of `potentials`, which provides the storage for them.

and inside kernels:

``join(likelihood, clusters, i, j)``
    Puts the statistics and the rank of the union into slot i, and frees slot j.
``summarise(likelihood, clusters, i, scratch)``
    Updates the cached values of slot i, and returns its ℓ.
``log_marginal(likelihood, clusters, i, j, floor, scratch)``
    ℓ of the union of slots i and j: the same bits for (j, i). If it is below the floor, any value
    below the floor may be returned, so that distant pairs are abandoned early.
``upper_bounds(likelihood, clusters, i, start, stop, scratch)``
    Fills scratch.bounds[:stop−start] with values not below what ``log_marginal`` returns for
    slot i and the slots start…stop−1; NaN for free slots, and anything for slot i itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import as_column
from fastrbhc._engine.jit import contract
from fastrbhc._register import Register
from fastrbhc.families import Domain

# What `potentials` caches: log φ(X | T) and ℓ of a cluster, and the former for scans as well.
LOG_TREE, LOG_MARGINAL = 0, 1
FEATURE_LOG_TREE = 0

# Where those of a likelihood begin.
OWN_CACHED, OWN_FEATURES = 2, 1


class Model(Protocol):
    """The Python side of a model, for readers and type checkers."""

    name: str
    kind: str
    domain: Domain
    tunable: tuple[str, ...]
    family: str | None
    takes_sparse_rows: bool
    _fields: tuple[str, ...]

    def with_defaults(self, X: Any) -> Model: ...
    def check(self, n_features: int) -> None: ...
    def check_rows(self, X: Any) -> None: ...
    def likelihood(self, X: Any) -> Any: ...
    def log_base_measure(self, X: Any) -> NDArray[np.float64]: ...
    def _replace(self, **changes: Any) -> Model: ...
    def _asdict(self) -> dict[str, Any]: ...


# What a user gives for a model: a name or a record. To type checkers a record is a tuple, because
# they do not see what the decorator adds to its class.
ModelLike: TypeAlias = str | Model | tuple[Any, ...]


@contract
def join(likelihood, clusters, i, j):
    """Statistics of a union; see the module's documentation."""


@contract
def summarise(likelihood, clusters, i, scratch):
    """Update cached values of a slot, and return its ℓ; see the module's documentation."""


@contract
def log_marginal(likelihood, clusters, i, j, floor, scratch):
    """ℓ of a union; see the module's documentation."""


@contract
def upper_bounds(likelihood, clusters, i, start, stop, scratch):
    """Bounds of ℓ of many unions; see the module's documentation."""


_REGISTER = Register("model", "models")
ModelClass = TypeVar("ModelClass", bound=type)


def model(
    name: str,
    *,
    domain: Domain,
    tunable: tuple[str, ...],
    aliases: tuple[str, ...] = (),
    family: str | None = None,
    takes_sparse_rows: bool = False,
) -> Callable[[ModelClass], ModelClass]:
    """Declare a class of records as a conjugate model: state its properties and register it.

    Parameters
    ----------
    name : str
        The name of the model, for ``model=``.
    domain : Domain
        The values that a row may hold.
    tunable : tuple of str
        Fields that the search for the largest evidence varies.
    aliases : tuple of str
        Further names.
    family : str, optional
        The family of `fastrbhc.families` that the model puts a prior on, for summaries and
        pictures of its trees.
    takes_sparse_rows : bool, default=False
        Whether its methods take sparse rows, so that large ones are not made dense.

    Returns
    -------
    callable
        A decorator for a ``NamedTuple`` class.

    Examples
    --------
    >>> from fastrbhc.bhc import GammaPoisson
    >>> GammaPoisson.name, GammaPoisson.tunable
    ('poisson', ('shape', 'rate'))
    """

    def declare(cls: ModelClass) -> ModelClass:
        missing = [
            method
            for method in ("with_defaults", "check", "likelihood", "log_base_measure")
            if not hasattr(cls, method)
        ]
        if missing:
            raise TypeError(f"the model {cls.__name__} has to define {', '.join(missing)}")
        stated: dict[str, Any] = {
            "name": name,
            "kind": "model",  # in messages
            "domain": domain,
            "tunable": tunable,
            "family": family,
            "takes_sparse_rows": takes_sparse_rows,
        }
        if not hasattr(cls, "check_rows"):
            stated["check_rows"] = _no_check
        for key, value in stated.items():
            setattr(cls, key, value)
        _REGISTER.add(cls, name, *aliases)
        return cls

    return declare


def _no_check(self: Any, X: Any) -> None:
    """Accept all rows in the domain."""


def registered() -> dict[str, type]:
    """Names and aliases of all models known so far, with their classes.

    Returns
    -------
    dict
        A copy of the register.

    Examples
    --------
    >>> from fastrbhc import bhc
    >>> bhc.registered()["gaussian"].__name__
    'NormalWishart'
    """
    return dict(_REGISTER)


def as_model(model: Any, hyperparameters: Any = "data") -> Model:
    """The model of that name, or the record itself, with the hyperparameters that are given.

    Parameters
    ----------
    model : str, record, class or dict
        A name or alias, a record, or a class of records, all of whose fields are then open. A dict
        from models to columns is a `ProductOfModels`.
    hyperparameters : str, dict or record
        Fields by name, or a record that replaces the model. "data" and "evidence" say where open
        fields come from, and change nothing here.

    Returns
    -------
    record
        A model, some of whose fields may be open.

    Examples
    --------
    >>> from fastrbhc.bhc import as_model
    >>> as_model("poisson", {"shape": 2})
    GammaPoisson(shape=2, rate=None)
    """
    if isinstance(model, dict):
        model = _REGISTER["product"](model)
    if isinstance(model, str):
        model = _REGISTER.find(model)
    record: Any = model() if isinstance(model, type) and hasattr(model, "tunable") else model
    if not _is_model(record):
        raise TypeError(f"model has to be a name or a record from fastrbhc.bhc, got {model!r}")
    if isinstance(hyperparameters, str):
        return record
    if _is_model(hyperparameters):
        if type(hyperparameters) is not type(record):
            raise ValueError(
                f"hyperparameters are those of the model {hyperparameters.name!r}, and the model "
                f"is {record.name!r}: give one of the two alone"
            )
        return hyperparameters
    if not isinstance(hyperparameters, Mapping):
        raise TypeError(
            "hyperparameters has to be 'data', 'evidence', a dict or a record, got "
            f"{hyperparameters!r}"
        )
    unknown = sorted(set(hyperparameters) - set(record._fields))
    if unknown:
        raise ValueError(
            f"the model {record.name!r} has no hyperparameter {unknown[0]!r}: they are "
            f"{', '.join(map(repr, record._fields))}"
        )
    return record._replace(**hyperparameters)


def _is_model(given: Any) -> bool:
    return isinstance(given, tuple) and hasattr(given, "tunable")


def given_or(value: Any, otherwise: Any) -> Any:
    """A hyperparameter as floats: the given value, or else the one from the data."""
    chosen = as_column(otherwise if value is None else value, "a hyperparameter")
    return float(chosen) if chosen.ndim == 0 else np.array(chosen, np.float64)


def require_positive(name: str, value: Any, n_features: int | None = None) -> None:
    """Reject hyperparameters that are not positive and finite, or not one per column."""
    given = np.asarray(value)
    if given.ndim and (n_features is None or given.shape != (n_features,)):
        expected = "a number" if n_features is None else f"a number or {n_features} numbers"
        raise ValueError(f"{name} has to be {expected}, got an array of shape {given.shape}")
    if not (np.isfinite(given) & (given > 0.0)).all():
        raise ValueError(f"{name} has to be positive and finite, got {value}")
