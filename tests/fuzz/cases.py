"""Random cases: rows, a family, options, and the form in which the rows are given.

A case is determined by one integer, its seed.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fastrbhc import bhc, families
from fastrbhc._table import placed
from fastrbhc.families import Block, Product, as_family
from fuzz.forms import DENSE, DTYPES, FORMS, SPARSE
from fuzz.parts import CURVATURE, from_burg, from_pseudo_huber
from fuzz.rows import PATTERNS, RARE, SHARES, in_domain, pick, rescaled, scales

FAMILIES = {
    "spherical_gaussian": families.SphericalGaussian,
    "gaussian": families.Gaussian,
    "diagonal_gaussian": families.DiagonalGaussian,
    "von_mises_fisher": families.VonMisesFisher,
    "poisson": families.Poisson,
    "multinomial": families.Multinomial,
    "bernoulli": families.Bernoulli,
    "exponential": families.Exponential,
}
# Families whose reference is in `fuzz.parts`.
FURTHER = {
    "negative_binomial": families.NegativeBinomial,
    "geometric": families.Geometric,
    "binomial": families.Binomial,
    "gamma": families.Gamma,
    "inverse_gaussian": families.InverseGaussian,
    "log_normal": families.LogNormal,
    "weibull": families.Weibull,
    "rayleigh": families.Rayleigh,
    "pareto": families.Pareto,
    "categorical": families.Categorical,
    "from_pseudo_huber": from_pseudo_huber,
    "from_burg": from_burg,
}
# Products of these; each has kernels of its own.
PRODUCTS = (
    ("spherical_gaussian", "poisson", "bernoulli"),
    ("poisson", "gaussian"),
    ("gaussian", "poisson"),
    ("diagonal_gaussian", "von_mises_fisher", "exponential"),
    ("categorical", "poisson"),
    ("multinomial", "log_normal"),
    ("negative_binomial",),
)
# Families that take missing cells.
WITH_GAPS = (
    "spherical_gaussian", "poisson", "bernoulli", "exponential", "negative_binomial", "gamma",
    "inverse_gaussian", "log_normal", "weibull",
)  # fmt: skip
MODELS = {
    "gaussian": bhc.NormalWishart,
    "diagonal_gaussian": bhc.NormalGamma,
    "poisson": bhc.GammaPoisson,
    "multinomial": bhc.DirichletMultinomial,
    "bernoulli": bhc.BetaBernoulli,
}

# Limits of the plan lowered, so that every kernel runs on few rows: (module, name, value).
_ENGINE = "fastrbhc._engine."
PATCHES: dict[str, list[tuple[str, str, Any]]] = {
    "not_direct": [(_ENGINE + "planning.plan", "MOST_POINTS", 0)],
    "known_columns": [(_ENGINE + "planning.plan", "WORTH_COMPILING", 0)],
    "threads": [
        (_ENGINE + "planning.plan", "_WORTH_A_THREAD", 0),
        (_ENGINE + "planning.plan", "_WORTH_A_THREAD_BY_LEVELS", 0),
        ("fastrbhc.bhc._linkage", "_WORTH_A_THREAD", 0),
    ],
    "by_python": [
        (_ENGINE + "threads", "_WORTH_A_THREAD_SECONDS", 0.0),
        (_ENGINE + "agglomeration.greedy", "LONG_SECONDS", 0.0),
        (_ENGINE + "agglomeration.levels", "LONG_SECONDS", 0.0),
    ],
    "rotated": [(_ENGINE + "clusters.principal_axes", "_FEW_POINTS", 2)],
    "pilot": [(_ENGINE + "planning.cost_model", "_WORTH_A_PILOT", 0)],
}

# Kernels that know the number of columns are compiled for each number.
KNOWN_COLUMNS = (2, 3)


@dataclass(frozen=True)
class Case:
    """Everything that a call depends on, and what to compare it with."""

    seed: int
    X: np.ndarray  # float64, in C order; the values of what is given
    family: str
    parameters: dict[str, Any] = field(default_factory=dict)
    weights: np.ndarray | None = None
    algorithm: str = "auto"
    neighbors: str = "auto"
    threshold: Any = None  # a number, a name, or (share, nudge): at that share of the merges
    n_jobs: int | None = None
    audit: Any = False
    form: str = "plain"
    patches: tuple[str, ...] = ()
    comparisons: tuple[str, ...] = ()
    model: bool = False  # whether this is one for bhc_linkage
    estimator: bool = False  # whether RBHC is called in place of linkage
    alpha: float = 1.0
    pattern: str = ""  # how the rows were drawn, for counts
    scale: str = "1"
    missing: str = "error"

    @property
    def record(self):
        """The family, or the model."""
        if self.family == "product":
            return as_family(Product(**self.parameters))
        classes = MODELS if self.model else {**FAMILIES, **FURTHER}
        return classes[self.family](**self.parameters)

    @property
    def placed(self):
        """The family with what it learns from the columns: levels of categories, positions."""
        return placed(self.record, self.X)

    @property
    def domains_of_columns(self):
        """Domains, each with the columns that it is for."""
        record = self.record
        if self.family != "product":
            return [(record.domain, slice(None))]
        # Text may be anything.
        return [
            (block.family.domain, list(block.columns))
            for block in record.blocks
            if block.family != "ignore" and not hasattr(block.family, "levels")
        ]

    @property
    def reducible(self):
        """Whether d is reducible: with missing cells it never is."""
        return self.record.reducible and self.missing == "error"

    @property
    def usual(self):
        """Whether parameters are the default ones, or left to the data."""
        return self.family == "product" or not self.parameters or self.left_to_data

    @property
    def left_to_data(self):
        """Whether the smoothing is derived from the rows."""
        return self.parameters.get("smoothing") == "auto"

    @property
    def given(self):
        """X in its form."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SciPy, about formats that do not suit the rows
            return FORMS[self.form](self.X)


