"""A few hundred of the random cases of `make fuzz`, and proofs that its checks can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import exact
import numpy as np
import pytest
from fuzz import checks, parts, shrink
from fuzz.cases import FAMILIES, FURTHER, MODELS, PRODUCTS, WITH_GAPS, Case, draw
from fuzz.forms import FORMS
from fuzz.reference import TOLERANCE, dissimilarity

from fastrbhc import linkage
from fastrbhc.bhc import bhc_linkage

TESTS = Path(__file__).parent
FIRST, COUNT = 1_000_000, 120

every_family = pytest.mark.parametrize("family", FAMILIES)


def rows_for(family, n=9, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    if family == "bernoulli":
        return rng.random((n, d))
    return Z if FAMILIES[family]().domain.lower < 0.0 else np.exp(Z)


def case_of(family, **options):
    return Case(seed=0, X=rows_for(family), family=family, **options)


def kinds(problems):
    return {problem.kind for problem in problems}


# The cases


@pytest.mark.parametrize("part", range(10))
def test_cases(part):
    for seed in range(FIRST + part, FIRST + COUNT, 10):
        case = draw(seed)
        report = checks.check(case)
        assert not report.problems, f"seed {seed}: {report.problems}"


def test_a_seed_determines_its_case():
    for seed in range(50):
        one, other = draw(seed), draw(seed)
        for name, value in vars(one).items():
            np.testing.assert_equal(value, getattr(other, name))


def test_cases_are_of_all_kinds():
    drawn = [draw(seed) for seed in range(3_000)]
    families = {case.family for case in drawn if not case.model}
    assert families == {*FAMILIES, *FURTHER, "product"}
    blocks = {
        tuple(block.family for block in case.parameters["blocks"] if block.family != "ignore")
        for case in drawn
        if case.family == "product"
    }
    assert blocks == set(PRODUCTS)
    gaps = [case for case in drawn if np.isnan(case.X).any() and case.missing == "ignore"]
    assert {case.family for case in gaps} == set(WITH_GAPS)
    assert {case.family for case in drawn if case.model} == set(MODELS)
    assert {case.form for case in drawn} == set(FORMS)
    assert {case.algorithm for case in drawn} == {"auto", "greedy", "levels", "nn_chain"}
    assert {name for case in drawn for name in case.comparisons} == set(checks._COMPARE)
    assert {case.family for case in drawn if case.left_to_data} == {"gaussian", "diagonal_gaussian"}
    assert "predictive" in {case.threshold for case in drawn if isinstance(case.threshold, str)}


def test_forms_have_the_same_values():
    X = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]])
    for name, form in FORMS.items():
        given = form(X)
        values = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
        expected = X != 0.0 if name == "bool" else X
        np.testing.assert_array_equal(values.astype(float), expected, err_msg=name)


# The reference


@every_family
@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1.0, 1e6])
def test_reference_is_the_definition(family, scale):
    record = FAMILIES[family]()
    if family == "bernoulli":
        scale = min(scale, 1.0)
    rng = np.random.default_rng(1)
    for _ in range(4):
        X, weights = scale * rows_for(family, 7, 2, rng.integers(1000)), rng.gamma(2.0, size=7)
        value, doubt = dissimilarity(record, X[:3], X[3:], weights[:3], weights[3:])
        expected, size = exact.dissimilarity(X[:3], X[3:], record, weights[:3], weights[3:])
        if abs(expected) > 1e-30 * size:
            assert value == pytest.approx(float(expected), rel=1e-11)
            assert abs(value - expected) <= doubt


@every_family
def test_reference_of_close_rows_is_the_definition(family):
    record = FAMILIES[family]()
    X = rows_for(family, 4, 2)
    X[1] = X[0] * (1.0 + 1e-9)
    X[3] = X[2] * (1.0 - 1e-12)
    for part in ([0, 1], [2, 3]):
        value, _ = dissimilarity(record, X[part[:1]], X[part[1:]])
        expected, size = exact.dissimilarity(X[part[:1]], X[part[1:]], record)
        assert abs(value - expected) <= 1e-11 * expected + 1e-58 * size


def test_reference_where_squares_underflow():
    X = np.array([[0.0], [5e-87], [2e-86]])
    record = FAMILIES["poisson"](smoothing=5.8e105)
    value, _ = dissimilarity(record, X[:2], X[2:])
    assert value == pytest.approx(1.75e-86 * (1.75e-86 / 5.8e105) / 3.0, rel=1e-12)


def cases_of_parts():
    """Drawn cases whose reference is a sum of parts, a few of each family."""
    found: dict = {}
    for seed in range(1_500):
        case = draw(seed)
        kind, sizes = (case.family, case.missing), np.abs(case.X[case.X != 0.0])
        usual = np.nanmax(sizes, initial=1.0) < 1e60 and np.nanmin(sizes, initial=1.0) > 1e-60
        refused = case.model or checks.has_to_be_refused(case)
        if usual and not refused and parts.is_sum(case.record, case.X):
            found.setdefault(kind, []).append(case)
    return [case for some in found.values() for case in some[:4]]


def test_references_of_parts_are_the_definition():
    for case in cases_of_parts():
        X, half, weights = case.X, len(case.X) // 2, np.arange(1.0, 1.0 + len(case.X))
        with np.errstate(all="ignore"):
            value, doubt = parts.dissimilarity(
                case.placed, X[:half], X[half:], weights[:half], weights[half:]
            )
        rows = np.arange(len(X))
        expected = parts.definition(case.placed, X, weights, rows[:half], rows[half:])
        assert abs(value - expected) <= doubt + TOLERANCE * expected, case


# The checks can fail


@pytest.mark.parametrize("kind", ["product", "missing", "geometric", "pareto"])
def test_a_height_that_is_off_is_found_in_sums_of_parts(kind):
    case = next(
        case
        for case in cases_of_parts()
        if case.family == kind or (kind == "missing" and case.missing == "ignore")
    )
    case = replace(case, form="plain", threshold=None, weights=None, algorithm="auto", audit=False)
    tree = checks.call(case)
    assert not checks.judge(tree, case)
    row = int(np.argmax(tree.heights))
    heights = tree.heights.copy()
    heights[row] *= 1.0 + 1e-6
    assert kinds(checks.judge(replace(tree, heights=heights), case)) == {"height"}


@every_family
@pytest.mark.parametrize("algorithm", ["auto", "nn_chain"])
def test_a_height_that_is_off_is_found(family, algorithm):
    case = case_of(family, algorithm=algorithm)
    tree = linkage(case.X, family, algorithm=algorithm)
    assert not checks.judge(tree, case)
    for row in range(len(tree.heights)):
        heights = tree.heights.copy()
        heights[row] *= 1.0 + 1e-6
        assert kinds(checks.judge(replace(tree, heights=heights), case)) == {"height"}


@every_family
@pytest.mark.parametrize("algorithm", ["auto", "nn_chain"])
def test_a_merge_of_others_is_found(family, algorithm):
    case = case_of(family, algorithm=algorithm)
    tree = linkage(case.X, family, algorithm=algorithm)
    names = np.arange(2 * len(case.X))
    leaf, other = tree.merges[0, 0], np.setdiff1d(np.arange(len(case.X)), tree.merges[0])[0]
    names[[leaf, other]] = other, leaf
    swapped = np.sort(names[tree.merges], axis=1)
    assert not np.array_equal(swapped, tree.merges)
    problems = checks.judge(replace(tree, merges=swapped), case)
    assert kinds(problems) & {"height", "not nearest"}


def test_merges_in_another_order_are_found():
    case = Case(seed=0, X=np.array([[0.0], [1.0], [5.0], [7.0], [30.0]]), family="poisson")
    tree = linkage(case.X, "poisson")
    steps = tree.steps[[1, 0, 2, 3]]
    assert tree.merges[1].max() < 5
    assert kinds(checks.judge(replace(tree, steps=steps), case)) == {"not nearest"}


@pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian"])
def test_what_is_left_to_the_data_is_judged(family):
    case = case_of(family, parameters={"smoothing": "auto"}, threshold="predictive")
    tree = linkage(case.X, case.record, threshold="predictive")
    assert not checks.judge(tree, case)
    off = replace(tree, heights=tree.heights * (1.0 + 1e-6))
    assert kinds(checks.judge(off, case)) == {"height"}
    for name in ("centre", "scale"):
        numbers = tuple(1.0 + 1e-6 + number for number in getattr(tree.family, name))
        family = tree.family._replace(**{name: numbers})
        off = replace(tree, origin=replace(tree.origin, family=family))
        assert kinds(checks.judge(off, case)) == {"scaling"}


def test_an_estimator_that_finds_others_is_found(monkeypatch):
    case = replace(case_of("poisson", comparisons=("estimator",)), threshold=1.0)
    assert not checks.check(case).problems

    class Other(checks.RBHC):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X, sample_weight=sample_weight)
            self.labels_ = self.labels_[::-1]
            return self

    monkeypatch.setattr(checks, "RBHC", Other)
    assert kinds(checks.check(case).problems) == {"compared: estimator"}


def test_what_is_not_a_tree_is_found():
    case = case_of("poisson")
    tree = linkage(case.X, "poisson")
    for change in (
        {"merges": tree.merges[::-1]},
        {"heights": -tree.heights},
        {"heights": np.full(8, np.nan)},
        {"weights": tree.weights + 1.0},
        {"steps": np.zeros(8, int)},
        {"merges": tree.merges[:-1], "heights": tree.heights[:-1], "weights": tree.weights[:-1],
         "steps": tree.steps[:-1]},
    ):  # fmt: skip
        assert kinds(checks.judge(replace(tree, **change), case)) == {"structure"}, change


def test_merging_that_stops_early_is_found():
    case = case_of("poisson", threshold=10.0)
    tree = linkage(case.X, "poisson", threshold=10.0)
    assert not checks.judge(tree, case)
    fewer = {name: getattr(tree, name)[:3] for name in ("merges", "heights", "weights", "steps")}
    assert kinds(checks.judge(replace(tree, **fewer), case)) == {"stopped early"}


def test_a_row_without_weight_in_the_wrong_place_is_found():
    X, weights = np.array([[0.0], [1.0], [9.0]]), np.array([1.0, 0.0, 1.0])
    case = Case(seed=0, X=X, family="spherical_gaussian", weights=weights)
    tree = linkage(X, "ward", sample_weight=weights)
    assert not checks.judge(tree, case)
    wrong = replace(tree, merges=np.array([[1, 2], [0, 3]]))
    assert kinds(checks.judge(wrong, case)) == {"row without weight"}


@pytest.mark.parametrize("name", MODELS)
def test_a_bayesian_tree_that_is_off_is_found(name):
    X = np.round(rows_for("poisson", 6, 2) + 1.0) if name != "bernoulli" else np.eye(6)[:, :3]
    case = Case(seed=0, X=X, family=name, model=True)
    tree = bhc_linkage(X, name)
    assert not checks.judge_model(tree, case)
    off = replace(tree, heights=tree.heights + 1e-6 * np.maximum(1.0, np.abs(tree.heights)))
    assert kinds(checks.judge_model(off, case)) == {"height"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("operands could not be broadcast"), "refused inside"),
        (ZeroDivisionError("division by zero"), "exception ZeroDivisionError"),
        (RuntimeWarning("overflow"), "warning"),
    ],
)
def test_unclear_errors_and_warnings_are_found(monkeypatch, error, kind):
    def fails(*_, **__):
        if isinstance(error, Warning):
            import warnings

            warnings.warn(error, stacklevel=1)
            return None
        raise error

    monkeypatch.setattr(checks, "linkage", fails)
    assert kinds(checks.check(case_of("poisson")).problems) == {kind}


def test_refusals_are_judged(monkeypatch):
    from fastrbhc._validation import check_threshold

    case = case_of("poisson")
    monkeypatch.setattr(checks, "linkage", lambda *_, **__: check_threshold(-1.0))
    assert kinds(checks.check(case).problems) == {"refused without need"}
    tree = linkage(case.X, "poisson")
    monkeypatch.setattr(checks, "linkage", lambda *_, **__: tree)
    assert kinds(checks.check(replace(case, X=-case.X)).problems) == {"taken"}


def test_other_bits_are_found(monkeypatch):
    case = case_of("poisson", comparisons=("neighbors", "permutation"))

    def by_backend(X, family, **options):
        tree = linkage(X, family, **options)
        off = options["neighbors"] == "kd_tree"
        return replace(tree, heights=np.nextafter(tree.heights, np.inf) if off else tree.heights)

    monkeypatch.setattr(checks, "linkage", by_backend)
    assert kinds(checks.check(case).problems) == {"compared: neighbors"}


# Small cases


def test_shrinking():
    case = draw(5)
    case = replace(case, X=np.vstack([rows_for("poisson", 40, 3), [[123.456, 1.0, 7.0]]]),
                   weights=None, family="poisson", algorithm="nn_chain")  # fmt: skip
    small = shrink.shrink(case, lambda candidate: candidate.X.max() > 100.0)
    assert small.X.tolist() == [[123.0]] or small.X.tolist() == [[120.0]]
    assert (small.algorithm, small.patches, small.form) == ("auto", (), "plain")


def test_code_of_a_case_makes_its_call():
    case = replace(case_of("gaussian"), weights=np.arange(1.0, 10.0), algorithm="nn_chain",
                   parameters={"smoothing": 0.5}, form="fortran", threshold=8.0)  # fmt: skip
    names: dict = {}
    exec(shrink.code_of(case).replace("print", "# "), names)
    expected = checks.call(case)
    np.testing.assert_array_equal(names["tree"].heights, expected.heights)


def test_code_of_a_case_that_did_not_end_finds_its_threshold():
    case = replace(case_of("poisson"), threshold=(0.5, 1))
    names: dict = {}
    exec(shrink.code_of(case).replace("print", "# "), names)
    level = checks.level_at(linkage(case.X, "poisson"), case.threshold)
    assert names["tree"].threshold == level


# The command


in_processes = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")


def command(*arguments, code=None):
    what = ["-c", code] if code else ["-m", "fuzz.run", *arguments]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *what],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )


@in_processes
def test_command():
    done = command("--seed", "1000000", "--cases", "5", "--workers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


@in_processes
def test_hangs_and_crashes_do_not_end_a_run():
    done = command(
        code="""
import os, time
from fuzz import run
from fuzz.checks import Report

def check(case):
    if case.seed == 12:
        time.sleep(60)
    if case.seed == 13:
        os.abort()
    return Report("tree")

run.check, run._CASE_SECONDS = check, 1.0
total, failures, _ = run.run(10, 8, 1, None)
print(total.cases, sorted((failure.seed, failure.kind) for failure in failures))
"""
    )
    assert done.stdout.splitlines()[-1] == "8 [(12, 'hang'), (13, 'crash (exit code -6)')]", done
