"""The choice of algorithm and backend, and the estimated time."""

from __future__ import annotations

import contextlib
import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from strategies import FAMILIES, REDUCIBLE, continuous_rows

from fastrbhc import linkage
from fastrbhc._engine.agglomeration.direct import MOST_POINTS
from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.geometry.contract import FEW_COLUMNS, storage
from fastrbhc._engine.planning import cost_model, execution
from fastrbhc._engine.planning import plan as plan_module
from fastrbhc._engine.planning.plan import Plan, plan
from fastrbhc.families import as_family

every_family = pytest.mark.parametrize("family", FAMILIES)


def chosen(family="poisson", n=10_000, n_features=2, algorithm="auto", neighbors="auto", threads=4):
    reducible = as_family(family).reducible
    return plan(reducible, n, n_features, algorithm, neighbors, threads)


# The choice


@pytest.mark.fast
@every_family
def test_the_algorithm_follows_from_the_family(family):
    reference = "levels" if family in REDUCIBLE else "greedy"
    for n, n_features in itertools.product((2, 500, 10**6), (1, 8, 9, 100)):
        direct = n <= MOST_POINTS and n_features <= FEW_COLUMNS
        assert chosen(family, n, n_features).algorithm == ("direct" if direct else reference)


@pytest.mark.fast
@every_family
def test_the_backend_follows_from_the_shape(family):
    few, many = FEW_COLUMNS, FEW_COLUMNS + 1
    for n in (MOST_POINTS + 1, 10**6):
        assert chosen(family, n, 1).neighbors == "kd_tree"
        assert chosen(family, n, few).neighbors == "kd_tree"
        assert chosen(family, n, many).neighbors == "brute"
    assert chosen(family, MOST_POINTS, few, algorithm="greedy").neighbors == "brute"
    assert chosen(family, MOST_POINTS, many).neighbors == "brute"


@pytest.mark.fast
@every_family
def test_few_points_take_another_way_where_one_is_asked_for(family):
    assert chosen(family, MOST_POINTS).algorithm == "direct"
    for algorithm in ("greedy", "nn_chain"):
        assert chosen(family, MOST_POINTS, algorithm=algorithm).algorithm == algorithm
    for neighbors in ("brute", "kd_tree"):
        asked = chosen(family, MOST_POINTS, neighbors=neighbors)
        assert asked.neighbors == neighbors
        assert asked.algorithm == ("levels" if family in REDUCIBLE else "greedy")


@pytest.mark.fast
def test_small_jobs_get_one_thread():
    assert chosen(n=1_000, n_features=2).n_threads == 1
    assert chosen(n=1_000, n_features=200).n_threads == 4
    assert chosen("ward", n=4_000, n_features=2).n_threads == 1  # by levels on the kd-tree
    assert chosen("ward", n=20_000, n_features=2).n_threads == 4
    assert chosen("ward", n=20_000, n_features=2, neighbors="brute").n_threads == 4
    assert chosen("ward", n=20_000, n_features=2, algorithm="greedy").n_threads == 4
    assert chosen("poisson", n=20_000, n_features=2).n_threads == 4
    assert chosen(n=100_000, n_features=2).n_threads == 4
    assert chosen(n=100_000, n_features=2, threads=1).n_threads == 1


@pytest.fixture
def received(monkeypatch):
    """The arguments of the algorithm, which does no work."""
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD_BY_LEVELS", 0)
    received = []

    class EnoughSeenError(Exception):
        pass

    def algorithm(space, threshold, threads, report):
        received.append((space.geometry.columns, threads.count))
        raise EnoughSeenError

    monkeypatch.setitem(execution.ALGORITHMS, "greedy", algorithm)

    def see(X, **options):
        with pytest.raises(EnoughSeenError):
            linkage(X, "poisson", **options)
        return received[-1]

    return see


def test_large_jobs_with_few_columns_get_kernels_of_their_own(received):
    large = plan_module.WORTH_COMPILING
    X = np.random.default_rng(1).uniform(size=(large, 9))
    assert received(X[:, :3], n_jobs=2) == ((0, 1, 2), 2)
    assert received(X[:, :3], n_jobs=3, neighbors="brute") == ((), 3)
    assert received(X, n_jobs=2, neighbors="kd_tree") == ((), 2)
    assert received(X[1:, :3], n_jobs=2) == ((), 2)
    assert received(X[:300, :3], n_jobs=2) == ((), 1)