@contextlib.contextmanager
def patched(names):
    """Lower limits for the time of a call."""
    kept = []
    for name in names:
        for module, attribute, value in PATCHES[name]:
            place = importlib.import_module(module)
            kept.append((place, attribute, getattr(place, attribute)))
            setattr(place, attribute, value)
    try:
        yield
    finally:
        for place, attribute, value in reversed(kept):
            setattr(place, attribute, value)


# Parameters, weights and options.


# Families whose smoothing may be left to the data, and how often it is. That of the Gaussian is the
# default of the package, the family "auto".
_LEFT_TO_DATA = {"gaussian": 0.5, "diagonal_gaussian": 0.2}


def _parameters(rng, name):
    if rng.random() < _LEFT_TO_DATA.get(name, 0.0):
        return {"smoothing": "auto"}
    if rng.random() < 0.6:
        return {}
    log = lambda low, high: float(10.0 ** rng.uniform(low, high))  # noqa: E731
    far = rng.random() < 0.2
    if name == "spherical_gaussian":
        return {"variance": log(-300, 300) if far else log(-6, 6)}
    if name == "gaussian":
        return {"smoothing": log(-300, 245) if far else log(-8, 4)}
    if name == "diagonal_gaussian":
        return {"smoothing": log(-300, 245) if far else log(-12, 8)}
    if name == "von_mises_fisher":
        return {"concentration": log(-150, 150) if far else log(-3, 3)}
    if name == "poisson":
        return {"smoothing": pick(rng, [0.0, 1e-300, 1e-8, 1.0, 1e6, log(-120, 120)])}
    if name == "exponential":
        return {"smoothing": pick(rng, [0.0, 1e-9, 1.0, 1e100, log(-120, 120)])}
    if name == "bernoulli":
        return {"smoothing": pick(rng, [0.0, 1e-3, 0.5, 0.99])}
    smoothing = pick(rng, [0.0, 1e-10, 0.1, 0.5, 0.999])
    return {"smoothing": smoothing, "weight_by_total": bool(rng.random() < 0.5)}


def _weights(rng, n):
    kind = pick(rng, ["none", "whole", "zeros", "real", "far"], [0.6, 0.15, 0.1, 0.1, 0.05])
    if kind == "none":
        return None
    weights = rng.integers(1, 5, size=n) * 1.0
    if kind == "real":
        weights = rng.gamma(1.0, size=n) + 0.01
    elif kind == "far":
        weights = 10.0 ** rng.uniform(-50.0, 50.0, size=n).clip(-49.9, 49.9)
    elif kind == "zeros":
        weights[rng.random(n) < 0.3] = 0.0
        if not weights.any():
            weights[rng.integers(n)] = 1.0
    return weights


