"""Random cases: rows, a family, options, and the form in which the rows are given.

A case is determined by one integer, its seed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fastrbhc import bhc, families

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

    @property
    def record(self):
        """The family, or the model."""
        classes = MODELS if self.model else FAMILIES
        return classes[self.family](**self.parameters)

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


# Forms of the same values.


def _strided(X):
    padded = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    padded[::2, ::3] = X
    return padded[::2, ::3]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _memmap(X):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        mapped = np.memmap(Path(directory) / "rows", X.dtype, "w+", shape=X.shape)
        mapped[:] = X
        return mapped  # the pages outlive the file


def _unaligned(X):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    view = raw[1:].view(np.float64).reshape(X.shape)
    view[:] = X
    return view


def _frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])


def _mixed_frame(X):
    frame = _frame(X)
    for name in frame.columns[::2]:
        with np.errstate(all="ignore"):
            for dtype in ("int64", "float32", "Float64"):
                if _survives(frame[name].to_numpy(), dtype):
                    frame[name] = frame[name].astype(dtype)
                    break
    return frame


def _survives(values, dtype):
    if not np.isfinite(values).all():
        return False
    if dtype == "int64":
        return bool((np.abs(values) < 2**53).all() and (values == np.round(values)).all())
    return dtype == "Float64" or bool((values.astype(dtype) == values).all())


def _polars(X):
    import polars as pl

    return pl.DataFrame({f"c{k}": X[:, k] for k in range(X.shape[1])})


def _duplicated_coo(X):
    """Entries given as two halves each, which are summed; explicit zeros too."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    values = X.ravel()
    # Halves of the smallest numbers are not exact.
    half = np.where(np.abs(values) > 1e-300, 0.5 * values, values)
    rest = np.where(half == values, 0.0, half)
    place = np.concatenate([rows, rows]), np.concatenate([columns, columns])
    return sparse.coo_array((np.concatenate([half, rest]), place), shape=X.shape)


def _unsorted_csr(X):
    A = sparse.csr_array(X)
    for i in range(X.shape[0]):
        part = slice(A.indptr[i], A.indptr[i + 1])
        A.indices[part], A.data[part] = A.indices[part][::-1].copy(), A.data[part][::-1].copy()
    A.has_sorted_indices = False
    return A


def _explicit_zeros(X):
    rows, columns = np.indices(X.shape).reshape(2, -1)
    return sparse.csr_array((X.ravel(), (rows, columns)), shape=X.shape)


def _long_indices(X):
    A = sparse.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


_DENSE_FORMS = {
    "plain": lambda X: X.copy(),
    "fortran": lambda X: np.asfortranarray(X),
    "strided": _strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read_only": _read_only,
    "memmap": _memmap,
    "unaligned": _unaligned,
    "big_endian": lambda X: X.astype(">f8"),
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "masked": lambda X: np.ma.masked_array(X),
    "frame": _frame,
    "mixed_frame": _mixed_frame,
    "polars": _polars,
}
_SPARSE_FORMS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "lil_matrix": sparse.lil_matrix,
    "dok_array": sparse.dok_array,
    "bsr_array": sparse.bsr_array,
    "dia_array": sparse.dia_array,
    "duplicated_coo": _duplicated_coo,
    "unsorted_csr": _unsorted_csr,
    "explicit_zeros": _explicit_zeros,
    "long_indices": _long_indices,
}
DENSE, SPARSE = list(_DENSE_FORMS), list(_SPARSE_FORMS)
# Number types: values are rounded to them when the case is drawn.
DTYPES = ["float32", "float16", "int64", "int32", "uint8", "bool"]
FORMS = {
    **_DENSE_FORMS,
    **_SPARSE_FORMS,
    **{name: functools.partial(np.ndarray.astype, dtype=name) for name in DTYPES},
}


# Rows.


def _pick(rng, choices, shares=None):
    """One of the choices; shares need not add up to 1."""
    if shares is None:
        return choices[int(rng.integers(len(choices)))]
    bounds = np.cumsum(shares)
    return choices[int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))]


def _blobs(rng, n, d):
    centres = rng.normal(scale=3.0, size=(3, d))
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, d))


def _grid(rng, n, d):
    return rng.integers(-3, 4, size=(n, d)) * 1.0