def test_the_number_of_distinct_rows_counts(received):
    X = np.random.default_rng(2).uniform(size=(300, 3))
    assert received(np.tile(X, (40, 1)), n_jobs=2) == ((), 1)


# Estimates


class Clock:
    """Replaces the module time, and builds no trees: each takes the given time."""

    def __init__(self, seconds_of_tree):
        self.now, self.sizes = 0.0, []
        self.seconds_of_tree = seconds_of_tree

    def perf_counter(self):
        return self.now

    def agglomerate(self, chosen, geometry, points, threshold, report):
        self.sizes.append(len(points.means))
        assert threshold == np.inf
        # The first tree includes compilation.
        self.now += self.seconds_of_tree(self.sizes[-1]) if len(self.sizes) > 1 else 1e6


@pytest.fixture
def foretell(monkeypatch):
    """Warnings for n rows of two columns, and the sizes of the trees timed."""

    def foretell(n, seconds_of_tree, neighbors="kd_tree"):
        clock, way = Clock(seconds_of_tree), Plan("greedy", neighbors, 1, ())
        monkeypatch.setattr(cost_model, "time", clock)
        monkeypatch.setattr(cost_model, "agglomerate", clock.agglomerate)
        monkeypatch.setattr(cost_model, "planned_clusters", lambda way, geometry, points: points)
        geometry, points = as_family("poisson").geometry(2), Observations(np.ones((n, 2)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cost_model.warn_if_long(way, geometry, points)
        return [str(warning.message) for warning in caught], clock.sizes

    return foretell


@pytest.mark.fast
def test_an_estimate_by_squares(foretell):
    [message], sizes = foretell(100_000, lambda n: 1.001e-7 * n**2)
    assert "linkage of 100,000 distinct rows with 2 columns" in message
    assert "about 17 minutes" in message  # 1,000 seconds
    assert sizes == [20, 20, 80, 320, 1280]  # the next one would take 2.6 seconds


@pytest.mark.fast
def test_an_estimate_of_linear_growth(foretell):
    [message], _ = foretell(1_000_000, lambda n: 1.001e-3 * n)
    assert "about 17 minutes" in message  # 1,000 seconds
    assert foretell(1_000_000, lambda n: 0.5e-3 * n)[0] == []  # 500 seconds


@pytest.mark.fast
def test_a_growth_out_of_bounds_is_not_believed(foretell):
    """At least linear and at most quadratic."""
    [message], _ = foretell(1_040_000, lambda n: 0.06)
    assert "about 13 minutes" in message  # at 80 rows, times 13,000
    [message], _ = foretell(200_000, lambda n: 1e-9 * n**3)
    assert "about 853 minutes" in message  # 2.1 seconds at 1,280 rows, times 156.25²


@pytest.mark.fast
def test_scans_grow_by_squares(foretell):
    """Whatever the times of small trees, which end before all threads have started."""
    [message], _ = foretell(100_000, lambda n: 1e-4 * n, neighbors="brute")
    assert "about 13 minutes" in message  # 0.128 seconds at 1,280 rows, times 78²


@pytest.mark.fast
def test_scans_of_blocks_grow_as_measured(foretell):
    """From 4,096 rows on boxes may pass over blocks of clusters."""
    messages, sizes = foretell(1_000_000, lambda n: 1e-5 * n, neighbors="brute")
    assert messages == []
    assert sizes == [20, 20, 80, 320, 1280, 5120, 20480]


@pytest.mark.fast
@pytest.mark.parametrize(
    ("n", "seconds_of_tree", "minutes"),
    [
        (1_000_000, lambda n: 1.001e-3 * n, 17),  # 1,000 seconds
        (100_000, lambda n: 1.001e-7 * n**2, 17),
        (100_000, lambda n: 1e-9 * n**3, 213),  # 2.1 seconds at 1,280 rows, times 78²
        # Two parts of 500 seconds. The second cannot be seen in the growth so far, which would
        # make it 8 minutes, but in a fit of both parts, 17 minutes: the mean is taken.
        (1_000_000, lambda n: 5e-4 * n + 5e-10 * n**2, 12),
    ],
)
def test_sparse_rows_grow_as_measured(foretell, n, seconds_of_tree, minutes):
    [message], _ = foretell(n, seconds_of_tree, neighbors="inverted")
    assert f"about {minutes} minutes" in message


@pytest.mark.fast
def test_sparse_rows_are_timed_until_their_growth_shows(foretell):
    messages, sizes = foretell(100_000, lambda n: 1e-4 * n + 1e-8 * n**2, neighbors="inverted")
    assert messages == []  # far below the limit, and yet:
    assert sizes == [20, 20, 80, 320, 1280]


@pytest.mark.fast
def test_sparse_rows_between_two_estimates():
    """If one part grows as n and one as n², their sum is met, and so is each alone."""
    now = 3.0 + 2.0
    assert cost_model._linear_and_square(3.0 / 4.0 + 2.0 / 16.0, now, 10.0) == pytest.approx(230.0)
    assert cost_model._linear_and_square(1.0, 4.0, 10.0) == pytest.approx(40.0)
    assert cost_model._linear_and_square(2.0, 4.0, 10.0) == pytest.approx(40.0)  # at least n
    assert cost_model._linear_and_square(0.25, 4.0, 10.0) == pytest.approx(400.0)
    assert cost_model._linear_and_square(0.01, 4.0, 10.0) == pytest.approx(400.0)  # at most n²


@pytest.mark.fast
def test_trees_grow_until_they_take_long_enough(foretell):
    messages, sizes = foretell(100_000, lambda n: 1e-9 * n**2)
    assert messages == []
    assert sizes == [20, 20, 80, 320, 1280, 5120]  # 0.026 seconds


@pytest.mark.fast
def test_trees_that_compile_are_timed_again(foretell, monkeypatch):
    heard, built = [], []

    @contextlib.contextmanager
    def listening(begun, finished):
        heard.append(finished)
        yield
        heard.pop()

    def seconds(n):
        built.append(n)
        if built.count(80) == 1 and n == 80:  # a kernel for ties, say
            heard[-1]()
            return 0.2
        return 1e-9 * n**2

    monkeypatch.setattr(cost_model, "listening", listening)
    messages, sizes = foretell(100_000, seconds)
    assert messages == []
    assert sizes == [20, 20, 80, 80, 320, 1280, 5120]


@pytest.mark.fast
@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 1e-3, 0.02])
@pytest.mark.parametrize("neighbors", ["kd_tree", "inverted"])
def test_pilots_are_bounded(foretell, power, seconds, neighbors):
    """All of them take at most two seconds, or a tenth of the time that follows."""

    def time_of(n):
        return seconds * (n / 20) ** power

    _, sizes = foretell(1_000_000, time_of, neighbors)
    assert sum(map(time_of, sizes[1:])) <= min(2.0, 0.1 * time_of(1_000_000))