def _size(rng, family):
    kind = pick(rng, ["few", "some", "more", "many", "most"], [0.895, 0.085, 0.015, 0.004, 0.001])
    if kind == "few":
        return int(rng.integers(2, 16)) if rng.random() > 0.004 else 1
    if kind == "some":
        return int(rng.integers(16, 61))
    if kind == "more":
        return int(rng.integers(61, 250))
    largest = 400 if family == "gaussian" else 800 if kind == "many" else 2500
    return int(rng.integers(250, largest))


COMPARISONS = {
    "permutation": 1.0,
    "plain": 1.0,
    "n_jobs": 0.5,
    "neighbors": 1.0,
    "algorithm": 1.0,
    "forest": 1.0,
    "copies": 0.5,
    "power_of_two": 0.5,
    "unpatched": 0.5,
    "estimator": 0.3,
}


def draw(seed):
    """The case of a seed."""
    rng = np.random.default_rng([seed, 20150707])
    way = rng.random()
    if way < 0.02:
        return _draw_model(rng, seed)
    if way < 0.08:
        return _draw_product(rng, seed)
    if way < 0.18:
        return _draw_gaps(rng, seed)
    if way < 0.34:
        return _draw_further(rng, seed)
    name = pick(rng, list(FAMILIES))
    parameters = _parameters(rng, name)
    record = FAMILIES[name](**parameters)
    domain = record.domain
    n = _size(rng, name)
    d = _columns(rng)
    pattern = pick(rng, list(PATTERNS), SHARES)
    sensitive = name == "bernoulli" and record.smoothing < 1e-6
    if sensitive:  # shares near 1 lose digits then, as documented
        pattern = pick(rng, ["eighths", "zeros", "grid"])
    X = in_domain(rng, PATTERNS[pattern](rng, n, d), domain)
    exponents, scale = scales(rng, d, np.isfinite(domain.upper))
    X = rescaled(X, exponents)
    form, X = _form(rng, X, domain)
    if form not in DTYPES and rng.random() < 0.015:
        scale, X = "invalid", _spoiled(rng, X)
    weights = None if sensitive else _weights(rng, n)
    case = Case(
        seed=seed,
        X=np.ascontiguousarray(X, np.float64),
        family=name,
        parameters=parameters,
        weights=weights,
        form=form,
        pattern=pattern,
        scale=scale,
    )
    return _with_options(rng, case)


def _with_options(rng, case):
    """The case with an algorithm, a backend, other options and comparisons."""
    record, (n, d) = case.record, case.X.shape
    algorithm = pick(rng, ["auto", "greedy", "levels", "nn_chain"], [0.4, 0.22, 0.16, 0.22])
    if algorithm == "levels" and not case.reducible:
        algorithm = "greedy"
    threshold = None
    if rng.random() < 0.2:
        threshold = pick(rng, [(float(rng.random()), int(rng.integers(-1, 2))), np.inf, 0.0, 1.0],
                          [0.85, 0.05, 0.03, 0.07])  # fmt: skip
    elif rng.random() < 0.1:
        threshold = "predictive"
    names = list(COMPARISONS)
    count = int(pick(rng, [0, 1, 2], [0.3, 0.5, 0.2]))
    comparisons = {pick(rng, names, list(COMPARISONS.values())) for _ in range(count)}
    if case.form != "plain":
        comparisons.add("plain")
    neighbors = pick(rng, ["auto", "brute", "kd_tree"], [0.45, 0.25, 0.3])
    takes_sparse = (
        case.family in FAMILIES and case.missing == "error" and record.domain.takes_sparse
    )
    if takes_sparse and _are_counts(case.X, case.weights) and rng.random() < 0.5:
        neighbors = "inverted"
        # Ties are decided otherwise than among dense rows.
        comparisons.discard("neighbors")
    return replace(
        case,
        algorithm=algorithm,
        neighbors=neighbors,
        threshold=threshold,
        n_jobs=pick(rng, [None, 1, 2, 3], [0.3, 0.5, 0.12, 0.08]),
        audit=pick(rng, [False, True, "sample"], [0.93, 0.05, 0.02]),
        patches=_patches(rng, n, d),
        comparisons=tuple(sorted(comparisons)),
    )


def _columns(rng):
    return pick(rng, [1, 2, 3, 4, 5, 6, 8, 9, 12], [3, 5, 5, 1, 1, 0.5, 0.5, 0.5, 0.3])


def _few_rows(rng, *records):
    """References of parts take more time, and more still by the definition."""
    fewest, most = pick(rng, [(2, 13), (13, 25), (25, 120)], [0.9, 0.07, 0.03])
    n = int(rng.integers(fewest, most))
    return min(n, 20) if any(record.name in CURVATURE for record in records) else n


