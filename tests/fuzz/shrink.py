"""A failing case made small: fewer rows and columns, rounder numbers, default options."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from fuzz.cases import PATCHES, SPARSE

_DEFAULTS = {
    "form": "plain",
    "audit": False,
    "weights": None,
    "threshold": None,
    "n_jobs": None,
    "patches": (),
    "comparisons": (),
    "neighbors": "auto",
    "algorithm": "auto",
    "parameters": {},
    "alpha": 1.0,
    "missing": "error",
}


def shrink(case, fails, seconds=20.0, most=400):
    """The smallest case found for which ``fails`` still holds."""
    stop = time.monotonic() + seconds
    tried = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(case):
            if time.monotonic() > stop or tried >= most:
                return case
            tried += 1
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case):
    """Simpler cases, the boldest first; each is simpler, so that shrinking comes to an end."""
    yield from _fewer(case)
    yield from _plainer(case)
    yield from _rounder(case)


def _plainer(case):
    for name, value in _DEFAULTS.items():
        if not _equal(getattr(case, name), value):
            yield replace(case, **{name: value})
    for name in ("patches", "comparisons"):
        for item in getattr(case, name):
            fewer = tuple(other for other in getattr(case, name) if other != item)
            yield replace(case, **{name: fewer})
    if case.n_jobs not in (None, 1):
        yield replace(case, n_jobs=1)
    for name in case.parameters:
        yield replace(case, parameters={k: v for k, v in case.parameters.items() if k != name})


def _equal(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    return a == b


def _fewer(case):
    n, d = case.X.shape
    size = n // 2
    while size >= 1:
        for start in range(0, n, size):
            kept = np.r_[0:start, min(start + size, n) : n]
            if 1 <= kept.size < n:
                yield _of_rows(case, kept)
        size //= 2
    for column in range(d if d > 1 else 0):
        yield replace(case, X=np.ascontiguousarray(np.delete(case.X, column, axis=1)))


def _of_rows(case, kept):
    weights = None if case.weights is None else case.weights[kept]
    return replace(case, X=np.ascontiguousarray(case.X[kept]), weights=weights)


def _rounder(case):
    X = case.X
    with np.errstate(all="ignore"):
        if np.isfinite(X).all() and X.any():
            largest = np.abs(X).max()
            power = np.floor(np.log10(largest))
            if power != 0.0 and 1e-290 < largest < 1e290:
                yield from _if_simpler(case, X * 10.0**-power)
            yield from _if_simpler(case, np.round(X))
            for digits in (1, 2, 4, 8):
                yield from _if_simpler(case, _to_digits(X, digits))
            if X.size <= 40:
                for place in np.ndindex(X.shape):
                    for value in (0.0, 1.0, *(_to_digits(X[place], k) for k in (1, 2, 4))):
                        changed = X.copy()
                        changed[place] = value
                        yield from _if_simpler(case, changed)
    if case.weights is not None:
        for digits in (1, 3):
            weights = _to_digits(case.weights, digits)
            if _length(weights) < _length(case.weights):
                yield replace(case, weights=weights)


def _if_simpler(case, X):
    if np.isfinite(X).all() and _length(X) < _length(case.X):
        yield replace(case, X=X)


def _length(values):
    """How much there is to read; zeros are the shortest."""
    return sum(len(repr(value)) for value in values.ravel().tolist() if value != 0.0)


def _to_digits(values, digits):
    return np.array([float(f"{x:.{digits - 1}e}") for x in np.ravel(values)]).reshape(
        np.shape(values)
    )


# As code.


def code_of(case, threshold=None):
    """Python that makes the call of a case."""
    lines = ["import numpy as np", "import fastrbhc"]
    if case.form in SPARSE:
        lines.append("from scipy import sparse")
    module = "fastrbhc.bhc" if case.model else "fastrbhc.families"
    record = type(case.record).__name__
    lines.append(f"from {module} import {record}")
    if case.family == "product":
        lines.append("from fastrbhc.families import Block")
    for name in case.patches:
        for place, attribute, value in PATCHES[name]:
            alias = place.rsplit(".", 1)[1]
            lines.append(f'{alias} = __import__("importlib").import_module("{place}")')
            lines.append(f"{alias}.{attribute} = {value!r}")
    lines.append(f"X = np.array({_listed(case.X)})")
    if case.form != "plain":
        lines.append(f"X = {_formed(case.form)}")
    arguments = ["X", f"{record}({', '.join(f'{k}={v!r}' for k, v in case.parameters.items())})"]
    if case.model:
        arguments.append(f"alpha={case.alpha!r}")
    level = threshold if isinstance(case.threshold, tuple) else case.threshold
    options = {
        "algorithm": case.algorithm,
        "neighbors": case.neighbors,
        "threshold": level,
        "n_jobs": case.n_jobs,
        "audit": case.audit,
        "missing": case.missing,
    }
    if isinstance(case.threshold, tuple) and threshold is None:
        options["threshold"] = None
    for name, value in options.items():
        if value is not None and not _equal(value, _DEFAULTS[name]):
            arguments.append(f"{name}={_number(value)}")
    if case.weights is not None:
        arguments.append(f"sample_weight={_listed(case.weights)}")
    function = "bhc_linkage" if case.model else "linkage"
    if isinstance(case.threshold, tuple) and threshold is None:
        # The case did not live to say which threshold it had.
        share, nudge = case.threshold
        lines.append(f"levels = fastrbhc.{function}({', '.join(arguments)}).levels")
        lines.append(f"level = levels[min(int({share} * levels.size), levels.size - 1)]")
        if nudge:
            lines.append(f"level = np.nextafter(level, {'-' if nudge < 0 else ''}np.inf)")
        arguments.append("threshold=level")
    lines.append(f"tree = fastrbhc.{function}({', '.join(arguments)})")
    lines.append("print(tree.merges.tolist(), tree.heights.tolist())")
    return "\n".join(lines)


def _number(value):
    return "np.inf" if isinstance(value, float) and value == np.inf else repr(value)


def _listed(values):
    text = repr(values.tolist())
    return text.replace("nan", "np.nan").replace("inf", "np.inf")


def _formed(form):
    known = {
        "fortran": "np.asfortranarray(X)",
        "lists": "X.tolist()",
        "objects": "X.astype(object)",
        "big_endian": "X.astype('>f8')",
        "masked": "np.ma.masked_array(X)",
    }
    if form in known:
        return known[form]
    if form in SPARSE and form.endswith(("_array", "_matrix")):
        return f"sparse.{form}(X)"
    if form in ("float32", "float16", "int64", "int32", "uint8", "bool", "longdouble"):
        return f"X.astype({form!r})"
    return f"FORMS[{form!r}](X)  # tests/fuzz/forms.py"
