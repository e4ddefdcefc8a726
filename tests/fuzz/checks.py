"""What has to hold for every case.

Either rows are refused at the border, with words of this package and the same ones whatever the
algorithm, the backend and the layout; or there is a tree, every merge of which is certified and
every height of which is compared with the reference. Comparisons of a case with a relative of it
ask for the same bits.
"""

from __future__ import annotations

import math
import re
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import exact_bhc
import mpmath
import numpy as np
from trees import merged_values, same_tree

from fastrbhc import RBHC, bhc_linkage, linkage
from fastrbhc._advice import MisfitWarning
from fastrbhc._engine.clusters.observations import Observations, order_by_value
from fuzz import parts
from fuzz.cases import SPARSE, patched
from fuzz.reference import SMALLEST, TOLERANCE, replay, values_to_last

# Above this many rows merges are certified as reciprocal nearest neighbours only.
_MANY_ROWS = 1_500
_FEW_ROWS = 60
_CONFIRMED = 3  # doubtful merges of a case that are computed exactly

# Sums of a few numbers, relative to the largest of them.
_SUM_OFF = 1e-14

# Sums of logarithms, of which the heights of Bayesian trees are differences.
_LOG_OFF = 1e-9


@dataclass
class Problem:
    """Something that should not be: what kind of thing, and the details."""

    kind: str
    text: str


@dataclass
class Report:
    """What came of a case."""

    outcome: str  # "tree" or "refused"
    problems: list[Problem] = field(default_factory=list)
    doubtful: int = 0  # heights below what double-double can tell from 0
    merges: int = 0
    calls: int = 0
    threshold: float | None = None  # as it was resolved


@dataclass
class Refusal:
    """An error from the border."""

    kind: str
    message: str

    def without(self, pattern):
        return self.kind, re.sub(pattern, "", self.message)


class Failed(Exception):  # noqa: N818
    """A call that neither returned a tree nor refused clearly."""

    def __init__(self, problem):
        super().__init__(problem.text)
        self.problem = problem


# Calls.


def call(case, report=None, **changes):
    """A tree or a `Refusal`; raises `Failed` for anything else."""
    case = replace(case, **changes)
    given = case.given
    before = given.copy() if isinstance(given, np.ndarray) else None
    if report is not None:
        report.calls += 1
    with patched(case.patches), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = _call(case, given)
        except (ValueError, TypeError) as error:
            result = _refusal(case, error)
        except Exception as error:
            text = "".join(traceback.format_exception(error)[-3:])
            raise Failed(Problem(f"exception {type(error).__name__}", text)) from error
    for warning in caught:
        expected = warning.category is UserWarning and "may take about" in str(warning.message)
        # Cases are odd on purpose: advice on rows that do not suit the family is no failure.
        if not (expected or warning.category is MisfitWarning):
            text = f"{warning.category.__name__}: {warning.message} ({warning.filename})"
            raise Failed(Problem("warning", text))
    if before is not None and not _same_values(given, before):
        raise Failed(Problem("input changed", "the rows that were given have been overwritten"))
    return result


def _call(case, given):
    if case.model:
        return bhc_linkage(given, case.record, case.alpha, n_jobs=case.n_jobs)
    if case.estimator:
        return RBHC(
            case.record,
            algorithm=case.algorithm,
            neighbors=case.neighbors,
            threshold=case.threshold,
            n_jobs=case.n_jobs,
            audit=case.audit,
            missing=case.missing,
        ).fit(given, sample_weight=case.weights)
    return linkage(
        given,
        case.record,
        algorithm=case.algorithm,
        neighbors=case.neighbors,
        threshold=case.threshold,
        sample_weight=case.weights,
        n_jobs=case.n_jobs,
        audit=case.audit,
        missing=case.missing,
    )


def _same_values(given, before):
    if given.dtype == object:
        return all(a is b or a == b for a, b in zip(given.ravel(), before.ravel(), strict=True))
    return given.tobytes() == before.tobytes()


# Files and functions in which arguments are checked.
_BORDER = re.compile(
    r"fastrbhc/_((row_)?validation|gaps|options)\.py:"
    r"|fastrbhc/(families|bhc/models)/\w+\.py:(check|place|encode)|fastrbhc/_table\.py:"
    r"|fastrbhc/bhc/_interface\.py:require|fastrbhc/bhc/likelihoods/units\.py:"
)
# What scikit-learn says well enough.
_CLEAR = ("Found array with", "Expected 2D array")