_USUAL = [name for name in PATTERNS if name not in RARE]


def _further_parameters(rng, name):
    """Parameters that suit rows of any pattern, near 1 in scale."""
    if rng.random() < 0.5:
        return {}
    positive = float(10.0 ** rng.uniform(-3.0, 3.0))
    smoothing = float(pick(rng, [1e-6, 0.01, 1.0, positive]))
    if name in ("gamma", "inverse_gaussian"):
        return {"shape": positive, "smoothing": pick(rng, [0.0, smoothing])}
    return {
        "negative_binomial": {
            "dispersion": pick(rng, [0.0, 1.0, positive]),
            "smoothing": smoothing,
        },
        "geometric": {"smoothing": smoothing},
        "binomial": {"trials": float(rng.integers(1, 1000)), "smoothing": 0.3},
        "log_normal": {"variance": positive},
        "weibull": {"shape": float(rng.uniform(0.2, 5.0)), "smoothing": pick(rng, [0.0, 1.0])},
        "rayleigh": {"smoothing": pick(rng, [0.0, 1.0])},
        "pareto": {"minimum": positive, "smoothing": pick(rng, [0.0, 1.0])},
        "categorical": {"smoothing": pick(rng, [0.0, 1e-3, 0.5])},
    }.get(name, {})


def _rows_of(rng, record, n, d):
    """Rows of a family, and the pattern of which they are."""
    domain, pattern = record.domain, pick(rng, _USUAL)
    if record.name.startswith("from_phi"):  # a linear part must not be much larger than d
        pattern = pick(rng, ["blobs", "grid", "repeated", "eighths"])
    X = PATTERNS[pattern](rng, n, d)
    if hasattr(record, "levels"):
        return np.mod(np.round(np.clip(np.abs(X), 0.0, 1e6)), 4.0), pattern
    if domain.lower > 0.0:  # a minimum
        below = 0.0 if domain.includes_lower else 1e-3
        return domain.lower * (1.0 + np.maximum(np.abs(X), below)), pattern
    bounded = np.isfinite(domain.upper)
    X = in_domain(rng, X, domain._replace(upper=1.0 if bounded else np.inf))
    if bounded:
        return X * domain.upper, pattern
    exponents, _ = scales(rng, d, False)
    if record.name in CURVATURE:  # differences far below the smoothing take very many digits
        exponents = np.clip(exponents, -20, 20)
    return X if record.name.startswith("from_phi") else rescaled(X, exponents), pattern


def _draw_further(rng, seed):
    # Families from φ are compiled in every process.
    name = pick(rng, list(FURTHER), [0.05 if key.startswith("from") else 1.0 for key in FURTHER])
    parameters = _further_parameters(rng, name)
    record = FURTHER[name](**parameters)
    n = _few_rows(rng, record)
    X, pattern = _rows_of(rng, record, n, _columns(rng))
    form = pick(rng, DENSE) if rng.random() < 0.2 else "plain"
    case = Case(seed, np.ascontiguousarray(X), name, parameters, _weights(rng, n), form=form,
                pattern=pattern)  # fmt: skip
    return _with_options(rng, case)


def _draw_gaps(rng, seed):
    name = pick(rng, WITH_GAPS)
    parameters = {} if name in FAMILIES else _further_parameters(rng, name)
    record = {**FAMILIES, **FURTHER}[name](**parameters)
    n = _few_rows(rng, record)
    X, pattern = _rows_of(rng, record, n, _columns(rng))
    gaps = rng.random(X.shape) < pick(rng, [0.0, 0.1, 0.5, 0.9])
    if rng.random() < 0.98:  # a row without any cell is refused
        gaps[np.arange(n), rng.integers(X.shape[1], size=n)] = False
    X = np.where(gaps, np.nan, X)
    form = pick(rng, ["fortran", "strided", "objects", "frame", "polars", "memmap", "lists"])
    case = Case(seed, np.ascontiguousarray(X), name, parameters, _weights(rng, n),
                form=form if rng.random() < 0.2 else "plain", pattern=pattern,
                missing="ignore" if rng.random() < 0.98 else "error")  # fmt: skip
    return _with_options(rng, case)


