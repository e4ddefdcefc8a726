"""Tables 2 and 3 and the choices of λ: data, methods and bookkeeping on small sets."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

import fastrbhc
from fastrbhc import cli
from fastrbhc.experiments import _labelled, _methods
from fastrbhc.experiments._comparison import Source, compare, table_of
from fastrbhc.experiments._methods import METHODS, TITLES, Dataset
from fastrbhc.experiments._mixtures import MIXTURES
from fastrbhc.families import Multinomial, Poisson, SphericalGaussian

# These modules are hidden by functions of the same name.
table2, table3, thresholds, mnist = (
    importlib.import_module(f"fastrbhc.experiments.{name}")
    for name in ("table2", "table3", "thresholds", "mnist")
)
NAMES = [
    "poisson_1k",
    "poisson_2k",
    "multinomial_1k",
    "multinomial_2k",
    "gaussian_1k",
    "gaussian_2k",
]
every_mixture = pytest.mark.parametrize("name", NAMES)


def blobs(rng, n=30, family=None):
    """Three well separated clusters."""
    labels = np.repeat([0, 1, 2], n)
    X = np.array([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0]])[labels] + rng.normal(size=(3 * n, 2))
    return Dataset(X, labels, SphericalGaussian() if family is None else family)


def counts(rng, n=30):
    labels = np.repeat([0, 1, 2], n)
    X = rng.poisson(np.array([[5, 60], [60, 5], [200, 200]])[labels]).astype(np.float64)
    return Dataset(X, labels, Poisson())


def first_half_or_truth(wrong):
    """A method that needs no compilation; its labels are correct or wrong as asked."""

    def cluster(data, seed, n_threads):
        return np.arange(len(data.X)) // (len(data.X) // 2) if wrong else data.labels

    return cluster


# The mixtures


@every_mixture
@pytest.mark.fast
def test_mixtures_are_as_the_paper_says(name):
    mixture = MIXTURES[name]
    X, labels = mixture.draw(np.random.default_rng(0))
    n, k = (1_000, 6) if name.endswith("1k") else (2_000, 12)
    columns = {"poisson": (1, 1), "multinomial": (20, 40), "gaussian": (3, 6)}
    family = name.split("_")[0]
    assert X.shape == (n, columns[family][name.endswith("2k")])
    assert mixture.family.name == family
    assert np.unique(labels).tolist() == list(range(k))
    if family == "multinomial":
        assert (X.sum(axis=1) == 10).all()
    _, equal = mixture.draw(np.random.default_rng(0), equal=True)
    assert np.ptp(np.bincount(equal)) <= 1


@pytest.mark.fast
def test_parameters_of_mixtures_have_the_moments_of_their_distributions():
    rng, k = np.random.default_rng(1), 20_000
    labels = np.arange(k)  # one row per cluster
    rates = MIXTURES["poisson_1k"].rows(rng, labels, k)
    assert rates.mean() == pytest.approx(40.0, rel=0.02)
    assert rates.var() == pytest.approx(2.0 / 0.05**2 + 40.0, rel=0.05)  # of Γ and Poisson
    for name, d in (("multinomial_1k", 20), ("multinomial_2k", 40)):
        X = MIXTURES[name].rows(rng, labels, k)
        share, total = 1.0 / d, 0.5 * d
        np.testing.assert_allclose(X.mean(axis=0), 10 * share, rtol=0.06)
        # Dirichlet-multinomial: m q(1 − q)(m + A)/(1 + A).
        variance = 10 * share * (1 - share) * (10 + total) / (1 + total)
        np.testing.assert_allclose(X.var(axis=0), variance, rtol=0.15)
    for name, d, degrees, strength in (("gaussian_1k", 3, 6, 0.08), ("gaussian_2k", 6, 9, 0.2)):
        X = MIXTURES[name].rows(rng, labels, k)
        # The covariance of a row is E[Λ⁻¹](1 + 1/r), E[Λ⁻¹] = E[Ψ⁻¹]/(ν − d − 1), ν − d − 1 = 2.
        A = rng.standard_normal((k, d, d))
        inverse = np.linalg.inv(A @ A.transpose(0, 2, 1) + d * np.eye(d)).mean(axis=0)
        expected = np.trace(inverse) * (1 + 1 / strength) / (degrees - d - 1)
        assert X.var(axis=0).sum() == pytest.approx(expected, rel=0.1)


@pytest.mark.fast
def test_sizes_vary_as_those_of_the_first_experiment():
    rng = np.random.default_rng(2)
    sizes = [np.bincount(MIXTURES["poisson_1k"].draw(rng)[1], minlength=6) for _ in range(300)]
    shares = rng.integers(20, 101, (20_000, 6)).astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    spread = np.sqrt(shares.var() + (shares * (1 - shares)).mean() / 1_000)
    assert np.std(np.array(sizes) / 1_000) == pytest.approx(spread, rel=0.06)


# The methods


@pytest.mark.parametrize("name", ["single", "complete", "ward"])
def test_classical_methods_are_those_of_scikit_learn(name):
    X = np.random.default_rng(3).normal(size=(80, 3))
    data = Dataset(X, np.arange(80) % 5, SphericalGaussian())
    reference = AgglomerativeClustering(5, linkage=name).fit_predict(X)
    assert adjusted_rand_score(reference, METHODS[name](data, 0, 1)) == 1.0


def test_ties_do_not_change_the_number_of_clusters():
    X = np.repeat(np.arange(20.0), 3)[:, None]
    data = Dataset(X, np.arange(60) % 7, Poisson())
    assert len(np.unique(METHODS["single"](data, 0, 1))) == 7


@pytest.mark.parametrize(
    ("name", "algorithm"), [("rbhc_greedy", "greedy"), ("rbhc_nnca", "nn_chain")]
)
def test_relaxed_methods_guess_the_true_number(name, algorithm):
    data = counts(np.random.default_rng(4))
    options = {"threshold": "kmeans", "n_clusters_guess": 3, "random_state": 5}
    model = fastrbhc.RBHC("poisson", algorithm=algorithm, **options)
    np.testing.assert_array_equal(METHODS[name](data, 5, 1), model.fit_predict(data.X))
    assert adjusted_rand_score(data.labels, METHODS[name](data, 5, 1)) == 1.0


def test_hyperparameters_of_a_sample_go_with_the_moments_of_all_rows(monkeypatch):
    fitted = []

    class Recorded(fastrbhc.BHC):
        def fit(self, X, y=None):
            fitted.append((len(X), self.hyperparameters))
            return super().fit(X)

    monkeypatch.setattr(_methods, "BHC", Recorded)
    monkeypatch.setattr(_methods, "SEARCH_ROWS", 30)
    data = counts(np.random.default_rng(6), n=20)
    labels = METHODS["bhc"](data, 0, 1)
    assert adjusted_rand_score(data.labels, labels) == 1.0
    (searched, how), (all_rows, found) = fitted
    assert (searched, how, all_rows) == (30, "evidence", 60)
    assert set(found) == {"shape", "rate"}


# Bookkeeping


@pytest.mark.fast
def test_means_and_deviations_of_repeats():
    drawn = []

    def draw(rng):
        drawn.append(rng.integers(1_000))
        return blobs(rng, n=4 + 2 * len(drawn))

    methods = {"right": first_half_or_truth(False), "wrong": first_half_or_truth(True)}
    source = Source(draw, {"right": (0.9, None)})
    rows = compare({"blobs": source}, methods, 3, 0, 99, 1, False)
    expected = []
    for n in (6, 8, 10):
        data = blobs(np.random.default_rng(0), n=n)
        expected.append(adjusted_rand_score(data.labels, methods["wrong"](data, 0, 1)))
    cell = rows["wrong"]["blobs"]
    assert cell["mean"] == pytest.approx(np.mean(expected))
    assert cell["std"] == pytest.approx(np.std(expected, ddof=1))
    assert cell["clusters"] == {"mean": 2.0, "std": 0.0}
    assert rows["right"]["blobs"]["mean"] == 1.0
    assert rows["right"]["blobs"]["paper"] == {"mean": 0.9, "std": None}
    assert len(set(drawn)) == 3
    assert table_of(rows, {"right": "right", "wrong": "wrong"}, {"blobs": "Blobs"})[1] == (
        "right  1.000 (0.000) [0.900]"
    )


@pytest.mark.fast
def test_a_longer_run_begins_with_a_shorter_one_and_methods_share_data():
    seen = []

    def spy(data, seed, n_threads):
        seen.append((data.X.sum(), seed))
        return data.labels

    source = Source(blobs)
    compare({"a": source, "b": source}, {"first": spy, "second": spy}, 2, 7, 99, 1, False)
    short, seen = seen, []
    compare({"a": source}, {"first": spy}, 3, 7, 99, 1, False)
    assert short[0] == short[1]  # both methods
    assert [short[0], short[2]] == seen[:2]
    assert len({*short[::2]}) == 4  # two repeats of two sources
    seen = []
    compare({"a": source}, {"first": spy}, 1, 8, 99, 1, False)
    assert seen[0] != short[0]


# Table 2


def small(monkeypatch, methods=None):
    """Mixtures of 60 rows each, clustered by a method that needs no compilation."""
    mixtures = {name: mixture._replace(n_rows=60) for name, mixture in MIXTURES.items()}
    monkeypatch.setattr(table2, "MIXTURES", mixtures)
    monkeypatch.setattr(table2, "METHODS", methods or dict.fromkeys(METHODS, METHODS["single"]))


def test_rbhc_agrees_with_the_paper(monkeypatch):
    """The data of the table with ten repeats, and one of its methods."""
    monkeypatch.setattr(table2, "METHODS", {"rbhc_greedy": METHODS["rbhc_greedy"]})
    row = table2.table2()["rows"]["rbhc_greedy"]
    assert list(row) == NAMES
    for cell in row.values():
        assert abs(cell["mean"] - cell["paper"]["mean"]) < 0.06


def test_what_the_second_table_holds(monkeypatch):
    small(monkeypatch)
    result = table2.table2(repeats=2, seed=3)
    assert list(result["rows"]) == list(TITLES)
    for method, row in result["rows"].items():
        assert list(row) == NAMES
        for cell, paper in zip(row.values(), table2.PAPER[method], strict=True):
            assert {"mean", "std", "clusters", "paper"} == set(cell)
            assert cell["paper"] == {"mean": paper[0], "std": paper[1]}
    assert json.loads(json.dumps(result)) == result
    assert table2.table2(repeats=2, seed=4)["rows"] != result["rows"]
    assert table2.table2(repeats=2, seed=3, equal_sizes=True)["rows"] != result["rows"]


@pytest.mark.fast
def test_some_of_the_methods(monkeypatch):
    """Each method gives the same result as among all of them; the table has the paper's order."""
    small(monkeypatch, {name: METHODS[name] for name in ("single", "complete", "ward")})
    rows = table2.table2(repeats=2)["rows"]
    some = table2.table2(repeats=2, methods=["ward", "single"])
    assert list(some["rows"]) == ["single", "ward"]
    assert all(some["rows"][name] == rows[name] for name in some["rows"])
    assert "complete linkage" not in table2.report(some)
    with pytest.raises(ValueError, match="methods has to be one of 'single', 'complete', 'ward'"):
        table2.table2(methods=["wards"])
    third = table3.table3(repeats=1, methods=["ward"])
    assert list(third["rows"]) == ["ward"]
    assert "MNIST" in table3.report(third)


