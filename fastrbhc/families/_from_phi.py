"""A family from φ and its derivative alone."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import float64
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from fastrbhc._engine.geometry.numerical_divergence import (
    curvature_by_slopes,
    divergence_by_curvature,
    divergence_by_slopes,
)
from fastrbhc._engine.jit import PLAIN_PYTHON, open_kernel
from fastrbhc.families._interface import Domain, Family, as_family, complete, register
from fastrbhc.families._smoothing import (
    Smoothing,
    check_rows_beside_shift,
    check_shift,
    shift,
)

Function = Callable[[float], float]

# The module of classes made here. Kernels on disk are those of the package's own classes alone.
_MODULE = "families_from_phi"
# The functions, in the order of the arguments.
_NAMES = ("phi", "derivative", "second_derivative")
# Where φ and φ′ are compared: distances from the ends of the domain, or from 0 on the whole line.
_PROBES = (1e-3, 0.1, 0.5, 1.0, 2.0, 7.0, 30.0)
# Relative errors of the derivative beyond this are not those of a difference quotient.
_WRONG = 1e-3


def from_phi(
    phi: Function,
    derivative: Function,
    second_derivative: Function | None = None,
    *,
    domain: Domain | None = None,
    smoothing: float = 0.0,
    reducible: bool = False,
    name: str | None = None,
) -> Family:
    """A family of one's own from its φ: d is the sum over the columns of the divergences of φ.

    Parameters
    ----------
    phi, derivative : callable
        φ of one column, convex, and φ′. Python functions of one number that Numba can compile, or
        functions of ``math`` or NumPy.
    second_derivative : callable, optional
        φ″. With it no digits are lost, and a divergence takes less time.
    domain : Domain, optional
        The values that a row may hold; by default all numbers. φ and φ′ have to be finite inside.
    smoothing : float, default=0.0
        Added to every mean (the paper's φ₁), for a φ that is degenerate at the lower end of its
        domain. Values at that end are taken if the domain includes it.
    reducible : bool, default=False
        Whether d is known to be reducible: see the guide.
    name : str, optional
        A name for ``family=``, by which files of trees refer to it.

    Returns
    -------
    record
        For ``family=`` everywhere. The same functions give the same class, so that kernels are
        compiled once in each process.

    Raises
    ------
    TypeError
        Numba cannot compile one of the functions.
    ValueError
        The derivative is not that of φ, or φ is not convex, at one of several values.

    Notes
    -----
    **Digits.** A divergence of a smooth φ has a relative error below 1e-11, and with φ″ below
    1e-12, whatever the step from the mean is. A divergence that is written out has 14 digits and
    takes a tenth of the time or less: CONTRIBUTING.md, "Add a family". What that takes is a φ that
    is analytic inside its domain, and has no linear part that is millions of times as large as its
    divergences. Steps between 1e-120 and 1e120 are covered, as for all families.

    **Files.** Pickles hold references to the functions, as pickles do: they can be read where
    these can be imported. JSON and pickled trees hold the name. They are read with their family
    where one of that name has been made before, and without it, with a warning, elsewhere. Kernels
    are not kept on disk.

    References
    ----------
    L. M. Bregman (1967), The relaxation method of finding the common point of convex sets and its
    application to the solution of problems in convex programming, USSR Computational Mathematics
    and Mathematical Physics 7, 200–217.

    L. N. Trefethen (2013), Approximation Theory and Approximation Practice, SIAM, for the
    interpolation.

    Examples
    --------
    >>> import math
    >>> from fastrbhc import dissimilarity, linkage
    >>> from fastrbhc.families import Domain, from_phi
    >>> family = from_phi(lambda x: x**4, lambda x: 4.0 * x**3)
    >>> round(dissimilarity([[1.0]], [[3.0]], family), 9)
    50.0
    >>> positive = Domain(lower=0.0, includes_lower=False)
    >>> shannon = from_phi(lambda x: x * math.log(x), lambda x: math.log(x) + 1.0, domain=positive)
    >>> linkage([[1.0], [2.0], [9.0]], shannon).heights.round(6).tolist()
    [0.169899, 4.355884]
    """
    chosen = Domain() if domain is None else domain
    functions = (phi, derivative, *([] if second_derivative is None else [second_derivative]))
    for what, function in zip(_NAMES, functions, strict=False):
        if not callable(function):
            raise TypeError(f"{what} has to be a function of one number, got {function!r}")
    _check_slope(phi, derivative, chosen)
    cls = _class_of(functions, chosen, reducible, name)
    if name is not None:
        register(cls, name)
    return as_family(cls(smoothing))


def _kernel_of(what: str, function: Any) -> Any:
    """A kernel of a Python function, of one that Numba has compiled, or of one of a library."""
    function = getattr(function, "py_func", function)

    def call(x):
        return function(x)

    kernel = open_kernel(function if isinstance(function, types.FunctionType) else call)
    if not PLAIN_PYTHON:
        try:
            kernel.fragment((float64,))  # which is what other kernels take in, so nothing is lost
        except NumbaError as error:
            raise TypeError(
                f"{what} has to be a function of one number that Numba can compile: arithmetic, "
                "conditions, and functions of math or NumPy. It says: "
                + str(error).strip().splitlines()[-1].strip()
            ) from error
    return kernel


@functools.cache
def _class_of(
    functions: tuple[Function, ...], domain: Domain, reducible: bool, name: str | None
) -> Any:
    """The class of a family, the same for the same functions."""
    phi_kernel, slope_kernel, *others = map(_kernel_of, _NAMES, functions)
    title = name or f"from_phi({getattr(functions[0], '__name__', 'phi')})"
    lower, upper = float(domain.lower), float(domain.upper)

    class FromPhi(NamedTuple):
        """A family from φ and its derivative."""

        smoothing: float = 0.0

        def check(self) -> None:
            check_shift(self.smoothing)

        def check_rows(self, X: NDArray[np.float64]) -> None:
            check_rows_beside_shift(X, self.smoothing)

        def smoothing_map(self, n_features: int) -> Smoothing:
            return shift(self.smoothing)

        def phi(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.vectorize(functions[0], otypes=[np.float64])(x)

        def potential(family, x):
            return phi_kernel(x)

        def slope(family, x):
            return slope_kernel(x)

        def limits(family):
            return lower, upper

        def __repr__(self) -> str:
            return f"{title}(smoothing={self.smoothing!r})"

        def __reduce__(self) -> Any:
            return _again, (functions, domain, self.smoothing, reducible, name)

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    made: Any = FromPhi
    made.__module__ = _MODULE
    if others:
        curvature_kernel = others[0]

        def second_derivative(family, x):
            return curvature_kernel(x)

        made.second_derivative, made.divergence = second_derivative, divergence_by_curvature
    else:
        made.second_derivative, made.divergence = curvature_by_slopes, divergence_by_slopes
    return complete(made, title, separable=True, reducible=reducible, domain=domain)


def _again(
    functions: tuple[Function, ...],
    domain: Domain,
    smoothing: float,
    reducible: bool,
    name: str | None,
) -> Family:
    """The record of a pickle."""
    return from_phi(*functions, domain=domain, smoothing=smoothing, reducible=reducible, name=name)


def _check_slope(phi: Function, derivative: Function, domain: Domain) -> None:
    """Refuse a derivative that is not that of φ, and a φ that is not convex, as far as is seen."""
    before = -math.inf
    for x in _places(domain):
        step = 1e-5 * min(abs(x) or 1.0, x - domain.lower, domain.upper - x)
        try:
            with np.errstate(all="ignore"):  # NumPy's logarithm warns where math.log raises
                rise = float(derivative(x))
                measured = (float(phi(x + step)) - float(phi(x - step))) / (2.0 * step)
                rounding = 1e-16 * abs(float(phi(x))) / step
        except (ArithmeticError, ValueError):  # such as the logarithm of a negative number
            continue
        if not (math.isfinite(rise) and math.isfinite(measured)):
            continue
        if abs(rise - measured) > _WRONG * (abs(rise) + abs(measured)) + 10.0 * rounding:
            raise ValueError(
                f"derivative is not that of phi: at {x:g} it is {rise:g}, and phi rises by "
                f"{measured:g}"
            )
        if rise < before - _WRONG * abs(before):
            raise ValueError(
                f"phi has to be convex: its derivative falls from {before:g} to {rise:g} at {x:g}"
            )
        before = rise


def _places(domain: Domain) -> list[float]:
    """Values in the domain, in ascending order."""
    lower, upper = domain.lower, domain.upper
    if math.isfinite(lower) and math.isfinite(upper):
        return [lower + (upper - lower) * share for share in (0.01, 0.2, 0.5, 0.8, 0.99)]
    if math.isfinite(lower):
        return [lower + probe for probe in _PROBES]
    if math.isfinite(upper):
        return [upper - probe for probe in reversed(_PROBES)]
    return [-probe for probe in reversed(_PROBES)] + list(_PROBES)