def _draw_product(rng, seed):
    names, blocks, parts = pick(rng, PRODUCTS), [], []
    records = [{**FAMILIES, **FURTHER}[name]() for name in names]
    n, pattern, start = _few_rows(rng, *records), "", 0
    for name, record in zip(names, records, strict=True):
        part, pattern = _rows_of(rng, record, n, int(rng.integers(1, 4)))
        weight = float(pick(rng, [1.0, 1.0, 0.01, 100.0])) if len(names) > 1 else 1.0
        blocks.append(Block(name, tuple(range(start, start + part.shape[1])), weight))
        parts.append(part)
        start += part.shape[1]
    if rng.random() < 0.3:
        blocks.append(Block("ignore", (start,)))
        parts.append(rng.normal(size=(n, 1)))
    form = pick(rng, DENSE) if rng.random() < 0.2 else "plain"
    case = Case(seed, np.hstack(parts), "product", {"blocks": tuple(blocks)}, _weights(rng, n),
                form=form, pattern=pattern)  # fmt: skip
    return _with_options(rng, case)


def _are_counts(X, weights):
    """Whether sums of sparse rows are exact: others that nearly agree keep fewer digits."""
    given = [X] if weights is None else [X, np.asarray(weights)]
    with np.errstate(all="ignore"):
        return all(
            np.isfinite(v).all() and (np.floor(v) == v).all() and v.max() < 2**20 for v in given
        )


def _patches(rng, n, d):
    shares = {
        "not_direct": 0.3 if n <= 200 else 0.0,
        "known_columns": 0.3 if d in KNOWN_COLUMNS else 0.0,
        "threads": 0.25,
        "by_python": 0.06,
        "rotated": 0.2,
        "pilot": 0.004,
    }
    return tuple(name for name, share in shares.items() if rng.random() < share)


def _form(rng, X, domain):
    """A form, and the values as they are in it."""
    if rng.random() < 0.6:
        return "plain", X
    kinds = ["dense", "dtype"] + (["sparse", "sparse"] if domain.takes_sparse else [])
    kind = pick(rng, kinds)
    if kind == "sparse":
        return pick(rng, SPARSE), X
    if kind == "dense":
        return pick(rng, DENSE), X
    dtype = pick(rng, DTYPES)
    with np.errstate(all="ignore"):
        if dtype.startswith("float"):
            return dtype, X.astype(dtype).astype(np.float64)
        limits = {"bool": (0.0, 1.0), "uint8": (0.0, 255.0), "int32": (-(2.0**31), 2.0**31 - 1.0)}
        low, high = limits.get(dtype, (-(2.0**53), 2.0**53))
        whole = np.clip(np.round(X), low, high)
    if domain.needs_positive_total or domain.needs_nonzero_row or not domain.includes_lower:
        whole[~whole.any(axis=1), 0] = 1.0
    return dtype, whole + 0.0


def _spoiled(rng, X):
    X = X.copy()
    place = rng.integers(X.shape[0]), rng.integers(X.shape[1])
    X[place] = pick(rng, [np.nan, np.inf, -np.inf, -1.0, 1.5, 1e121, -1e300, 0.0])
    return X


def _draw_model(rng, seed):
    name = pick(rng, list(MODELS))
    domain = MODELS[name]().domain
    n = int(rng.integers(2, 8)) if rng.random() < 0.9 else int(rng.integers(8, 13))
    d = int(pick(rng, [1, 2, 3], [1, 2, 1]))
    usual = [key for key in PATTERNS if key not in RARE]
    pattern = pick(rng, usual)
    X = in_domain(rng, PATTERNS[pattern](rng, n, d), domain)
    exponents, scale = scales(rng, d, np.isfinite(domain.upper))
    if name in ("poisson", "multinomial", "bernoulli"):
        exponents, scale = np.clip(exponents, -3, 3) * (domain.upper > 1.0), "1"
        if name == "bernoulli":
            X = np.round(X)
    form, X = _form(rng, rescaled(X, exponents), domain)
    names = ["permutation", "plain", "n_jobs"]
    comparisons = {"plain"} if form != "plain" else {pick(rng, names)}
    return Case(
        seed=seed,
        X=np.ascontiguousarray(X, np.float64),
        family=name,
        form=form,
        n_jobs=pick(rng, [None, 1, 2]),
        patches=("threads",) if rng.random() < 0.3 else (),
        comparisons=tuple(sorted(comparisons)),
        model=True,
        alpha=float(pick(rng, [0.1, 1.0, 1.0, 20.0, 10.0 ** rng.uniform(-20, 20)])),
        pattern=pattern,
        scale=scale,
    )