def test_the_number_of_threads_leaves_no_trace(monkeypatch):
    small(monkeypatch, {name: METHODS[name] for name in ("ward", "rbhc_greedy")})
    monkeypatch.setattr(table2, "MIXTURES", {"poisson_1k": MIXTURES["poisson_1k"]})
    assert table2.table2(repeats=2, n_jobs=1) == table2.table2(repeats=2, n_jobs=2)


def test_the_second_table_as_a_command(tmp_path, capsys, monkeypatch):
    small(monkeypatch)
    path = tmp_path / "table.json"
    arguments = ["reproduce", "table2", "--repeats", "2", "--seed", "5", "--json", str(path)]
    assert cli.main([*arguments, "--progress"]) == 0
    out, err = capsys.readouterr()
    written = json.loads(path.read_text())
    assert written == table2.table2(repeats=2, seed=5)
    cell = written["rows"]["bhc"]["multinomial_1k"]
    assert f"{cell['mean']:.3f} ({cell['std']:.3f}) [0.907 (0.069)]" in out
    assert "2 data sets of each kind, seed 5" in out
    assert "gaussian_2k: 100%" in err
    assert cli.main([*arguments[:-2], "--equal-sizes"]) == 0
    assert "clusters of equal size" in capsys.readouterr().out


@pytest.mark.parametrize("module", [table2, table3, thresholds, mnist])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"repeats": 0}, ValueError, "repeats has to be at least 1"),
        ({"repeats": 1.5}, TypeError, "repeats has to be a whole number"),
        ({"seed": -1}, ValueError, "seed has to be at least 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs has to be positive"),
    ],
)
@pytest.mark.fast
def test_mistakes(module, options, error, message):
    names = {thresholds: "compare_thresholds", mnist: "mnist_settings"}
    function = getattr(module, names.get(module, module.__name__.rsplit(".", 1)[1]))
    with pytest.raises(error, match=message):
        function(**options)