@pytest.mark.fast
def test_nothing_is_tried_for_short_work(foretell):
    assert foretell(1_000, lambda n: 1e9) == ([], [])


# Memory


def bytes_per_row(geometry, n_features):
    rows = Observations(np.ones((1, n_features)))
    return rows.bytes_per_row(storage(geometry, n_features))


@pytest.mark.fast
@every_family
def test_memory_grows_with_the_columns(family):
    sizes = [
        bytes_per_row(as_family(family).geometry(n_features), n_features)
        for n_features in (1, 2, 3, 8, 9, 100)
    ]
    assert sizes[0] > 0
    assert (np.diff(sizes) > 0).all()


@pytest.mark.parametrize("n_features", [2, 6])
@pytest.mark.parametrize(
    ("family", "algorithm"),
    [("spherical_gaussian", "levels"), ("poisson", "greedy"), ("gaussian", "nn_chain")],
)
def test_memory_is_about_what_is_needed(family, algorithm, n_features):
    n, geometry = 8_000, as_family(family).geometry(n_features)
    points = Observations(continuous_rows(family, n, n_features, seed=3))
    way = Plan(algorithm, "kd_tree", 1, ())

    def build(points):
        clusters = execution.planned_clusters(way, geometry, points)
        execution.agglomerate(way, geometry, clusters, np.inf, lambda *_: None)

    build(take(points, np.arange(1_500)))  # compiles
    tracemalloc.start()
    build(points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 < n * bytes_per_row(geometry, n_features) / peak < 1.7


@pytest.mark.parametrize(("many", "most"), [(10**9, 155), (1_000, 100)])
def test_bytes_per_row_of_a_whole_tree(monkeypatch, many, most):
    """With and without cells; parts of arrays that are never written to count as well here."""
    monkeypatch.setitem(execution.MANY_POINTS, 2, many)
    X = np.random.default_rng(0).random((100_000, 2))
    linkage(X[:10_000], "ward", n_jobs=2)  # compiles
    tracemalloc.start()
    linkage(X, "ward", n_jobs=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak / len(X) < most
