"""The function, the estimator and the command line offer the same options."""

from __future__ import annotations

import argparse
import dataclasses
import inspect

import numpy as np
import pytest
from trees import same_tree

import fastrbhc
from fastrbhc import cli
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.planning.execution import ALGORITHMS
from fastrbhc._options import (
    ALGORITHM_NAMES,
    DEFAULT_GUESS,
    NEIGHBOR_NAMES,
    THRESHOLD_NAMES,
    LinkageOptions,
)
from fastrbhc.cli.cluster import add_command
from fastrbhc.experiments._spec import experiments
from fastrbhc.selection.number import FROM_PREDICTION
from fastrbhc.thresholds import FROM_ROWS, FROM_TREE

OPTIONS = {field.name: field.default for field in dataclasses.fields(LinkageOptions)}


def keyword_defaults(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def command_line():
    """The arguments of `fastrbhc cluster`, by name."""
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers().add_parser)
    choices = parser._subparsers._group_actions[0].choices
    return {action.dest: action for action in choices["cluster"]._actions}


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",")
    return path


def test_the_names_of_algorithms_are_those_of_the_engine():
    assert ("auto", *ALGORITHMS) == ALGORITHM_NAMES
    assert ("auto", *BACKENDS, "approximate") == NEIGHBOR_NAMES


def test_the_function_has_them_all_with_weights_names_and_a_graph():
    others = {"sample_weight": None, "feature_names": None, "connectivity": None, "connect": False}
    assert keyword_defaults(fastrbhc.linkage) == {**OPTIONS, **others}


def test_the_estimator_has_them_all():
    given = keyword_defaults(fastrbhc.RBHC)
    assert OPTIONS.keys() <= given.keys()
    # The estimator has to stop somewhere; everything else is as in the function.
    assert {k: given[k] for k in OPTIONS} == {**OPTIONS, "threshold": "predictive"}


def test_the_command_line_has_them_all():
    given = command_line()
    assert OPTIONS.keys() <= given.keys()
    assert {name: given[name].default for name in OPTIONS} == OPTIONS
    for name in OPTIONS:
        assert f"--{name.replace('_', '-')}" in given[name].option_strings


def test_the_command_line_has_the_others_too_from_files():
    places = {
        "sample_weight": {"weights"},
        "feature_names": {"feature_names"},
        "connectivity": {"connectivity", "grid"},
        "connect": {"connect"},
    }
    assert keyword_defaults(fastrbhc.linkage).keys() == OPTIONS.keys() | places.keys()
    assert set().union(*places.values()) <= command_line().keys()


def test_thresholds_have_the_same_names_everywhere():
    assert set(THRESHOLD_NAMES) == {*FROM_PREDICTION, *FROM_ROWS, *FROM_TREE}
    shown = command_line()["threshold"].help
    assert all(name in shown for name in (*FROM_PREDICTION, *FROM_TREE))  # the other is --guess


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("name", ["gap", "evidence"])
def test_a_named_threshold_is_the_same_in_all_three(table, tmp_path, name, algorithm):
    X = np.loadtxt(table, delimiter=",")
    weights = np.arange(1.0, 41.0)
    whole = fastrbhc.linkage(X, "gaussian", sample_weight=weights, algorithm=algorithm)
    options = {"family": "gaussian", "threshold": name, "algorithm": algorithm}
    forest = fastrbhc.linkage(X, sample_weight=weights, **options)
    model = fastrbhc.RBHC(**options).fit(X, sample_weight=weights)
    assert forest.threshold == model.threshold_
    assert 1 < forest.n_trees == model.n_clusters_
    count = len(forest.merges)
    for part in ("merges", "heights", "weights"):
        np.testing.assert_array_equal(getattr(forest, part), getattr(whole, part)[:count])
    assert sorted(forest.steps) == list(range(count))
    np.testing.assert_array_equal(forest.leaf_weights, weights)
    labels = forest.cut(threshold=forest.threshold)
    np.testing.assert_array_equal(labels, whole.cut(threshold=model.threshold_))
    np.testing.assert_array_equal(labels, model.labels_)
    np.savetxt(tmp_path / "w.csv", np.column_stack([X, weights]), delimiter=",")
    out = tmp_path / "labels.csv"
    command = ["cluster", str(tmp_path / "w.csv"), "--weights", "3", "--labels", str(out)]
    for option, value in options.items():
        command += [f"--{option}", value]
    assert cli.main(command) == 0
    np.testing.assert_array_equal(
        np.loadtxt(out, int, delimiter=",", skiprows=1)[:, 1], model.labels_
    )