# Files with classes, and Table 3


def pictures(path, sparse=True, **extra):
    """Counts of six visual words in pictures of four classes, 30 each."""
    rng = np.random.default_rng(8)
    y = np.repeat(np.arange(4, dtype=np.uint8), 30)
    X = rng.multinomial(80, rng.dirichlet(np.full(6, 0.3), 4)[y]).astype(np.uint16)
    if sparse:
        csr = scipy.sparse.csr_matrix(X)
        arrays = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": X.shape}
    else:
        arrays = {"X": X}
    np.savez(path, y=y, **arrays, **extra)
    return X, y


CLASSES = np.array(["Motorbikes", "butterfly", "Faces_easy", "airplanes"])


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.fast
def test_pictures_of_the_three_classes(tmp_path, sparse):
    path = tmp_path / "pictures.npz"
    X, y = pictures(path, sparse, classes=CLASSES)
    data = _labelled.caltech(Multinomial(), path)(None)
    np.testing.assert_array_equal(data.X, X[y != 1])
    np.testing.assert_array_equal(data.labels, y[y != 1])
    shares = _labelled.caltech(Multinomial(), path, proportions=True)(None)
    np.testing.assert_allclose(shares.X.sum(axis=1), 1.0)


@pytest.mark.fast
def test_files_that_do_not_fit(tmp_path):
    path = tmp_path / "pictures.npz"
    pictures(path)
    with pytest.raises(ValueError, match="does not say which rows are airplanes"):
        _labelled.caltech(Multinomial(), path)
    with pytest.raises(ValueError, match="at least 3,000 digits 0, 3, 7 and 9 in 49 columns"):
        _labelled.mnist(SphericalGaussian(), path)
    np.savez(path, rows=np.eye(3))
    with pytest.raises(ValueError, match="holds rows; expected X and y"):
        _labelled.read_labelled(path)
    np.savez(path, X=np.eye(3), y=np.arange(2))
    with pytest.raises(ValueError, match="not one class per row"):
        _labelled.read_labelled(path)


