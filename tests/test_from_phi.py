"""Families from φ and its derivative: digits, kernels of their own, files, refusals."""

from __future__ import annotations

import copy
import fractions
import math
import pickle

import mpmath
import numba
import numpy as np
import pytest
from sklearn.base import clone

import fastrbhc
from fastrbhc import families
from fastrbhc._engine.geometry.separable_columns import divergence, second_derivative
from fastrbhc._engine.jit import PLAIN_PYTHON, kernel
from fastrbhc.families import Domain, from_phi

POSITIVE = Domain(lower=0.0, includes_lower=False)
exactly = mpmath.mpf


def x_log_x(x):
    return x * math.log(x) - x


def reciprocal(x):
    return 1.0 / x


# φ, φ′ and φ″; domain; φ and φ′ for mpmath; powers of ten of the means.
CASES = {
    "x log x": (
        x_log_x, math.log, reciprocal, POSITIVE,
        lambda x: x * mpmath.log(x) - x, mpmath.log, (-9, 9),
    ),
    "−log x": (
        lambda x: -math.log(x), lambda x: -1.0 / x, lambda x: 1.0 / (x * x), POSITIVE,
        lambda x: -mpmath.log(x), lambda x: -1 / x, (-9, 9),
    ),
    "1/x": (
        lambda x: 1.0 / x, lambda x: -1.0 / x**2, lambda x: 2.0 / x**3, POSITIVE,
        lambda x: 1 / x, lambda x: -1 / x**2, (-9, 9),
    ),
    "x⁴": (
        lambda x: x**4, lambda x: 4.0 * x**3, lambda x: 12.0 * x * x, Domain(),
        lambda x: x**4, lambda x: 4 * x**3, (-4, 4),
    ),
    "cosh x": (
        math.cosh, math.sinh, math.cosh, Domain(), mpmath.cosh, mpmath.sinh, (-6, 2),
    ),
    "softplus": (
        lambda x: math.log1p(math.exp(x)), lambda x: 1.0 / (1.0 + math.exp(-x)),
        lambda x: 1.0 / ((1.0 + math.exp(-x)) * (1.0 + math.exp(x))), Domain(),
        lambda x: mpmath.log(1 + mpmath.exp(x)), lambda x: 1 / (1 + mpmath.exp(-x)), (-4, 0.5),
    ),
    "−√(1 − x²)": (
        lambda x: -math.sqrt(1.0 - x * x), lambda x: x / math.sqrt(1.0 - x * x),
        lambda x: (1.0 - x * x) ** -1.5, Domain(lower=-1.0, upper=1.0),
        lambda x: -mpmath.sqrt(1 - x * x), lambda x: x / mpmath.sqrt(1 - x * x), (-4, -0.05),
    ),
}  # fmt: skip


@kernel
def divergences(family, values, means, steps, out):
    for i in range(values.size):
        out[i] = divergence(family, values[i], means[i], steps[i])


def steps_of_all_sizes(domain, powers, rng, n=300):
    """Means, and steps from a relative size of 1e-100 up to where the domain ends."""
    means = 10.0 ** rng.uniform(*powers, n)
    means *= 1.0 if domain.lower == 0.0 else rng.choice([-1.0, 1.0], n)
    sizes = np.where(rng.random(n) < 0.3, rng.uniform(-100, -12, n), rng.uniform(-12, 3, n))
    steps = means * 10.0**sizes * rng.choice([-1.0, 1.0], n)
    values = means + steps
    inside = (values > domain.lower + 1e-9 * abs(means)) & (values < domain.upper)
    inside &= np.abs(values) < (30.0 if powers[1] < 3 else np.inf)
    return values[inside], means[inside], steps[inside]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("given", "worst"), [(2, 1e-11), (3, 1e-12)], ids=["φ′", "φ″"])
def test_digits(name, given, worst):
    """What the docstring states."""
    *functions, domain, phi, slope, powers = CASES[name]
    family = from_phi(*functions[:given], domain=domain)
    values, means, steps = steps_of_all_sizes(domain, powers, np.random.default_rng(0))
    computed = np.empty(values.size)
    divergences(family, values, means, steps, computed)
    with mpmath.workdps(250):
        for mean, step, found in zip(
            means.tolist(), steps.tolist(), computed.tolist(), strict=True
        ):
            m, s = exactly(mean), exactly(step)
            reference = phi(m + s) - phi(m) - slope(m) * s
            assert abs(found - reference) <= worst * reference, (mean, step)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name):
    *functions, domain, _, _, powers = CASES[name]
    family = from_phi(*functions[:2], domain=domain)
    for mean in 10.0 ** np.random.default_rng(1).uniform(*powers, 20):
        assert second_derivative(family, mean) == pytest.approx(functions[2](mean), rel=1e-11)


def test_families_do_not_share_kernels():
    """All their classes are made in one place, and have the same fields."""
    X = np.random.default_rng(2).gamma(2.0, size=(40, 2))
    for phi, slope, name in (
        (x_log_x, math.log, "poisson"),
        (lambda x: -math.log(x), lambda x: -1.0 / x, "exponential"),
        (lambda x: 0.5 / x, lambda x: -0.5 / x**2, "inverse_gaussian"),
        (lambda x: 0.5 * x * x, lambda x: x, "ward"),
    ):
        known = families.as_family(name)
        known = known._replace(smoothing=0.0) if hasattr(known, "smoothing") else known
        family = from_phi(phi, slope, domain=POSITIVE)
        assert fastrbhc.dissimilarity(X[:9], X[9:], family) == pytest.approx(
            fastrbhc.dissimilarity(X[:9], X[9:], known), rel=1e-10
        )
        reference, computed = fastrbhc.linkage(X, known), fastrbhc.linkage(X, family)
        np.testing.assert_array_equal(computed.merges, reference.merges)
        np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