def _refusal(case, error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).as_posix()}:{frame.name}"
    message = str(error)
    clear = _BORDER.search(place) or (
        "sklearn/utils" in place and any(text in message for text in _CLEAR)
    )
    if not clear:
        text = f"{type(error).__name__} from {place}, line {frame.lineno}: {message}"
        raise Failed(Problem("refused inside", text)) from error
    return Refusal(type(error).__name__, message)


# What the rows are: outside the domain, or quite ordinary.


def has_to_be_refused(case):
    """Whether the rows are outside the domain."""
    X = case.X
    if X.shape[0] < 2 or np.isinf(X).any() or (np.isnan(X).any() and case.missing == "error"):
        return True
    if np.isnan(X).all(axis=1).any():
        return True
    return any(
        _is_outside(case, X[:, columns], domain) for domain, columns in case.domains_of_columns
    )


def _is_outside(case, X, domain):
    if case.form in SPARSE and not domain.takes_sparse:
        return True
    outside = (domain.lower > X) | (domain.upper < X)
    if not domain.includes_lower:
        outside |= domain.lower == X
    return bool(
        outside.any()
        or (domain.needs_positive_total and not X.any(axis=1).all())
        or (domain.needs_nonzero_row and not X.any(axis=1).all())
    )


def has_to_be_taken(case):
    """Whether there is nothing about the case that a refusal could be for."""
    sizes = np.abs(case.X[(case.X != 0.0) & ~np.isnan(case.X)])
    ordinary = sizes.size == 0 or (sizes.max() < 1e9 and sizes.min() > 1e-9)
    if case.left_to_data and case.weights is not None:
        # Standard deviations are tiny beside the range if nearly all weight is on a few rows.
        positive = case.weights[case.weights > 0.0]
        ordinary = ordinary and positive.min() > 1e-19 * positive.sum()
    return ordinary and case.usual and not has_to_be_refused(case)


# The check of a case.


def check(case):
    """Everything that has to hold for a case."""
    report = Report("tree")
    try:
        (_check_model if case.model else _check_linkage)(case, report)
    except Failed as failed:
        report.problems.append(failed.problem)
    return report


def _check_linkage(case, report):
    if isinstance(case.threshold, tuple):
        whole = call(case, report, threshold=None, form="plain", audit=False)
        level = None if isinstance(whole, Refusal) else level_at(whole, case.threshold)
        if squares_underflow(case.X):
            level = None  # bounds have too few digits for a verdict at the level itself
        case = replace(case, threshold=level)
    report.threshold = case.threshold
    _examine(case, report, judge, _COMPARE)


def _examine(case, report, judged, comparisons):
    """A refusal where there has to be one, or a tree that is judged; then the other runs."""
    result = call(case, report)
    if isinstance(result, Refusal):
        report.outcome = "refused"
        if has_to_be_taken(case):
            raise Failed(Problem("refused without need", f"{result.kind}: {result.message}"))
    else:
        if has_to_be_refused(case):
            raise Failed(Problem("taken", "these rows are outside the domain"))
        report.problems += judged(result, case, report)
        if report.problems:
            return
    for name in case.comparisons:
        problem = comparisons[name](case, result, report)
        if problem:
            report.problems.append(Problem(f"compared: {name}", problem))


def level_at(tree, place):
    """The level of the merge at a share of all merges, or one bit beside it."""
    share, nudge = place
    levels = tree.levels
    if not levels.size:
        return None
    level = float(levels[min(int(share * levels.size), levels.size - 1)])
    return max(0.0, level if nudge == 0 else float(np.nextafter(level, nudge * np.inf)))


def judge(tree, case, report=None):
    """The problems of a tree: its structure, its merges, its heights."""
    report = report or Report("tree")
    problems = scaling(tree, case)
    case = resolved(tree, case)
    problems = problems or structure(tree, case)
    if problems:
        return problems
    return certify(tree, case, report) + _audited(tree, case)


def resolved(tree, case):
    """The case with what the tree has found: λ, the smoothing, and rows that are scaled."""
    if isinstance(case.threshold, str):
        case = replace(case, threshold=tree.threshold)
    if case.left_to_data:
        parameters = {"smoothing": tree.family.smoothing}
        case = replace(case, X=tree.family.observe(case.X).means, parameters=parameters)
    return case