@pytest.mark.fast
def test_samples_of_digits():
    draw = _labelled.mnist(SphericalGaussian())
    first, second = (draw(np.random.default_rng(seed)) for seed in (0, 1))
    assert first.X.shape == (3_000, 49)
    assert first.X.max() <= 1.0
    assert np.unique(first.labels).tolist() == [0, 3, 7, 9]
    assert not np.array_equal(first.X, second.X)


@pytest.mark.fast
def test_samples_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "words.npz"
    X, y = pictures(path)
    whole = _labelled.labelled_file(Multinomial(), path)(np.random.default_rng(0))
    np.testing.assert_array_equal(whole.X, X)
    monkeypatch.setattr(_labelled, "_ROWS", 50)
    part = _labelled.labelled_file(Multinomial(), path)(np.random.default_rng(0))
    assert part.X.shape == (50, 6)
    np.savez(path, X=X * (np.arange(120) != 5)[:, None], y=y)  # a picture without words
    monkeypatch.setattr(_labelled, "_ROWS", 500)
    assert len(_labelled.labelled_file(Multinomial(), path)(None).X) == 119
    assert len(_labelled.labelled_file(Poisson(), path)(None).X) == 120


def test_the_third_table_as_a_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(table3, "METHODS", dict.fromkeys(METHODS, METHODS["single"]))
    monkeypatch.setattr(_labelled, "_MNIST_ROWS", 200)
    source, path = tmp_path / "pictures.npz", tmp_path / "table.json"
    pictures(source, classes=CLASSES)
    arguments = ["reproduce", "table3", "--repeats", "2", "--json", str(path)]
    assert cli.main(arguments) == 0
    assert "name a file of visual-word counts: --caltech PATH" in capsys.readouterr().out
    assert list(json.loads(path.read_text())["rows"]["ward"]) == ["mnist"]
    assert cli.main([*arguments, "--caltech", str(source)]) == 0
    out = capsys.readouterr().out
    rows = json.loads(path.read_text())["rows"]
    assert list(rows) == list(TITLES)
    assert list(rows["ward"]) == ["mnist", "caltech101", "caltech101_rows"]
    assert list(rows["bhc"]) == ["mnist", "caltech101"]
    assert rows["ward"]["caltech101_rows"]["paper"] == {"mean": 0.465, "std": None}
    assert out.splitlines()[8].endswith("–")
    assert rows["bhc"]["caltech101"]["clusters"]["mean"] == 3.0
    assert "[0.637]" in out
    assert cli.main([*arguments, "--caltech", str(tmp_path / "none.npz")]) == 2
    assert "No such file" in capsys.readouterr().err


