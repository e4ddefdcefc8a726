"""The contract of a family: its properties, its methods and the register of names.

A family is a ``NamedTuple`` of numbers with methods, declared with :func:`family`.
The rest of the package asks for its *properties* and never for its name:

separable
    φ(t) = Σⱼ φ₁(tⱼ), one function of one variable summed over the columns. Such a family
    defines ``divergence``; everything else has a default.
reducible
    d satisfies the paper's condition of reducibility, with a proof or a reference in the docstring.
    The greedy algorithm and the nearest-neighbour chain then build the same tree.
quadratic
    φ is a quadratic form, so that d needs only the squared distance of two means.
covariance
    "full" if each cluster has its own covariance matrix, "diagonal" if it has its own variance in
    each column, else "none".
entropy_share
    A c for which φ₁(y) − c·y log y is convex, 0 if none is known. Bounds for sparse rows follow
    from it; without one, all pairs of sparse rows are evaluated.
entropy_of_complement
    Whether φ₁(y) − c·(y log y + (1 − y) log(1 − y)) is convex too, for values up to 1. Bounds are
    closer then.
domain
    The values that a row may hold.
base
    The record of another family, if d is that of transformed rows: see ``_transformed``. Default:
    None.

Methods of a separable family, the first four of which run inside kernels:

``divergence(family, value, mean, step)``
    The Bregman divergence φ(value) − φ(mean) − φ′(mean)·step of one column, where
    step = value − mean is more precise than the subtraction would be. It must be accurate even
    if the step is tiny: no differences of large terms.
``variance_function(family, mean)``
    1/φ″, the variance function of the exponential family. Only for a convex φ″ and values that are
    not negative. It gives bounds without logarithms, and scans in single precision that are tens of
    times faster than logarithms. It may be larger than 1/φ″, never smaller, even if ``mean`` has
    only the digits of single precision. It must grow no faster than the square of large means, and
    mean²/variance must be monotone. Write constants as ``np.float32``: a double would turn the
    whole expression into doubles. If it uses only +, −, × and ÷, the kd-tree bounds eight boxes at
    a time. Optional.
``divergence_bound(family, value, mean, step)``
    A quick lower bound of the divergence, without logarithms, for a φ whose second derivative is
    not convex. Default: the divergence itself.
``second_derivative(family, mean)``
    φ″ itself, in full precision, for Taylor values of d. Default: computed from divergences, to
    about 12 digits.
``n_parameters(n_features)``
    The number of parameters of a cluster, for `evidence_threshold`. Default: one per column.
``phi(x)``
    φ₁ itself, for arrays, as a definition for readers and for tests of the divergence. Optional.
``smoothing_map(n_features)``
    The smoothing, see ``_smoothing``. Default: none.
``observe(X)``
    Mean statistics and weights of the rows. Default: the rows themselves, with weight 1. X is
    sparse if the domain takes that, and many values are zero: see `sparse_rows`.
``coordinates(X)``
    The rows in coordinates in which a cluster is about as wide wherever its mean is, such as roots
    of counts. They are for estimates of density, see ``fastrbhc.selection``. Default: columns
    divided by their standard deviations, so that units do not matter.
``candidates(X, sample_weight)``
    Records to choose from, if a parameter is left to the data. Default: none.
``in_units_of_rows(means)``
    Mean statistics in the units of the rows, if ``observe`` scales them. Default: as they are.
``draw_one_cluster(X, rng)``
    As many rows as X has, drawn from one distribution of the family with the mean of X, sparse if X
    is; None if rows such as X cannot be drawn. For `Dendrogram.stability`, which compares with rows
    without clusters. Default: None.
``advice(X, names)``
    Sentences on rows that can be clustered but look like something else than the family is for,
    such as counts among measurements. They become warnings when a tree is built. X is a sample of
    the rows, ``names`` a list of the names of the columns, or None. Default: none.
``normalised()``
    The record with its numbers as floats, if its parameters are not all numbers. Optional.
``place(table)``, ``encode(table)``
    The record with what it has to know of the columns, such as levels, and the rows as numbers, if
    they need not be numbers: see ``_columns``. Optional.
``observed_geometry(rows)``
    The geometry for rows with missing cells, see `partly_observed`. A family that has it takes
    ``missing="ignore"``. Default: that of separate columns if the family is separable.
``width(n_columns)``
    The number of columns of ``observe``, if it is another one. Optional.
``if_overdispersed(dispersion)``
    What to try if rows vary far more within clusters than the family allows, as a clause;
    ``dispersion`` is the α of a variance m + αm². For `Dendrogram.goodness`. Default: none.
``check()``
    Raises ValueError for parameters outside their range. Optional.
``check_rows(X)``
    Raises ValueError, or warns, if the parameters do not fit the rows. Optional.

A family that is not separable defines ``geometry(n_features)`` instead of ``divergence``. It
returns a record with the methods listed in ``fastrbhc._engine.geometry.contract``. Two of them are
required, ``dissimilarity`` and ``merge``; the defaults of the others are safe but slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.geometry.observed import observed_geometry
from fastrbhc._engine.geometry.second_derivative import second_derivative_by_steps
from fastrbhc._engine.geometry.separable_columns import (
    pair_bound_by_divergences,
    pair_bound_by_variance,
    unknown_variance,
)
from fastrbhc._register import Register
from fastrbhc.families._defaults import DEFAULTS
from fastrbhc.families._smoothing import Smoothing


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
    entropy_share: float
    entropy_of_complement: bool

    @property
    def domain(self) -> Domain: ...
    @property
    def base(self) -> Family | None: ...
    def check(self) -> None: ...
    def check_rows(self, X: NDArray[np.float64]) -> None: ...
    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> Sequence[str]: ...
    def observe(self, X: NDArray[np.float64]) -> Any: ...
    def in_units_of_rows(self, means: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def candidates(
        self, X: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
    ) -> Sequence[Family]: ...
    def smoothing_map(self, n_features: int) -> Smoothing: ...
    def n_parameters(self, n_features: int) -> int: ...
    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any: ...
    def if_overdispersed(self, dispersion: float) -> str: ...
    def geometry(self, n_features: int) -> Any: ...
    def observed_geometry(self, rows: PartlyObserved) -> Any: ...


# What a user gives for a family: a name or a record. To type checkers a record is a tuple, because
# they do not see what the decorator adds to its class.
FamilyLike: TypeAlias = str | Family | tuple[Any, ...]
_REGISTER = Register("family", "families")
# How many families had a class of that name.
_SO_FAR: dict[str, int] = {}
FamilyClass = TypeVar("FamilyClass", bound=type)


def family(
    name: str,
    *,
    separable: bool,
    reducible: bool,
    domain: Domain | None = None,
    quadratic: bool = False,
    covariance: str = "none",
    entropy_share: float = 0.0,
    entropy_of_complement: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[FamilyClass], FamilyClass]:
    """Declare a class as a family: state its properties, complete and register it.

    Parameters
    ----------
    name : str
        The name of the family, for ``family=``.
    separable, reducible, quadratic : bool
        Properties, as defined at the top of this module; the first decides which method is
        required.
    covariance : {"none", "diagonal", "full"}, default="none"
        The kind of covariance that each cluster has of its own.
    entropy_share : float, default=0.0
        A c for which φ₁(y) − c·y log y is convex, for bounds on sparse rows.
    entropy_of_complement : bool, default=False
        Whether φ₁(y) − c·(y log y + (1 − y) log(1 − y)) is convex too.
    domain : Domain, optional
        The values that a row may hold. A class whose domain depends on its parameters defines a
        property instead.
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
        made = complete(
            cls,
            name,
            separable=separable,
            reducible=reducible,
            domain=domain,
            quadratic=quadratic,
            covariance=covariance,
            entropy_share=entropy_share,
            entropy_of_complement=entropy_of_complement,
        )
        register(made, name, *aliases)
        return made

    return declare