def scaling(tree, case):
    """Whether columns are scaled by their means and standard deviations."""
    if not case.left_to_data or len(case.X) > _FEW_ROWS:
        return []
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    weights = [mpmath.mpf(weight) for weight in weights.tolist()]
    found = zip(case.X.T.tolist(), tree.family.centre, tree.family.scale, strict=True)
    for place, (column, centre, scale) in enumerate(found):
        with mpmath.workdps(1000):  # squares of the largest and of the smallest numbers
            parts = [(w, mpmath.mpf(x)) for w, x in zip(weights, column, strict=True) if w]
            total = sum(w for w, _ in parts)
            mean = sum(w * x for w, x in parts) / total
            deviation = mpmath.sqrt(sum(w * (x - mean) ** 2 for w, x in parts) / total)
            rounding = _SUM_OFF * max(abs(x) for _, x in parts) + SMALLEST
            constant = scale == 1.0 and deviation <= rounding
            off = abs(scale - deviation) > TOLERANCE * deviation + rounding
            if abs(centre - mean) > rounding or (off and not constant):
                expected = f"{float(mean)!r} ± {float(deviation)!r}"
                text = f"column {place} is scaled by {centre!r} ± {scale!r}, not {expected}"
                return [Problem("scaling", text)]
    return []


def structure(tree, case):
    """Whether the tree is one, and is of these rows."""
    n, m = len(case.X), len(tree.merges)
    threshold = np.inf if case.threshold is None else case.threshold

    def wrong(text):
        return [Problem("structure", text)]

    if tree.n_leaves != n or tree.merges.shape != (m, 2) or tree.merges.dtype != np.int64:
        return wrong(f"{tree.n_leaves} leaves, merges {tree.merges.shape} {tree.merges.dtype}")
    if tree.heights.shape != (m,) or tree.weights.shape != (m,) or tree.steps.shape != (m,):
        return wrong("arrays differ in length")
    if threshold == np.inf and m != n - 1:
        return wrong(f"{m} merges of {n} rows")
    if tree.threshold != threshold:
        return wrong(f"the threshold is {tree.threshold}, not {threshold}")
    used = np.sort(tree.merges.ravel())
    if m and (used[0] < 0 or (used[1:] == used[:-1]).any() or used[-1] >= n + m):
        return wrong("a node is merged twice, or does not exist")
    if not (tree.merges[:, 0] < tree.merges[:, 1]).all():
        return wrong("parts of a merge are not in order")
    if (tree.merges >= n + np.arange(m)[:, None]).any():
        return wrong("a node is merged before it exists")
    if not np.array_equal(np.sort(tree.steps), np.arange(m)):
        return wrong("steps are not a permutation")
    made = np.concatenate([np.full(n, -1), np.argsort(np.argsort(tree.steps))])
    if (made[tree.merges] >= made[n:, None]).any():
        return wrong("in the order of the steps, a node is merged before it exists")
    if not (np.isfinite(tree.heights).all() and (tree.heights >= 0.0).all()):
        return wrong(f"heights are {tree.heights}")
    if (tree.heights >= threshold).any():
        return wrong(f"heights reach the threshold {threshold}")
    weights = np.ones(n) if case.weights is None else case.weights
    nodes = np.concatenate([weights, tree.weights])
    sums = nodes[tree.merges].sum(axis=1)
    if not np.allclose(tree.weights, sums, rtol=1e-12, atol=0.0):
        return wrong("weights do not add up")
    return []


def _in_order(tree):
    order = np.argsort(tree.steps)
    return order, tree.merges[order], tree.n_leaves + order


