"""The paper's experiments, with few trials: against definitions and results of long runs."""

from __future__ import annotations

import importlib
import json
import sys

import exact
import naive
import numpy as np
import pytest

import fastrbhc
from fastrbhc import cli
from fastrbhc.experiments import _trials, figure1, table1
from fastrbhc.experiments._distributions import DISTRIBUTIONS
from fastrbhc.experiments._trials import CHUNK, ClusterSizes, Trials, run_trials

NAMES = ["poisson", "multinomial", "gaussian"]
every_distribution = pytest.mark.parametrize("name", NAMES)
KEYS = {
    "exact_mean",
    "exact_se",
    "taylor_mean",
    "taylor_se",
    "relative_error_percent",
    "relative_error_percent_se",
    "not_reducible_per_100k",
    "not_reducible_per_100k_se",
    "paper",
}


def run(name, trials, n_threads=1, sizes=None, seed=0):
    return run_trials(DISTRIBUTIONS[name], trials, seed, (0,), n_threads, lambda done: None, sizes)


def draw_chunk(name, sizes, chunk=0):
    """The clusters of a chunk as rows, and the parameters, drawn as `run` draws them."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0, chunk)))
    counts = sizes.scale * rng.integers(sizes.smallest, sizes.largest + 1, size=(CHUNK, 3))
    draw = DISTRIBUTIONS[name].draw(rng, counts.sum(axis=1))
    groups = np.split(draw.rows, np.cumsum(counts.ravel())[:-1])
    return [groups[3 * t : 3 * t + 3] for t in range(CHUNK)], draw


def d(a, b, name):
    return naive.dissimilarity(a, np.ones(len(a)), b, np.ones(len(b)), name)


def nearest_pair(groups, name):
    pairs = [(0, 1), (0, 2), (1, 2)]
    return min(pairs, key=lambda pair: d(groups[pair[0]], groups[pair[1]], name))


def sorted_by_nearest(groups, name):
    """The nearest pair first, the third one last."""
    a, b = nearest_pair(groups, name)
    return groups[a], groups[b], groups[3 - a - b]


def is_not_reducible(groups, name):
    """The definition, with the nearest pair as c₀ and c₁."""
    a, b, x = sorted_by_nearest(groups, name)
    return d(np.concatenate([a, b]), x, name) < min(d(a, x, name), d(b, x, name))


# Trials


@every_distribution
def test_trials_against_the_definition(name):
    found = run(name, CHUNK)
    trials, draw = draw_chunk(name, ClusterSizes())
    for t, (a, b, x) in enumerate(trials):
        mean = draw.means[t] if draw.covariances is None else (draw.means[t], draw.covariances[t])
        taylor = fastrbhc.taylor_dissimilarity(a, b, name, mean)
        assert found.exact[t] == pytest.approx(d(a, b, name), rel=1e-8, abs=1e-9)
        assert found.taylor[t] == pytest.approx(taylor, rel=1e-10)
        assert found.not_reducible[t] == is_not_reducible([a, b, x], name)


def test_trials_that_are_not_reducible_are_so_in_sixty_digits():
    """For the Gaussian with the sizes of the paper, half a per cent of all trials."""
    found = run("gaussian", CHUNK * 10)
    trial = int(np.flatnonzero(found.not_reducible)[0])
    groups = draw_chunk("gaussian", ClusterSizes(), trial // CHUNK)[0][trial % CHUNK]
    a, b, x = sorted_by_nearest(groups, "gaussian")
    union, family = np.concatenate([a, b]), DISTRIBUTIONS["gaussian"].family
    d_ab, d_ax, d_bx, d_cx = (
        exact.dissimilarity(*pair, family)[0] for pair in [(a, b), (a, x), (b, x), (union, x)]
    )
    assert d_ab < d_ax
    assert d_ab < d_bx
    assert d_cx < min(d_ax, d_bx)


def test_trials_that_are_not_reducible_are_so_by_the_definition():
    """For small Gaussian clusters, whichever pair of the three is the nearest."""
    sizes, n_chunks = ClusterSizes(smallest=2, largest=8), 15
    found = run("gaussian", n_chunks * CHUNK, sizes=sizes)
    chunks = (draw_chunk("gaussian", sizes, chunk)[0] for chunk in range(n_chunks))
    trials = [groups for chunk in chunks for groups in chunk]
    reference = [is_not_reducible(groups, "gaussian") for groups in trials]
    np.testing.assert_array_equal(found.not_reducible, reference)
    nearest = {nearest_pair(trials[t], "gaussian") for t in np.flatnonzero(reference)}
    assert nearest == {(0, 1), (0, 2), (1, 2)}


@every_distribution
def test_sizes_are_those_of_the_paper(name):
    trials, _ = draw_chunk(name, ClusterSizes())
    sizes = [len(group) for groups in trials for group in groups]
    assert min(sizes) >= 20
    assert max(sizes) <= 100
    assert np.mean(sizes) == pytest.approx(60.0, abs=5.0)


@every_distribution
def test_rows_have_the_mean_that_is_said(name):
    rng = np.random.default_rng(1)
    distribution = DISTRIBUTIONS[name]
    draw = distribution.draw(rng, np.full(20, 4_000))
    for t, rows in enumerate(np.split(draw.rows, 20)):
        observed = distribution.family.observe(rows).means
        spread = observed.std(axis=0, ddof=1) / np.sqrt(len(rows))
        assert (np.abs(observed.mean(axis=0) - draw.means[t]) < 5.0 * spread).all()
        if draw.covariances is not None:
            ratio = np.linalg.solve(draw.covariances[t], np.cov(rows.T))
            assert np.abs(np.linalg.eigvals(ratio) - 1.0).max() < 0.3


@pytest.mark.fast
def test_parameters_have_the_moments_of_their_distributions():
    rng = np.random.default_rng(2)
    ones = np.ones(20_000, np.int64)
    rates = DISTRIBUTIONS["poisson"].draw(rng, ones).means
    assert rates.mean() == pytest.approx(2.0 / 0.05, rel=0.03)  # shape over rate
    assert rates.var() == pytest.approx(2.0 / 0.05**2, rel=0.06)
    shares = DISTRIBUTIONS["multinomial"].draw(rng, ones).means
    np.testing.assert_allclose(shares.mean(axis=0), 0.1, rtol=0.02)
    np.testing.assert_allclose(shares.var(axis=0), 0.1 * 0.9 / 51.0, rtol=0.06)
    draw = DISTRIBUTIONS["gaussian"].draw(rng, ones)
    # E[Λ] = νE[Ψ], and E[AAᵀ] = dI.
    precision = np.linalg.inv(draw.covariances).mean(axis=0)
    np.testing.assert_allclose(precision, 12.0 * 20.0 * np.eye(10), atol=8.0)
    # Means in units of their own covariance are normal with variance 1/0.08.
    whitened = np.einsum("ti,tij,tj->t", draw.means, np.linalg.inv(draw.covariances), draw.means)
    assert whitened.mean() == pytest.approx(10.0 / 0.08, rel=0.02)


@pytest.mark.parametrize("scale", [1, 4, 16])
def test_a_scale_divides_the_covariance_of_mean_statistics(scale):
    """More rows, each of less weight."""
    distribution, rng = DISTRIBUTIONS["gaussian"], np.random.default_rng(3)
    geometry, sizes = distribution.family.geometry(10), ClusterSizes(20, 20, scale)
    clusters = _trials._draw_clusters(distribution, geometry, rng, sizes)
    for part in range(3):
        np.testing.assert_allclose(clusters.weights[part::4], 20.0, rtol=1e-14)
        steps = clusters.means[:, part::4] - clusters.means[:, 3::4]
        variances = clusters.scatter[3::4, [0, 2, 5, 9, 14, 20, 27, 35, 44, 54]].T
        assert (steps**2 / variances).mean() == pytest.approx(1.0 / (20.0 * scale), rel=0.25)


@every_distribution
def test_the_number_of_threads_leaves_no_trace(name):
    reference = run(name, 3 * CHUNK + 7)
    for computed in (run(name, 3 * CHUNK + 7, n_threads=2), run(name, 5 * CHUNK)):
        for expected, values in zip(reference, computed, strict=True):
            np.testing.assert_array_equal(values[: len(expected)], expected)
    assert not np.array_equal(run(name, CHUNK, seed=1).exact, reference.exact[:CHUNK])


@pytest.mark.fast
def test_relative_errors():
    found = Trials(np.array([1.0, 0.0, 2.0]), np.array([3.0, 0.0, 2.0]), np.zeros(3, bool))
    np.testing.assert_array_equal(found.relative_errors, [1.0, 0.0, 0.0])


# Table 1


@pytest.fixture(scope="module")
def table():
    return table1(trials=5_000, seed=1)


# Means over 100,000 trials of seed 0, rounded; the paper's are in table1.PAPER.
LONG_RUN = {
    "poisson": (0.501, 0.501, 1.522, 0.0),
    "multinomial": (3.602, 3.573, 4.116, 87.0),
    "gaussian": (8.722, 8.700, 7.847, 523.0),
}


@every_distribution
def test_a_shorter_table_agrees_with_a_long_one(table, name):
    row = table["rows"][name]
    columns = ("exact_mean", "taylor_mean", "relative_error_percent", "not_reducible_per_100k")
    errors = ("exact_se", "taylor_se", "relative_error_percent_se", "not_reducible_per_100k_se")
    for column, error, expected in zip(columns, errors, LONG_RUN[name], strict=True):
        assert abs(row[column] - expected) <= 4.0 * row[error]
    assert table["trials"] == 5_000


def test_what_a_table_holds(table):
    assert set(table) == {"trials", "seed", "rows"}
    assert list(table["rows"]) == NAMES
    for row in table["rows"].values():
        assert set(row) == KEYS
    assert json.loads(json.dumps(table)) == table


def test_the_paper_agrees_where_it_should(table):
    """Means of d within a few standard errors, and the order of the families."""
    rows = table["rows"]
    for name in NAMES:
        row = rows[name]
        assert abs(row["exact_mean"] - row["paper"]["exact_mean"]) < 5.0 * row["exact_se"]
    for source in (rows, {name: rows[name]["paper"] for name in NAMES}):
        errors = [source[name]["relative_error_percent"] for name in NAMES]
        assert errors == sorted(errors)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, ValueError, "trials has to be at least 1"),
        ({"trials": 1}, ValueError, "trials has to be at least 2"),
        ({"trials": 2.5}, TypeError, "trials has to be a whole number"),
        ({"seed": -1}, ValueError, "seed has to be at least 0"),
        ({"seed": 0.5}, TypeError, "seed has to be a whole number"),
        ({"n_jobs": 0}, ValueError, "n_jobs has to be positive"),
    ],
)
def test_mistakes(options, error, message):
    for experiment in (table1, figure1):
        with pytest.raises(error, match=message):
            experiment(**options)


@pytest.mark.fast
def test_experiments_are_found_from_the_package():
    assert fastrbhc.experiments.table1 is table1
    assert fastrbhc.experiments.figure1 is figure1
    with pytest.raises(AttributeError, match="no attribute 'experiment'"):
        _ = fastrbhc.experiment


# Figure 1


@pytest.fixture(scope="module")
def figure():
    return figure1(trials=400, largest_sizes=[25, 100, 400], scales=[1, 4, 16])


@pytest.mark.parametrize("name", ["largest_size", "scale"])
def test_the_error_falls_with_size_and_scale(figure, name):
    curve = figure[name]
    errors = np.array(curve["relative_error_percent"])
    doubts = np.array(curve["relative_error_percent_se"])
    assert (np.diff(errors) < -3.0 * np.hypot(doubts[1:], doubts[:-1])).all()


def test_four_times_the_scale_halves_the_error(figure):
    """The ratio of the third-order to the second-order term is of order 1/√(βn)."""
    errors = np.array(figure["scale"]["relative_error_percent"])
    np.testing.assert_allclose(errors[1:] / errors[:-1], 0.5, atol=0.1)


@pytest.mark.fast
def test_sizes_and_scales_that_are_refused():
    with pytest.raises(ValueError, match="largest_sizes have to be at least 20, got 19"):
        figure1(largest_sizes=[19])
    with pytest.raises(TypeError, match="scales has to be a whole number"):
        figure1(scales=[0.5])
    with pytest.raises(ValueError, match="have to hold at least one value each"):
        figure1(scales=[])


# The command line


def test_the_table_as_a_command(tmp_path, capsys):
    path = tmp_path / "table.json"
    arguments = ["reproduce", "table1", "--trials", "300", "--seed", "5", "--json", str(path)]
    assert cli.main([*arguments, "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    written = json.loads(path.read_text())
    assert written == table1(trials=300, seed=5)
    assert "300 trials for each row, seed 5" in out
    row = written["rows"]["gaussian"]
    assert f"{row['exact_mean']:.3f} ± {row['exact_se']:.3f} [8.739]" in out
    assert [line.split()[0] for line in out.splitlines()[3:6]] == NAMES
    assert f"wrote {path}" in out


def test_the_figure_as_a_command(tmp_path, capsys, figure, monkeypatch):
    module = importlib.import_module("fastrbhc.experiments.figure1")  # hidden by the function
    monkeypatch.setattr(module, "figure1", lambda **options: figure | {"seed": options["seed"]})
    data, picture = tmp_path / "figure.json", tmp_path / "figure.png"
    arguments = ["reproduce", "figure1", "--seed", "3", "--json", str(data), "--plot", str(picture)]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert json.loads(data.read_text()) == figure | {"seed": 3}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
    assert f"{figure['scale']['relative_error_percent'][-1]:.3f}" in out
    assert f"wrote {picture}" in out


def test_figures_on_standard_output(capsys):
    assert cli.main(["reproduce", "table1", "--trials", "50", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert "compiling included" in err
    assert "wrote" not in err


def test_progress_bars_go_to_standard_error(capsys):
    assert cli.main(["reproduce", "table1", "--trials", "100", "--progress"]) == 0
    out, err = capsys.readouterr()
    for name in NAMES:
        assert f"{name}: 100%" in err
    assert "100%" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "EXPERIMENT"),
        (["table4"], "invalid choice: 'table4'"),
        (["table1", "--trials", "0"], "trials has to be at least 1"),
        (["table1", "--seed", "-1"], "seed has to be at least 0"),
        (["table1", "--json", "no/such/place.json"], "there is no directory"),
        (["table1", "--plot", "x.png"], "unrecognized arguments"),
        (["figure1", "--json", "same", "--plot", "same"], "have to be different files"),
        (["figure1", "--plot", "."], "is a directory"),
    ],
)
def test_mistakes_on_the_command_line(capsys, arguments, message):
    try:
        code = cli.main(["reproduce", *arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("fastrbhc: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_figure_without_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    picture = tmp_path / "figure.png"
    assert cli.main(["reproduce", "figure1", "--plot", str(picture)]) == 2
    assert "pip install fastrbhc[plot]" in capsys.readouterr().err
    assert not picture.exists()