def test_a_named_threshold_gives_the_forest_of_its_number(table):
    X = np.loadtxt(table, delimiter=",")
    for name in ("gap", "evidence"):
        forest = fastrbhc.linkage(X, "ward", threshold=name)
        assert same_tree(forest, fastrbhc.linkage(X, "ward", threshold=forest.threshold))


def test_kmeans_by_name_needs_no_guess(table, monkeypatch):
    X = np.loadtxt(table, delimiter=",")
    given = []

    def choose(rows, family, guess, multiplier, weights, seed):
        given.append((guess, multiplier, weights, seed))
        return 2.0

    monkeypatch.setitem(FROM_ROWS, "kmeans", choose)
    forest = fastrbhc.linkage(X, "ward", threshold="kmeans")
    fastrbhc.RBHC("ward", threshold="kmeans").fit(X)
    multiplier = keyword_defaults(fastrbhc.RBHC)["multiplier"]
    assert given == [(DEFAULT_GUESS, multiplier, None, None)] * 2
    assert same_tree(forest, fastrbhc.linkage(X, "ward", threshold=2.0))


def test_the_audit_of_a_named_threshold_is_of_the_whole_tree(table):
    X = np.loadtxt(table, delimiter=",")
    forest = fastrbhc.linkage(X, threshold="gap", audit=True)
    assert forest.n_trees > 1
    assert str(forest.audit) == str(fastrbhc.linkage(X, audit=True).audit)


def test_help_names_every_choice():
    given = command_line()
    for name, choices in (("algorithm", ALGORITHM_NAMES), ("neighbors", NEIGHBOR_NAMES)):
        assert all(choice in given[name].help for choice in choices)


@pytest.mark.parametrize(
    ("option", "method"),
    [(["--audit"], "all of them"), (["--audit", "sample"], "a random sample"), ([], None)],
)
def test_audit_prints_its_report(table, capsys, option, method):
    assert cli.main(["cluster", str(table), "--clusters", "2", *option]) == 0
    out = capsys.readouterr().out
    assert ("Reducibility\n  triples" in out) == (method is not None)
    assert method is None or method in out


def test_neighbors_and_audit_reach_the_estimator(table, monkeypatch):
    seen = {}

    class StoppedError(Exception):
        pass

    def estimator(family, **given):
        seen.update(given)
        raise StoppedError

    monkeypatch.setattr(fastrbhc, "RBHC", estimator)
    given = ["--neighbors", "brute", "--algorithm", "levels", "--n-jobs", "2", "--progress"]
    with pytest.raises(StoppedError):
        cli.main(["cluster", str(table), "--family", "ward", *given, "--audit", "sample"])
    assert {name: seen[name] for name in OPTIONS} == {
        "algorithm": "levels",
        "neighbors": "brute",
        "threshold": "predictive",
        "n_jobs": 2,
        "progress": True,
        "audit": "sample",
        "missing": "error",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--neighbors", "ball_tree"], "neighbors has to be one of"),
        (["--audit", "some"], "argument --audit: invalid choice: 'some'"),
    ],
)
def test_mistakes(table, capsys, arguments, message):
    try:
        code = cli.main(["cluster", str(table), *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("module", experiments().values())
def test_every_experiment_describes_itself(module):
    spec = module.EXPERIMENT
    given = inspect.signature(getattr(module, spec.function)).parameters
    assert given[spec.amount[0]].default == spec.amount[1]
    assert {option.name.replace("-", "_") for option in spec.options} <= given.keys()
    assert hasattr(module, "report")
    assert hasattr(module, "draw") or not spec.draws