def certify(tree, case, report):
    """Replay the merges: each is the nearest pair, or a reciprocal one, at its height."""
    n, m = tree.n_leaves, len(tree.merges)
    family, reducible = case.placed, case.reducible
    order, children, unions = _in_order(tree)
    everywhere = case.algorithm != "nn_chain" and n <= _MANY_ROWS
    ignored = np.zeros(n + m, bool)
    if case.algorithm == "nn_chain" and tree.threshold < np.inf and not reducible:
        # A root may have left when no other was near it, and unions come near it later.
        ignored[:] = True
        ignored[tree.merges.ravel()] = False
    again = parts.replay if parts.is_sum(family, case.X) else replay
    with np.errstate(all="ignore"):
        made = again(family, case.X, case.weights, children, unions, everywhere, ignored)
    heights = tree.heights[order].tolist()
    report.merges += m
    near_zero = (made.doubts > TOLERANCE * made.values) & (tree.heights[order] > 0.0)
    report.doubtful += int(np.count_nonzero(near_zero))
    problems = []
    off = ~(np.abs(heights - made.values) <= TOLERANCE * made.values + made.doubts)
    for step in np.flatnonzero(off)[:_CONFIRMED]:
        value = exactly(case, tree, *children[step])
        floor = float(made.doubts[step]) if np.isfinite(made.doubts[step]) else SMALLEST
        if not abs(heights[step] - value) <= TOLERANCE * value + floor:
            text = f"merge {step} of {n} rows is at {heights[step]!r}, not {float(value)!r}"
            if value:
                text += f": relative error {float(abs(heights[step] / value - 1)):.2g}"
            problems.append(Problem("height", text))
            break
    later = made.values * (1.0 - TOLERANCE) - made.doubts > made.nearest
    for step in np.flatnonzero(later)[:_CONFIRMED]:
        pair = made.pairs[step]
        value, other = exactly(case, tree, *children[step]), exactly(case, tree, *pair)
        if value * (1.0 - TOLERANCE) > other * (1.0 + TOLERANCE) + made.doubts[step]:
            text = (
                f"merge {step} of {n} rows joins {children[step].tolist()} at {float(value)!r}, "
                f"while {pair.tolist()} are at {float(other)!r}"
            )
            problems.append(Problem("not nearest", text))
            break
    if made.left < tree.threshold and (everywhere or reducible):
        text = f"{made.left_pair.tolist()} are left apart, below {tree.threshold!r}"
        problems.append(Problem("stopped early", text))
    if not problems and case.weights is not None and n <= _FEW_ROWS:
        problems += _without_weight(tree, case)
    return problems


def members(tree, node):
    """The leaves of a node."""
    found, stack = [], [int(node)]
    while stack:
        node = stack.pop()
        if node < tree.n_leaves:
            found.append(node)
        else:
            stack += tree.merges[node - tree.n_leaves].tolist()
    return sorted(found)


def exactly(case, tree, a, b):
    """d of two nodes by its definition, with as many digits as it takes."""
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    groups = [[leaf for leaf in members(tree, node) if weights[leaf] > 0.0] for node in (a, b)]
    if not all(groups):
        return mpmath.mpf(0)
    return parts.definition(case.placed, case.X, weights, *groups)


def _without_weight(tree, case):
    """Rows of weight 0 join the nearest row at height 0."""
    light = np.flatnonzero(case.weights == 0.0)
    if not light.size or case.threshold == 0.0 or parts.is_sum(case.placed, case.X):
        return []
    n = tree.n_leaves
    joined = list(range(n))  # the rows that are joined at height 0

    def root(x):
        while joined[x] != x:
            joined[x] = joined[joined[x]]
            x = joined[x]
        return x

    first = [[leaf] for leaf in range(n)]
    for (a, b), height in zip(tree.merges.tolist(), tree.heights.tolist(), strict=True):
        first.append(first[a] + first[b])
        if height == 0.0:
            joined[root(first[a][0])] = root(first[b][0])
    positive = np.flatnonzero(case.weights > 0.0)
    for row in light:
        rows = np.concatenate([positive, [row]])
        near: set[int] = set()
        # Rows may count as the same or not, depending on the last bit of their statistics.
        for digits in (1, 2):
            with np.errstate(all="ignore"):
                values, doubts = values_to_last(
                    case.record, case.X[rows], case.weights[rows], digits
                )
            least = ((1.0 + TOLERANCE) * values + doubts).min()
            near |= set(positive[values * (1.0 - TOLERANCE) - doubts <= least].tolist())
        if root(int(row)) not in {root(x) for x in near}:
            text = f"row {row} of weight 0 is not with the rows nearest to it, {sorted(near)}"
            return [Problem("row without weight", text)]
    return []


def _audited(tree, case):
    if case.audit is False:
        return []
    if tree.audit is None:
        return [Problem("audit", "there is no report")]
    if case.algorithm != "nn_chain" and not tree.audit.certified:
        return [Problem("audit", "a greedy tree is said not to be greedy")]
    return []


# Comparisons: each returns what is different, or nothing.