def test_the_same_functions_give_the_same_class():
    one, two = (from_phi(x_log_x, math.log, domain=POSITIVE, smoothing=s) for s in (0.0, 0.5))
    assert type(one) is type(two)
    assert type(from_phi(x_log_x, math.log, reciprocal, domain=POSITIVE)) is not type(one)
    assert copy.deepcopy(one) is one


def test_everything_takes_them():
    X = np.random.default_rng(3).poisson([[3.0, 9.0]] * 30 + [[40.0, 70.0]] * 30) * 1.0
    family = from_phi(x_log_x, math.log, reciprocal, domain=Domain(lower=0.0), smoothing=0.01)
    model, known = (fastrbhc.RBHC(f, n_clusters=2).fit(X) for f in (family, "poisson"))
    np.testing.assert_array_equal(model.labels_, known.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), known.transform(X), rtol=1e-9)
    assert clone(model).family is family
    for neighbors in ("brute", "kd_tree"):
        tree = fastrbhc.linkage(X, family, neighbors=neighbors, audit=True)
        assert tree.audit.violations == fastrbhc.linkage(X, "poisson", audit=True).audit.violations
    assert fastrbhc.taylor_dissimilarity(X[:20], X[20:], family) == pytest.approx(
        fastrbhc.taylor_dissimilarity(X[:20], X[20:], "poisson"), rel=1e-11
    )
    np.testing.assert_allclose(family.phi(X + 1.0), families.Poisson().phi(X + 1.0))


@pytest.mark.fast
def test_compiled_functions_and_those_of_libraries():
    X = np.array([[0.5], [1.5]])
    reference = math.cosh(0.5) + math.cosh(1.5) - 2.0 * math.cosh(1.0)
    for phi, slope in (
        (math.cosh, math.sinh),
        (np.cosh, np.sinh),
        (numba.njit(lambda x: math.cosh(x)), numba.njit(lambda x: math.sinh(x))),
    ):
        computed = fastrbhc.dissimilarity(X[:1], X[1:], from_phi(phi, slope))
        assert computed == pytest.approx(reference, rel=1e-11)


def test_logarithms_of_numpy_are_tried_out_without_warnings():
    # Warnings are errors here. No domain is given, so that negative values are tried as well.
    family = from_phi(lambda x: x * np.log(x), lambda x: np.log(x) + 1.0)
    assert family.domain.lower == -math.inf


def test_pickles_and_files(tmp_path):
    X = np.random.default_rng(4).gamma(2.0, size=(20, 2))
    family = from_phi(x_log_x, math.log, domain=POSITIVE)
    again = pickle.loads(pickle.dumps(family))
    assert again == family
    assert type(again) is type(family)
    tree = fastrbhc.linkage(X, family)
    with pytest.warns(UserWarning, match=r"from_phi\(x_log_x\)', which is not declared here"):
        assert fastrbhc.Dendrogram.from_json(tree.to_json()).family is None
    named = from_phi(x_log_x, math.log, domain=POSITIVE, name="my_entropy")
    try:
        assert families.as_family("my_entropy") == named
        tree = fastrbhc.linkage(X, named)
        assert type(fastrbhc.Dendrogram.from_json(tree.to_json()).family) is type(named)
        assert type(pickle.loads(pickle.dumps(tree)).family) is type(named)
        assert str(named) == "my_entropy(smoothing=0.0)"
    finally:
        families._interface._REGISTER.pop("my_entropy")


@pytest.mark.fast
def test_kernels_are_not_kept_on_disk():
    cls = type(from_phi(x_log_x, math.log, domain=POSITIVE))
    assert cls.__module__.split(".")[0] != "fastrbhc"


@pytest.mark.fast
@pytest.mark.parametrize(
    ("phi", "slope", "error", "message"),
    [
        (3, math.log, TypeError, "phi has to be a function of one number, got 3"),
        (math.cosh, "sinh", TypeError, "derivative has to be a function"),
        (math.cosh, math.cosh, ValueError, "derivative is not that of phi: at"),
        (lambda x: -x * x, lambda x: -2.0 * x, ValueError, "phi has to be convex"),
    ],
)
def test_what_is_refused(phi, slope, error, message):
    with pytest.raises(error, match=message):
        from_phi(phi, slope)


@pytest.mark.fast
def test_names_of_the_package_are_taken():
    with pytest.raises(ValueError, match="the name 'poisson' belongs to"):
        from_phi(math.cosh, math.sinh, name="poisson")


@pytest.mark.skipif(PLAIN_PYTHON, reason="nothing is compiled")
def test_functions_that_cannot_be_compiled():
    def square(x):
        return float(fractions.Fraction(x)) ** 2

    with pytest.raises(TypeError, match=r"phi has to be .* that Numba can compile"):
        from_phi(square, lambda x: 2.0 * x)
    with pytest.raises(TypeError, match=r"derivative has to be .* that Numba can compile"):
        from_phi(lambda x: x**3, lambda x: 3.0 * square(x), domain=POSITIVE)