def complete(
    cls: FamilyClass,
    name: str,
    *,
    separable: bool,
    reducible: bool,
    domain: Domain | None = None,
    quadratic: bool = False,
    covariance: str = "none",
    entropy_share: float = 0.0,
    entropy_of_complement: bool = False,
) -> FamilyClass:
    """The class with its properties and all methods, not registered; see `family`."""
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
        "entropy_share": entropy_share,
        "entropy_of_complement": entropy_of_complement,
    }
    if domain is not None:
        stated["domain"] = domain
    elif not hasattr(cls, "domain"):
        raise TypeError(f"the family {cls.__name__} has to state its domain")
    for key, value in stated.items():
        setattr(cls, key, value)
    defaults = dict(DEFAULTS)
    if separable:
        defaults["observed_geometry"] = _of_separate_columns
        defaults["divergence_bound"] = vars(cls)["divergence"]
        known = hasattr(cls, "variance_function")
        defaults["pair_bound"] = pair_bound_by_variance if known else pair_bound_by_divergences
        defaults["variance_function"] = unknown_variance
        defaults["second_derivative"] = second_derivative_by_steps
    for key, method in defaults.items():
        if not hasattr(cls, key):
            setattr(cls, key, method)
    _tell_apart(cls)
    return cls


def _of_separate_columns(self: Any, rows: PartlyObserved) -> Any:
    return observed_geometry(self, rows.width)