def _repeated(rng, n, d):
    few = max(1, n // 3)
    return rng.normal(size=(few, d))[rng.integers(few, size=n)]


def _collinear(rng, n, d):
    return rng.normal(size=(n, 1)) * rng.normal(size=d)


def _whole_line(rng, n, d):
    return rng.integers(-9, 10, size=(n, 1)) * rng.integers(-2, 3, size=d) * 1.0


def _constant(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, rng.integers(d)] = rng.normal()
    return X


def _far(rng, n, d):
    return 1e8 * rng.normal(size=d) + rng.normal(size=(n, d))


def _far_grid(rng, n, d):
    return 1e8 + rng.integers(0, 5, size=(n, d))


def _outlier(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.integers(n)] *= 10.0 ** rng.integers(3, 9)
    return X


def _close(rng, n, d):
    """Pairs that differ by a few units in the last place, or by little more."""
    X = rng.normal(size=(n, d))
    copies = rng.integers(n, size=n)
    steps = 10.0 ** rng.integers(-16, -2, size=(n, 1)) * rng.normal(size=(n, d))
    return np.where(rng.random((n, 1)) < 0.5, X, X[copies] * (1.0 + steps))


def _eighths(rng, n, d):
    return rng.integers(0, 9, size=(n, d)) / 8.0


def _sparse(rng, n, d):
    return rng.poisson(0.4, size=(n, d)) * 1.0


def _counts(rng, n, d):
    return 1.0 * rng.poisson(rng.gamma(1.0, 12.0, size=(3, d))[rng.integers(3, size=n)])


def _orders(rng, n, d):
    return 10.0 ** rng.uniform(-8.0, 8.0, size=(n, d)) * rng.choice([-1.0, 1.0], size=(n, d))


def _wide_orders(rng, n, d):
    return 10.0 ** rng.uniform(-120.0, 100.0, size=(n, d)) * rng.choice([-1.0, 1.0], size=(n, d))


def _zeros(rng, n, d):
    return np.zeros((n, d)) + (rng.random((n, d)) < 0.15)


def _extremes(rng, n, d):
    return rng.choice([0.0, 5e-324, 1e-310, 2.2e-308, 1e-160, 1e-154, 1.0, 1e100], size=(n, d))


PATTERNS = {
    "blobs": _blobs,
    "grid": _grid,
    "repeated": _repeated,
    "collinear": _collinear,
    "whole_line": _whole_line,
    "constant": _constant,
    "far": _far,
    "far_grid": _far_grid,
    "outlier": _outlier,
    "close": _close,
    "eighths": _eighths,
    "sparse": _sparse,
    "counts": _counts,
    "orders": _orders,
    "wide_orders": _wide_orders,
    "zeros": _zeros,
    "extremes": _extremes,
}
_RARE = {"wide_orders": 0.3, "zeros": 0.3, "extremes": 0.2}
_SHARES = [_RARE.get(name, 1.0) for name in PATTERNS]


def _in_domain(rng, X, domain):
    """Values moved into the domain of a family, so that ties stay ties."""
    if np.isfinite(domain.upper):
        X = np.abs(X)
        largest = X.max(initial=0.0)
        if largest > 1.0:
            X = X / 2.0 ** np.ceil(np.log2(largest))
    elif np.isfinite(domain.lower):
        X = np.abs(X)
    if not domain.includes_lower:
        X[X == 0.0] = 1.0
    empty = ~X.any(axis=1)
    if domain.needs_positive_total or domain.needs_nonzero_row:
        X[empty, rng.integers(X.shape[1])] = 1.0
    return X


def _scales(rng, d, bounded):
    """Powers of ten for the columns, and a word for them."""
    kind = _pick(rng, ["1", "near", "any", "mixed", "mixed_any"], [0.45, 0.2, 0.2, 0.08, 0.07])
    if kind == "1":
        return np.zeros(d), "1"
    reach = (-6, 7) if kind in ("near", "mixed") else (-320, 301)
    if kind in ("near", "any"):
        exponents = np.full(d, rng.integers(*reach))
    else:
        exponents = rng.integers(*reach, size=d)
    if bounded:
        exponents = -np.abs(exponents)
    if kind == "mixed_any":
        return exponents, "mixed"
    middle = int(np.round(np.median(exponents)))
    for bound in (-300, -150, -50, -6, 6, 50, 120):
        if middle < bound:
            return exponents, f"below 1e{bound}"
    return exponents, "above 1e120"


def _rescaled(X, exponents):
    """In two steps, because 10^−320 has few digits."""
    with np.errstate(all="ignore"):
        half = np.trunc(exponents / 2.0)
        return (X * 10.0**half) * 10.0 ** (exponents - half)


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
        return {"smoothing": _pick(rng, [0.0, 1e-300, 1e-8, 1.0, 1e6, log(-120, 120)])}
    if name == "exponential":
        return {"smoothing": _pick(rng, [0.0, 1e-9, 1.0, 1e100, log(-120, 120)])}
    if name == "bernoulli":
        return {"smoothing": _pick(rng, [0.0, 1e-3, 0.5, 0.99])}
    smoothing = _pick(rng, [0.0, 1e-10, 0.1, 0.5, 0.999])
    return {"smoothing": smoothing, "weight_by_total": bool(rng.random() < 0.5)}


def _weights(rng, n):
    kind = _pick(rng, ["none", "whole", "zeros", "real", "far"], [0.6, 0.15, 0.1, 0.1, 0.05])
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
    kind = _pick(rng, ["few", "some", "more", "many", "most"], [0.895, 0.085, 0.015, 0.004, 0.001])
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
    if rng.random() < 0.02:
        return _draw_model(rng, seed)
    name = _pick(rng, list(FAMILIES))
    parameters = _parameters(rng, name)
    record = FAMILIES[name](**parameters)
    domain = record.domain
    n = _size(rng, name)
    d = _pick(rng, [1, 2, 3, 4, 5, 6, 8, 9, 12], [3, 5, 5, 1, 1, 0.5, 0.5, 0.5, 0.3])
    pattern = _pick(rng, list(PATTERNS), _SHARES)
    sensitive = name == "bernoulli" and record.smoothing < 1e-6
    if sensitive:  # shares near 1 lose digits then, as documented
        pattern = _pick(rng, ["eighths", "zeros", "grid"])
    X = _in_domain(rng, PATTERNS[pattern](rng, n, d), domain)
    exponents, scale = _scales(rng, d, np.isfinite(domain.upper))
    X = _rescaled(X, exponents)
    form, X = _form(rng, X, domain)
    if form not in DTYPES and rng.random() < 0.015:
        scale, X = "invalid", _spoiled(rng, X)
    algorithm = _pick(rng, ["auto", "greedy", "levels", "nn_chain"], [0.4, 0.22, 0.16, 0.22])
    if algorithm == "levels" and not record.reducible:
        algorithm = "greedy"
    weights = None if sensitive else _weights(rng, n)
    threshold = None
    if rng.random() < 0.2:
        threshold = _pick(rng, [(float(rng.random()), int(rng.integers(-1, 2))), np.inf, 0.0, 1.0],
                          [0.85, 0.05, 0.03, 0.07])  # fmt: skip
    elif rng.random() < 0.1:
        threshold = "predictive"
    names = list(COMPARISONS)
    count = int(_pick(rng, [0, 1, 2], [0.3, 0.5, 0.2]))
    comparisons = {_pick(rng, names, list(COMPARISONS.values())) for _ in range(count)}
    if form != "plain":
        comparisons.add("plain")
    patches = _patches(rng, n, d)
    neighbors = _pick(rng, ["auto", "brute", "kd_tree"], [0.45, 0.25, 0.3])
    if domain.takes_sparse and _are_counts(X, weights) and rng.random() < 0.5:
        neighbors = "inverted"
        # Ties are decided otherwise than among dense rows.
        comparisons.discard("neighbors")
    return Case(
        seed=seed,
        X=np.ascontiguousarray(X, np.float64),
        family=name,
        parameters=parameters,
        weights=weights,
        algorithm=algorithm,
        neighbors=neighbors,
        threshold=threshold,
        n_jobs=_pick(rng, [None, 1, 2, 3], [0.3, 0.5, 0.12, 0.08]),
        audit=_pick(rng, [False, True, "sample"], [0.93, 0.05, 0.02]),
        form=form,
        patches=patches,
        comparisons=tuple(sorted(comparisons)),
        pattern=pattern,
        scale=scale,
    )


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
    kind = _pick(rng, kinds)
    if kind == "sparse":
        return _pick(rng, SPARSE), X
    if kind == "dense":
        return _pick(rng, DENSE), X
    dtype = _pick(rng, DTYPES)
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
    X[place] = _pick(rng, [np.nan, np.inf, -np.inf, -1.0, 1.5, 1e121, -1e300, 0.0])
    return X


def _draw_model(rng, seed):
    name = _pick(rng, list(MODELS))
    domain = MODELS[name]().domain
    n = int(rng.integers(2, 8)) if rng.random() < 0.9 else int(rng.integers(8, 13))
    d = int(_pick(rng, [1, 2, 3], [1, 2, 1]))
    usual = [key for key in PATTERNS if key not in _RARE]
    pattern = _pick(rng, usual)
    X = _in_domain(rng, PATTERNS[pattern](rng, n, d), domain)
    exponents, scale = _scales(rng, d, np.isfinite(domain.upper))
    if name in ("poisson", "multinomial", "bernoulli"):
        exponents, scale = np.clip(exponents, -3, 3) * (domain.upper > 1.0), "1"
        if name == "bernoulli":
            X = np.round(X)
    form, X = _form(rng, _rescaled(X, exponents), domain)
    names = ["permutation", "plain", "n_jobs"]
    comparisons = {"plain"} if form != "plain" else {_pick(rng, names)}
    return Case(
        seed=seed,
        X=np.ascontiguousarray(X, np.float64),
        family=name,
        form=form,
        n_jobs=_pick(rng, [None, 1, 2]),
        patches=("threads",) if rng.random() < 0.3 else (),
        comparisons=tuple(sorted(comparisons)),
        model=True,
        alpha=float(_pick(rng, [0.1, 1.0, 1.0, 20.0, 10.0 ** rng.uniform(-20, 20)])),
        pattern=pattern,
        scale=scale,
    )