def _same(case, result, other, what, refusals=r"column '?c?\d+'?| Rows and columns count from 0\."):
    if isinstance(result, Refusal) or isinstance(other, Refusal):
        if type(result) is not type(other):
            words = [
                f"refused ({r.message})" if isinstance(r, Refusal) else "a tree"
                for r in (result, other)
            ]
            return f"{what}: {words[0]}, and {words[1]}"
        if result.without(refusals) != other.without(refusals):
            return f"{what}: refused with {result.message!r} and with {other.message!r}"
        return None
    return None if same_tree(result, other) else f"{what}: {_difference(result, other)}"


def _difference(tree, other):
    if tree.heights.shape != other.heights.shape:
        return f"{len(tree.heights)} merges, and {len(other.heights)}"
    if not np.array_equal(tree.heights, other.heights):
        k = int(np.flatnonzero(tree.heights != other.heights)[0])
        return f"height {k} is {tree.heights[k]!r}, and {other.heights[k]!r}"
    return "heights are the same, merges are not"


def _permutation(case, result, report):
    order = np.random.default_rng(case.seed).permutation(len(case.X))
    X = np.ascontiguousarray(case.X[order])
    weights = None if case.weights is None else case.weights[order]
    other = call(case, report, X=X, weights=weights, form="plain", audit=False)
    if isinstance(result, Refusal) or isinstance(other, Refusal):
        return _same(case, result, other, "rows in another order", r"[\d.e+-]+|'c\d+'| Rows and .*")
    if not np.array_equal(result.heights, other.heights):
        return f"rows in another order: {_difference(result, other)}"
    few = len(X) <= 4 * _FEW_ROWS
    if few and merged_values(result, _numbers(case.X)) != merged_values(other, _numbers(X)):
        return "rows in another order: heights are the same, clusters are not"
    return None


def _numbers(X):
    """Rows that can be compared: a number in place of missing cells."""
    return np.where(np.isnan(X), -1e300, X)


def _plain(case, result, report):
    if case.form == "plain":
        return None
    plain = call(case, report, form="plain")
    return _same(case, result, plain, f"{case.form} and float64 in C order")


def _n_jobs(case, result, report):
    n_jobs = 1 if case.n_jobs not in (None, 1) else 2 + case.seed % 2
    patches = tuple({*case.patches, "threads"})
    other = call(case, report, n_jobs=n_jobs, patches=patches)
    return _same(case, result, other, f"n_jobs={case.n_jobs} and {n_jobs}")


def _neighbors(case, result, report):
    other = "brute" if case.neighbors == "kd_tree" else "kd_tree"
    computed = call(case, report, neighbors=other)
    return _same(case, result, computed, f"neighbors={case.neighbors!r} and {other!r}")


def _algorithm(case, result, report):
    """Other algorithms build the same tree where they promise to, and refuse the same rows."""
    reducible = case.reducible
    names = ["greedy", "levels", "nn_chain"] if reducible else ["greedy", "auto", "nn_chain"]
    names = [name for name in names if name != case.algorithm]
    other = names[case.seed % len(names)]
    what = f"algorithm={case.algorithm!r} and {other!r}"
    computed = call(case, report, algorithm=other, audit=False)
    if isinstance(result, Refusal) or isinstance(computed, Refusal):
        return _same(case, result, computed, what)
    chain = "nn_chain" in (other, case.algorithm)
    if chain and (not reducible or _tied(result)):
        return None
    if not np.array_equal(np.sort(result.heights), np.sort(computed.heights)):
        return f"{what}: {_difference(result, computed)}"
    few, X = len(case.X) <= 4 * _FEW_ROWS, _numbers(case.X)
    if few and merged_values(result, X) != merged_values(computed, X):
        return f"{what}: heights are the same, clusters are not"
    return None


def _tied(tree):
    heights = np.sort(tree.heights)
    return bool((heights[1:] <= heights[:-1] * (1.0 + TOLERANCE)).any())


def squares_underflow(X):
    """Whether two values of a column differ, and the square of their difference has few digits."""
    with np.errstate(all="ignore"):
        steps = np.diff(np.sort(np.asarray(X, float), axis=0), axis=0)
    # NaN is sorted to the end, and no comparison with it holds.
    return bool(((steps > 0.0) & (steps < 1e-150)).any())