def _tell_apart(cls: type) -> None:
    """Number a class if there was one of the same name, such as in a cell that is executed again.

    Numba knows records inside records by the names of their classes. It would call the kernels of
    the other one.
    """
    count = _SO_FAR[cls.__name__] = _SO_FAR.get(cls.__name__, 0) + 1
    if count > 1:
        cls.__name__ = f"{cls.__name__}_{count}"


def register(cls: type, *names: str) -> None:
    """Make a family known by its names."""
    _REGISTER.add(cls, *names)


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


def as_family(family: FamilyLike | dict[Any, Any]) -> Family:
    """The family of that name, or the record itself, with its numbers as floats.

    Parameters
    ----------
    family : str, record, class or dict
        A name or alias, a record, or a class, which stands for the record of its defaults. "auto"
        is ``Gaussian(smoothing="auto")``. A dict from families to columns is a `Product`.

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
    if isinstance(family, dict):
        return as_family(_REGISTER["product"](family))
    if isinstance(family, str):
        if family == "auto":  # the default: measurements, with a smoothing that fits their scale
            return as_family(_REGISTER["gaussian"]("auto"))
        return as_family(_REGISTER.find(family)())
    if isinstance(family, type):
        if not hasattr(family, "separable"):
            raise TypeError(_not_a_family(family))
        return as_family(family())
    if not (isinstance(family, tuple) and hasattr(family, "separable")):
        raise TypeError(_not_a_family(family))
    # One compilation per family, whether a parameter was typed 1 or 1.0.
    cls: Any = type(family)
    try:
        record: Family = (
            family.normalised() if hasattr(family, "normalised") else cls(*map(_parameter, family))
        )
    except OverflowError:
        raise ValueError(
            f"a parameter of the family {cls.name!r} is too large for double precision"
        ) from None
    record.check()
    return record


def _parameter(value: Any) -> Any:
    """A parameter with its numbers as floats; words, None and truth values stay as they are."""
    if value is None or isinstance(value, bool | str):
        return value
    return tuple(map(float, value)) if isinstance(value, tuple) else float(value)


def _not_a_family(given: Any) -> str:
    return (
        f"family has to be a name or a record from fastrbhc.families, got {given!r}; "
        "a class of your own is declared with @fastrbhc.families.family"
    )
