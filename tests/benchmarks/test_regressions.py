"""When a benchmark counts as slower: on made-up timings, whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from compare import Samples, examine, report
from regressions import FACTOR, compare, quartiles
from suite import Case

pytestmark = pytest.mark.fast


def case(name):
    return Case(name, None, (), "time", "seconds")


def timings(seed, typical, size=10, noise=0.05):
    """Times of a machine on which now and then something else runs for a while."""
    rng = np.random.default_rng(seed)
    disturbed = 1.0 + rng.exponential(0.5, size) * (rng.random(size) < 0.2)
    return (typical * np.exp(noise * rng.normal(size=size)) * disturbed).tolist()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_ratios_decide_and_seconds_do_not(scale):
    before, now = [[t * scale for t in times] for times in ([1.00, 1.02, 1.04], [1.28, 1.3, 1.4])]
    found = compare(before, now)
    assert found.ratio == pytest.approx(1.30 / 1.02)
    assert found.slower
    assert not found.faster
    back = compare(now, before)
    assert back.faster
    assert not back.slower


def test_a_change_below_the_factor_is_none():
    before, now = [1.0, 1.01, 1.02], [1.12, 1.13, 1.14]
    assert not compare(before, now).slower
    assert compare(before, now, factor=1.1).slower


def test_medians_apart_are_not_enough_if_the_middle_halves_overlap():
    before, now = [1.0, 1.0, 1.0, 1.6, 1.6], [1.0, 1.1, 1.3, 1.4, 1.5]
    found = compare(before, now)
    assert found.ratio > FACTOR
    assert not found.slower


def test_single_values_of_memory_are_compared_too():
    assert compare([100.0], [120.0]).slower
    assert not compare([100.0], [110.0]).slower


def test_nothing_to_compare():
    assert compare([], [1.0]) is None
    assert compare([0.0], [1.0]) is None  # no violations before: a ratio says nothing
    assert compare([0.0], [0.0]).ratio == 1.0


def test_quartiles_are_those_of_numpy():
    values = np.random.default_rng(0).random(11).tolist()
    assert quartiles(values) == pytest.approx(tuple(np.percentile(values, [25, 75])))


# As many as `make bench-compare` takes of all cases, and of those that look slower.
@pytest.mark.parametrize(("size", "least"), [(10, 0.9), (30, 0.98)])
def test_noise_alone_is_hardly_ever_called_slower_and_a_third_more_mostly_is(size, least):
    trials = 300
    pairs = [(timings(2 * seed, 1.0, size), 2 * seed + 1) for seed in range(trials)]
    false = sum(compare(before, timings(seed, 1.0, size)).slower for before, seed in pairs)
    true = sum(compare(before, timings(seed, 1.33, size)).slower for before, seed in pairs)
    assert false <= 0.01 * trials
    assert true >= least * trials


def test_what_looks_slower_is_measured_again_and_the_rest_is_not():
    truth = {case("same"): 1.0, case("slower"): 1.5, case("disturbed"): 1.0}
    calls = dict.fromkeys(truth, 0)

    def measure(one):
        calls[one] += 1
        first = calls[one] == 1
        factor = 2.0 if one.name == "disturbed" and first else truth[one]
        return Samples([1.0, 1.01, 1.02], [factor, factor * 1.01, factor * 1.02])

    found = examine(list(truth), measure, rounds=1, factor=FACTOR, say=lambda _: None)
    assert calls == {case("same"): 1, case("slower"): 3, case("disturbed"): 3}
    assert {one.name: found[one].slower for one in truth} == {
        "same": False,
        "slower": True,
        "disturbed": False,
    }


def test_cases_that_one_side_lacks_are_left_out():
    def measure(one):
        return None if one.name == "new" else Samples([1.0], [1.0])

    found = examine([case("new"), case("old")], measure, 2, FACTOR, say=lambda _: None)
    assert found[case("new")] is None
    assert found[case("old")].ratio == 1.0
    lines = list(report(found, FACTOR))
    assert lines[0].split() == ["left", "out", "new"]
    assert lines[-1].startswith("1 cases: 0 slower and 0 faster")


def test_the_report_has_ratios_the_worst_first_and_no_seconds():
    found = {
        case("little"): compare([1.0], [1.2]),
        case("much"): compare([1.0], [3.0]),
        case("quicker"): compare([3.0], [1.0]),
        case("same"): compare([1.0], [1.0]),
    }
    lines = list(report(found, FACTOR))
    assert [line.split() for line in lines[:3]] == [
        ["slower", "×", "3.00", "much"],
        ["slower", "×", "1.20", "little"],
        ["faster", "×", "0.33", "quicker"],
    ]
    assert "2 slower and 1 faster" in lines[-1]
    assert not any("seconds" in line or " s " in line for line in lines)