def _forest(case, result, report):
    """A greedy tree that is cut at λ is the forest built with λ."""
    if isinstance(result, Refusal) or case.algorithm == "nn_chain" or squares_underflow(case.X):
        return None
    whole = call(case, report, threshold=None, form="plain", audit=False)
    if isinstance(whole, Refusal):
        return "the forest was built, the tree is refused"
    level = result.threshold if isinstance(case.threshold, str) else case.threshold
    if level is None or level == np.inf:
        share = (case.seed % 97) / 97.0
        level = level_at(whole, (share, case.seed % 3 - 1))
    if level is None:
        return None
    forest = call(case, report, threshold=level, form="plain", audit=False)
    if isinstance(forest, Refusal):
        return f"the tree was built, the forest at {level!r} is refused"
    count = len(forest.merges)
    if (
        count != np.count_nonzero(whole.levels < level)
        or not np.array_equal(forest.merges, whole.merges[:count])
        or not np.array_equal(forest.heights, whole.heights[:count])
        or not np.array_equal(forest.cut(threshold=level), whole.cut(threshold=level))
    ):
        return f"the forest at {level!r} is not the first part of the tree"
    return None


def _copies(case, result, report):
    """A row of weight 3 is three copies."""
    if isinstance(result, Refusal) or len(case.X) > _FEW_ROWS or case.family == "multinomial":
        return None
    counts = np.random.default_rng(case.seed).integers(1, 4, size=len(case.X))
    usual = {"form": "plain", "audit": False}
    weighted = call(case, report, weights=counts * 1.0, **usual)
    repeated = call(case, report, weights=None, X=np.repeat(case.X, counts, axis=0), **usual)
    if isinstance(weighted, Refusal) or isinstance(repeated, Refusal):
        return _same(case, weighted, repeated, "weights and copies", r"[\d.e+-]+")
    heights = [tree.heights[tree.heights > 0.0] for tree in (weighted, repeated)]
    if not np.array_equal(*heights):
        return f"weights {counts.tolist()} and as many copies differ in heights"
    return None


def _power_of_two(case, result, report):
    """In another unit, a power of two, heights change by a power of two and nothing else."""
    untied = case.pattern in ("blobs", "far", "collinear", "outlier", "close", "constant")
    sizes = np.abs(case.X[(case.X != 0.0) & ~np.isnan(case.X)])
    usual = sizes.size and sizes.max() < 1e20 and sizes.min() > 1e-20
    far_weights = case.weights is not None and case.weights.max() > 1e9
    factors = {"spherical_gaussian": 2, "von_mises_fisher": 0, "exponential": 0}
    if case.left_to_data:
        factors = {case.family: 0}
    power = case.seed % 41 - 20
    if isinstance(result, Refusal) or not (untied and usual) or far_weights or _tied(result):
        return None
    if case.parameters and not case.left_to_data:
        return None
    if case.family not in factors or case.threshold is not None or np.isnan(case.X).any():
        return None  # rows without a common column tie, and the order of ties is that of hashes
    other = call(case, report, X=np.ldexp(case.X, power), form="plain", audit=False)
    if isinstance(other, Refusal):
        return f"times 2**{power}: refused ({other.message})"
    heights = np.ldexp(other.heights, -power * factors[case.family])
    if not np.array_equal(heights, result.heights):
        return f"heights of X·2**{power} are not the same times a power of two"
    return None


def _unpatched(case, result, report):
    kept = tuple(name for name in case.patches if name == "rotated")
    if kept == case.patches:
        return None
    other = call(case, report, patches=kept)
    return _same(case, result, other, f"limits lowered ({', '.join(case.patches)}) and as they are")


def _estimator(case, result, report):
    """The estimator finds the clusters of the tree, and says consistently how it chose them."""
    threshold = "predictive" if case.threshold is None else case.threshold
    tree = call(case, report, threshold=threshold, audit=False)
    model = call(case, report, threshold=threshold, audit=False, estimator=True)
    if isinstance(tree, Refusal) or isinstance(model, Refusal):
        return _same(case, tree, model, "linkage and RBHC")
    if not np.array_equal(model.labels_, tree.cut()):
        return f"clusters of RBHC: {model.labels_.tolist()}, of linkage: {tree.cut().tolist()}"
    choice = model.choice_
    if choice is not None:
        if not choice.fewest <= choice.n_clusters <= choice.most:
            return f"{choice.n_clusters} clusters are not in {choice.fewest} to {choice.most}"
        if choice.n_clusters != model.n_clusters_:
            return f"{choice.n_clusters} clusters were chosen, {model.n_clusters_} are found"
        if not np.isfinite([choice.gain, choice.gain_error, *choice.log_likelihoods]).all():
            return f"the choice is {choice!r}"
    return None


