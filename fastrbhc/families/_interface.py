"""What a family is: the contract, the properties and the register of names.

A family is a ``NamedTuple`` of numbers with methods, declared with :func:`family`.
The rest of the package asks for its *properties* and never for its name:

separable
    φ(t) = Σⱼ φ₁(tⱼ), one function of one variable summed over the columns. Such a family
    writes ``divergence`` and has everything else given to it.
reducible
    d obeys the paper's eq. (reducibility), with a proof or a reference in its docstring:
    then greedy and nearest-neighbour chain build the same tree.
quadratic
    φ is a quadratic form, so that d needs only the squared distance of two means.
covariance
    "full" or "diagonal" where each cluster has a covariance of its own, or variances; else "none".
domain
    The values a row may hold.

Methods of a separable family, the first four of which run inside kernels:

``divergence(family, value, mean, step)``
    The Bregman divergence φ(value) − φ(mean) − φ′(mean)·step of one column, where
    step = value − mean is more precise than the subtraction would be. Accurate also where
    the step is tiny: no difference of large terms.
``variance_function(family, mean)``
    1/φ″, the variance function of the exponential family, if φ″ is convex and the values are not
    negative. From it come bounds without logarithms, and scans in single precision, tens of times
    as quick as logarithms. It may be larger than 1/φ″, never smaller, also if ``mean`` has only
    the digits of single precision; it grows no faster than the square of large means, and
    mean²/variance rises or falls all the way. Constants have to be ``np.float32``, lest they make
    doubles of all else. If it is made of +, −, × and ÷ alone, the kd-tree looks at eight boxes at a
    time. Optional.
``divergence_bound(family, value, mean, step)``
    At most the divergence and quick, so free of logarithms: for a φ whose second derivative is not
    convex. Optional.
``second_derivative(family, mean)``
    φ″ itself, to the last digits, for Taylor values of d. Optional: found from divergences, to
    about 12 digits.
``n_parameters(n_features)``
    How many numbers describe a cluster, for `evidence_threshold`. Optional: one per column.
``phi(x)``
    φ₁ itself, for arrays: the definition, for readers, and for tests of the divergence. Optional.
``smoothing_map(n_features)``
    The smoothing, one of those in ``_smoothing``. Optional: none.
``observe(X)``
    Mean statistics and weights of the rows. Optional: the rows themselves, of weight 1.
``check()``
    Raises ValueError for parameters outside their range. Optional.
``check_rows(X)``
    Raises ValueError, or warns, where the parameters do not fit the rows. Optional.

A family that is not separable writes ``geometry(n_features)`` instead of ``divergence``, a record
with the methods that ``fastrbhc._engine.geometry.contract`` lists. Two of them are required,
``dissimilarity`` and ``merge``; the defaults of the others are safe, and slow.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.geometry.second_derivative import second_derivative_by_steps
from fastrbhc._engine.geometry.separable import separable_geometry
from fastrbhc._engine.geometry.separable_columns import (
    pair_bound_by_divergences,
    pair_bound_by_variance,
    unknown_variance,
)
from fastrbhc.families._smoothing import NONE, Smoothing


class Domain(NamedTuple):
    """The values that a row of data may hold."""

    lower: float = -np.inf
    upper: float = np.inf
    includes_lower: bool = True
    needs_positive_total: bool = False
    needs_nonzero_row: bool = False

    @property
    def takes_sparse(self) -> bool:
        """Whether zeros, which sparse matrices leave out, are ordinary values."""
        return self.lower == 0.0 and self.includes_lower

    def __str__(self) -> str:
        opening = "[" if self.includes_lower and np.isfinite(self.lower) else "("
        closing = "]" if np.isfinite(self.upper) else ")"
        return f"{opening}{self.lower:g}, {self.upper:g}{closing}"


class Family(Protocol):
    """The Python side of a family, for readers and type checkers."""

    name: str
    separable: bool
    reducible: bool
    quadratic: bool
    covariance: str

    @property
    def domain(self) -> Domain: ...
    def check(self) -> None: ...
    def check_rows(self, X: NDArray[np.float64]) -> None: ...
    def observe(self, X: NDArray[np.float64]) -> Observations: ...
    def smoothing_map(self, n_features: int) -> Smoothing: ...
    def n_parameters(self, n_features: int) -> int: ...
    def geometry(self, n_features: int) -> Any: ...


_REGISTER: dict[str, type] = {}
FamilyClass = TypeVar("FamilyClass", bound=type)


def family(
    name: str,
    *,
    separable: bool,
    reducible: bool,
    domain: Domain | None = None,
    quadratic: bool = False,
    covariance: str = "none",
    aliases: tuple[str, ...] = (),
) -> Callable[[FamilyClass], FamilyClass]:
    """Declare a class as a family: state its properties, complete and register it.

    Parameters
    ----------
    name : str
        The name by which the family can be asked for.
    separable, reducible, quadratic : bool
        Properties, see the contract above; the first decides which method is required.
    covariance : {"none", "diagonal", "full"}, default="none"
        Which covariance each cluster has of its own.
    domain : Domain, optional
        The values of a row; a class whose domain depends on its parameters has a property.
    aliases : tuple of str
        Further names.

    Returns
    -------
    callable
        A decorator for a ``NamedTuple`` class.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import fastrbhc
    >>> from fastrbhc.families import Domain, family
    >>> @family("example", separable=True, reducible=False, domain=Domain(lower=0.0))
    ... class Example(NamedTuple):
    ...     power: float = 4.0
    ...
    ...     def divergence(family, value, mean, step):
    ...         p = family.power
    ...         return value**p - mean**p - p * mean ** (p - 1.0) * step
    >>> fastrbhc.dissimilarity([[0.0]], [[2.0]], Example())
    14.0
    """

    def declare(cls: FamilyClass) -> FamilyClass:
        required = "divergence" if separable else "geometry"
        if not hasattr(cls, required):
            raise TypeError(
                f"the family {cls.__name__} has to define the method {required!r}, "
                f"because it states separable={separable}"
            )
        stated: dict[str, Any] = {
            "name": name,
            "separable": separable,
            "reducible": reducible,
            "quadratic": quadratic,
            "covariance": covariance,
        }
        if domain is not None:
            stated["domain"] = domain
        elif not hasattr(cls, "domain"):
            raise TypeError(f"the family {cls.__name__} has to state its domain")
        for key, value in stated.items():
            setattr(cls, key, value)
        defaults = dict(_DEFAULTS)
        if separable:
            defaults["divergence_bound"] = vars(cls)["divergence"]
            known = hasattr(cls, "variance_function")
            defaults["pair_bound"] = pair_bound_by_variance if known else pair_bound_by_divergences
            defaults["variance_function"] = unknown_variance
            defaults["second_derivative"] = second_derivative_by_steps
        for key, method in defaults.items():
            if not hasattr(cls, key):
                setattr(cls, key, method)
        for key in (name, *aliases):
            taken = _REGISTER.get(key)
            if taken is not None and taken.__module__ != cls.__module__:
                raise ValueError(f"the name {key!r} belongs to {taken.__module__}: choose another")
            _REGISTER[key] = cls
        return cls

    return declare


def _no_smoothing(self: Any, n_features: int) -> Smoothing:
    return NONE


def _one_per_column(self: Any, n_features: int) -> int:
    return n_features


def _rows_as_they_are(self: Any, X: NDArray[np.float64]) -> Observations:
    return Observations(X)


def _no_check(self: Any, X: Any = None) -> None:
    """Any parameters and any rows of the domain will do."""


_DEFAULTS: dict[str, Any] = {
    "smoothing_map": _no_smoothing,
    "n_parameters": _one_per_column,
    "observe": _rows_as_they_are,
    "check": _no_check,
    "check_rows": _no_check,
    "geometry": separable_geometry,
}


def registered() -> dict[str, type]:
    """Names and aliases of all families known so far, with their classes.

    Returns
    -------
    dict
        A copy of the register.

    Examples
    --------
    >>> from fastrbhc.families import registered
    >>> registered()["ward"].__name__
    'SphericalGaussian'
    """
    return dict(_REGISTER)


def as_family(family: str | Family) -> Family:
    """The family of that name, or the record itself, with its numbers as floats.

    Parameters
    ----------
    family : str, record or class
        A name or alias, a record, or a class of records, which stands for its defaults.

    Returns
    -------
    record
        A family whose parameters have been checked.

    Examples
    --------
    >>> from fastrbhc.families import Poisson, as_family
    >>> as_family("poisson") == as_family(Poisson) == Poisson(smoothing=0.01)
    True
    """
    if isinstance(family, str):
        known_class = _REGISTER.get(family.lower().replace("-", "_").replace(" ", "_"))
        if known_class is None:
            near = difflib.get_close_matches(family.lower(), _REGISTER, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            known = ", ".join(map(repr, sorted(_REGISTER)))
            raise ValueError(f"unknown family {family!r}: {hint}The families are {known}")
        return as_family(known_class())
    if isinstance(family, type):
        if not hasattr(family, "separable"):
            raise TypeError(_not_a_family(family))
        return as_family(family())
    if not (isinstance(family, tuple) and hasattr(family, "separable")):
        raise TypeError(_not_a_family(family))
    # One compilation a family, whether a parameter was typed 1 or 1.0.
    cls: Any = type(family)
    try:
        record: Family = cls(*(v if isinstance(v, bool) else float(v) for v in family))
    except OverflowError:
        raise ValueError(
            f"a parameter of the family {cls.name!r} is too large for double precision"
        ) from None
    record.check()
    return record


def _not_a_family(given: Any) -> str:
    return (
        f"family has to be a name or a record from fastrbhc.families, got {given!r}; "
        "a class of your own is declared with @fastrbhc.families.family"
    )