# Choices of λ


def test_choices_cut_one_tree():
    data = counts(np.random.default_rng(9))
    tree = data.tree(1)
    assert data.tree(2) is tree
    cuts = {name: choice(data, 0, 1) for name, choice in thresholds.CHOICES.items()}
    for name, guess in (("true", 3), ("half", 1), ("twice", 6), ("8", 8)):
        threshold = fastrbhc.kmeans_threshold(data.X, "poisson", guess, random_state=0)
        np.testing.assert_array_equal(cuts[f"kmeans_{name}"], tree.cut(threshold=threshold))
    gap, evidence = (
        fastrbhc.RBHC("poisson", threshold=choice).fit(data.X) for choice in ("gap", "evidence")
    )
    assert adjusted_rand_score(cuts["gap"], gap.labels_) == 1.0
    assert adjusted_rand_score(cuts["evidence"], evidence.labels_) == 1.0
    assert adjusted_rand_score(cuts["true_number"], data.labels) == 1.0
    np.testing.assert_array_equal(cuts["best_cut"], cuts["true_number"])


def test_the_comparison_as_a_command(tmp_path, capsys, monkeypatch):
    mixtures = {name: MIXTURES[name]._replace(n_rows=60) for name in NAMES[:1]}
    monkeypatch.setattr(thresholds, "MIXTURES", mixtures)
    monkeypatch.setattr(thresholds, "CHOICES", dict.fromkeys(thresholds.CHOICES, METHODS["ward"]))
    monkeypatch.setattr(_labelled, "_MNIST_ROWS", 100)
    source, path = tmp_path / "words.npz", tmp_path / "choices.json"
    pictures(source, classes=CLASSES)
    arguments = ["reproduce", "thresholds", "--repeats", "1", "--caltech", str(source)]
    arguments += ["--also", f"words=poisson={source}", "--json", str(path)]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    written = json.loads(path.read_text())
    assert list(written["rows"]) == list(thresholds.TITLES)
    assert written["n_clusters"] == {
        "poisson_1k": 6,
        "mnist": 4,
        "mnist_ward": 4,
        "digits_poisson": 10,
        "digits_multinomial": 10,
        "caltech101": 3,
        "caltech101_rows": 3,
        "words": 4,
    }
    line = next(line for line in out.splitlines() if line.startswith("words"))
    assert f"{written['rows']['gap']['words']['mean']:.3f} @ 4.0" in line
    assert cli.main(["reproduce", "thresholds", "--also", "words=poisson"]) == 2
    assert "--also takes NAME=FAMILY=PATH, got 'words=poisson'" in capsys.readouterr().err


def test_settings_of_mnist_share_their_samples(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_labelled, "_MNIST_ROWS", 60)
    seen = {}

    def spy(data, seed, n_threads):
        seen.setdefault(data.family.smoothing, []).append(data.X.sum() / data.X.max())
        return data.labels

    monkeypatch.setattr(mnist, "_cut_by_guess", lambda guess: spy)
    monkeypatch.setattr(mnist, "_cut_at_true_number", spy)
    path = tmp_path / "mnist.json"
    arguments = ["reproduce", "mnist", "--repeats", "2", "--json", str(path)]
    assert cli.main(arguments) == 0
    assert "guess 3" in capsys.readouterr().out
    samples = [sorted(set(np.round(values, 6))) for values in seen.values()]
    assert all(len(sample) == 2 and sample == samples[0] for sample in samples)
    rows = json.loads(path.read_text())["rows"]
    # Scaling all grey values changes nothing for Ward's method.
    assert rows["ward"]["0 to 1, 0.01"]["mean"] == pytest.approx(
        rows["ward"]["0 to 255, 0.01"]["mean"]
    )