_COMPARE = {
    "permutation": _permutation,
    "plain": _plain,
    "n_jobs": _n_jobs,
    "neighbors": _neighbors,
    "algorithm": _algorithm,
    "forest": _forest,
    "copies": _copies,
    "power_of_two": _power_of_two,
    "unpatched": _unpatched,
    "estimator": _estimator,
}


# Bayesian trees.


def _check_model(case, report):
    _examine(case, report, judge_model, _COMPARE_MODELS)


def judge_model(tree, case, report=None):
    """Every merge has the largest odds, and its height is their negative logarithm."""
    n, m = len(case.X), len(tree.merges)
    if tree.n_leaves != n or m != n - 1:
        return [Problem("structure", f"{m} merges of {tree.n_leaves} rows, not of {n}")]
    if not (np.isfinite(tree.heights).all() and math.isfinite(tree.log_evidence)):
        return [Problem("structure", f"heights are {tree.heights}")]
    if report is not None:
        report.merges += m
    # In the order in which the package sums up rows for its defaults.
    order, _ = order_by_value(Observations(case.X))
    model = case.record.with_defaults(np.ascontiguousarray(case.X[order]))
    log_alpha, known = math.log(case.alpha), {}
    # Gamma functions of counts are differences of numbers that grow with the counts.
    counts = case.X.sum() if case.family in ("poisson", "multinomial") else 0.0
    rounding = _LOG_OFF + 4e-15 * counts * math.log1p(counts)

    # Squares of large values cancel, in determinants twice over.
    digits = 40 + int(8.0 * math.log10(1.0 + np.abs(case.X).max()))

    def marginal(rows):
        if rows not in known:
            with mpmath.workdps(digits):
                known[rows] = float(exact_bhc.log_marginal_likelihood(case.X[list(rows)], model))
        return known[rows]

    def together(a, b):
        rows = tuple(sorted(alive[a][0] + alive[b][0]))
        return log_alpha + math.lgamma(len(rows)) + marginal(rows), rows

    alive = {i: ((i,), log_alpha + marginal((i,))) for i in range(n)}
    odds: dict[Any, tuple[float, float]] = {}
    for row in range(m):
        a, b = tree.merges[row].tolist()
        if a not in alive or b not in alive:
            return [Problem("structure", f"merge {row} joins a node that is not there")]
        for u in alive:
            for v in alive:
                if u < v and (u, v) not in odds:
                    value = together(u, v)[0] - alive[u][1] - alive[v][1]
                    logs = abs(alive[u][1]) + abs(alive[v][1])
                    odds[u, v] = value, rounding + 1e-13 * logs
        value, off = odds[min(a, b), max(a, b)]
        slack = off + 1e-9 * abs(value)
        if not abs(-tree.heights[row] - value) <= slack:
            return [Problem("height", f"log odds {-tree.heights[row]!r} are not {value!r}")]
        pair, (most, more) = max(odds.items(), key=lambda item: item[1][0])
        if value < most - slack - more - 1e-9 * abs(most):
            text = f"merge {row} has log odds {value!r}, those of {pair} are {most!r}"
            return [Problem("not nearest", text)]
        _, rows = together(a, b)
        apart = alive.pop(a)[1] + alive.pop(b)[1]
        alive[n + row] = rows, apart + float(np.logaddexp(0.0, value))
        odds = {key: kept for key, kept in odds.items() if not {a, b} & set(key)}
    return []


def _same_model(result, other, what, refusals):
    if isinstance(result, Refusal) or isinstance(other, Refusal):
        return _same(None, result, other, what, refusals)
    if not np.array_equal(result.heights, other.heights):
        return f"{what}: {_difference(result, other)}"
    return None


_COMPARE_MODELS = {
    "plain": lambda case, result, report: _same_model(
        result,
        call(case, report, form="plain"),
        f"{case.form} and float64 in C order",
        r"column '?c?\d+'?| Rows and columns count from 0\.",
    ),
    "permutation": lambda case, result, report: _same_model(
        result,
        call(case, report, X=np.ascontiguousarray(case.X[::-1]), form="plain"),
        "rows in another order",
        r"[\d.e+-]+|'c\d+'| Rows and .*",
    ),
    "n_jobs": lambda case, result, report: _same_model(
        result,
        call(case, report, n_jobs=2 if case.n_jobs == 1 else 1, patches=("threads",)),
        "other n_jobs",
        r"^$",
    ),
}
