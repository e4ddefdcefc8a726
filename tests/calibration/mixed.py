"""Compare products of families with other ways to cluster mixed tables, on drawn clusters.

    PYTHONPATH=tests python -m calibration.mixed

Prints the mean adjusted Rand index of each method over the seeds, as a table for the guide. All
methods are told the number of clusters. Without the package kmodes, k-prototypes is left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import fastrbhc

N_CLUSTERS = 4
SHARES = (0.4, 0.3, 0.2, 0.1)
SIZES = (200, 600)
SEPARATIONS = (1.0, 2.0)


class Drawn(NamedTuple):
    """A table, the kinds of its columns and the cluster of each row."""

    table: pd.DataFrame
    kinds: dict[str, str]  # "measurement", "count", "rating" or "category"
    classes: Any

    def columns(self, *kinds):
        """The columns of some kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]


def of_the_families(n, separation, rng):
    """Normal measurements in two units, Poisson counts and categories."""
    z, far = _classes(n, rng), _locations(separation, rng)
    table = {
        "height": rng.normal(far()[z], 1.0),
        "income": 1000.0 * rng.normal(far()[z], 1.0),
        "visits": rng.poisson(np.exp(1.5 + 0.35 * far())[z]),
        "orders": rng.poisson(np.exp(1.5 + 0.35 * far())[z]),
        "colour": _levels(z, separation, rng),
        "place": _levels(z, separation, rng),
    }
    kinds = ["measurement"] * 2 + ["count"] * 2 + ["category"] * 2
    return _drawn(table, kinds, z)


def of_other_kinds(n, separation, rng):
    """Skewed measurements, counts that vary more, ratings and categories."""
    z, far = _classes(n, rng), _locations(separation, rng)
    spread = rng.gamma(2.0, 0.5, (2, n))
    table = {
        "price": rng.gamma(2.0, np.exp(0.6 * far())[z]),
        "time": rng.weibull(1.2, n) * np.exp(0.6 * far())[z],
        "visits": rng.poisson(spread[0] * np.exp(1.5 + 0.6 * far())[z]),
        "orders": rng.poisson(spread[1] * np.exp(1.5 + 0.6 * far())[z]),
        "stars": np.clip(np.round(3.0 + rng.normal(far()[z], 1.0)), 1, 5).astype(int),
        "answer": np.clip(np.round(3.0 + rng.normal(far()[z], 1.0)), 1, 5).astype(int),
        "colour": _levels(z, separation, rng),
        "place": _levels(z, separation, rng),
    }
    kinds = ["measurement"] * 2 + ["count"] * 2 + ["rating"] * 2 + ["category"] * 2
    return _drawn(table, kinds, z)


def with_noise(n, separation, rng):
    """Those of the families, and as many columns that have nothing to do with the clusters."""
    drawn = of_the_families(n, separation, rng)
    noise = drawn.table.apply(lambda column: rng.permutation(column.to_numpy()))
    noise.columns = [f"other_{name}" for name in noise.columns]
    kinds = drawn.kinds | {f"other_{name}": kind for name, kind in drawn.kinds.items()}
    return Drawn(pd.concat([drawn.table, noise], axis=1), kinds, drawn.classes)


DRAWS: dict[str, Callable[..., Drawn]] = {
    "normal, Poisson, categories": of_the_families,
    "skewed, overdispersed, ratings": of_other_kinds,
    "half of the columns noise": with_noise,
}


def by_suggested_product(drawn):
    """What family="auto" stands for; it is told no kinds of columns."""
    return fastrbhc.linkage(drawn.table, "auto").cut(n_clusters=N_CLUSTERS)


def by_product(drawn):
    """Gaussian, Poisson, and categories, to which ratings belong."""
    return _tree(drawn, fastrbhc.families.Gaussian("auto"), "poisson")


def by_diagonal_product(drawn):
    """The same without covariances."""
    return _tree(drawn, fastrbhc.families.DiagonalGaussian("auto"), "poisson")


def by_product_with_ward(drawn):
    """The same with Ward's method for measurements, which are standardised."""
    names = drawn.columns("measurement")
    scaled = StandardScaler().fit_transform(drawn.table[names])
    table = drawn.table.assign(**dict(zip(names, scaled.T, strict=True)))
    return _tree(drawn._replace(table=table), "ward", "poisson")


def by_suited_product(drawn):
    """The same with what skewed and overdispersed columns call for."""
    return _tree(drawn, "gamma", fastrbhc.families.NegativeBinomial(dispersion=0.5))


def by_ward(drawn):
    """Ward's method on standardised numbers, and zeros and ones for levels."""
    numbers = StandardScaler().fit_transform(drawn.table[_numeric(drawn)])
    levels = pd.get_dummies(drawn.table[drawn.columns("category")], dtype=float)
    X = np.column_stack([numbers, levels])
    return fastrbhc.linkage(X, "ward").cut(n_clusters=N_CLUSTERS)


def by_gower(drawn):
    """Average linkage of Gower's distance."""
    tree = linkage(squareform(gower(drawn), checks=False), "average")
    return cut_tree(tree, N_CLUSTERS)[:, 0]


def by_prototypes(drawn):
    """k-prototypes on standardised numbers, the best of five starts."""
    from kmodes.kprototypes import KPrototypes

    numbers, categories = _numeric(drawn), drawn.columns("category")
    values = np.empty(drawn.table.shape, object)
    values[:, : len(numbers)] = StandardScaler().fit_transform(drawn.table[numbers])
    values[:, len(numbers) :] = drawn.table[categories]
    places = list(range(len(numbers), values.shape[1]))
    model = KPrototypes(N_CLUSTERS, n_init=5, random_state=0)
    return model.fit_predict(values, categorical=places)


METHODS: dict[str, Callable[[Drawn], Any]] = {
    "suggested product": by_suggested_product,
    "product": by_product,
    "diagonal product": by_diagonal_product,
    "product with Ward": by_product_with_ward,
    "suited product": by_suited_product,
    "Ward, standardised": by_ward,
    "Gower, average": by_gower,
    "k-prototypes": by_prototypes,
}


def gower(drawn):
    """Gower's distance: the mean over columns of differences in units of the range, or 0 and 1."""
    total = np.zeros((len(drawn.table), len(drawn.table)))
    numeric = _numeric(drawn)
    for name, column in drawn.table.items():
        values = column.to_numpy()
        if name in numeric:
            total += np.abs(values[:, None] - values) / max(np.ptp(values), 1e-300)
        else:
            total += values[:, None] != values
    return total / drawn.table.shape[1]


def measure(methods, sizes, seeds):
    """Rows of the table: kind of draw, rows, separation, and the indices of each method."""
    for place, (name, draw) in enumerate(DRAWS.items()):
        # Where columns are as the families of the first product say, there is no other.
        apt = [m for m in methods if draw is of_other_kinds or m != "suited product"]
        for n in sizes:
            for separation in SEPARATIONS:
                indices: dict[str, list[float]] = {method: [] for method in apt}
                for seed in seeds:
                    rng = np.random.default_rng([place, n, int(10 * separation), seed])
                    drawn = draw(n, separation, rng)
                    for method in apt:
                        labels = METHODS[method](drawn)
                        indices[method].append(adjusted_rand_score(drawn.classes, labels))
                yield name, n, separation, indices


def main() -> None:
    """Print the table, each row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows")
    parser.add_argument("--seeds", type=int, default=20, help="data sets of each kind")
    parser.add_argument("--first-seed", type=int, default=0, help="of seeds one after another")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    arguments = parser.parse_args()
    methods = list(arguments.methods)
    try:
        import kmodes  # noqa: F401
    except ImportError:
        print("k-prototypes: left out, there is no package kmodes\n")
        methods = [method for method in methods if method != "k-prototypes"]
    print(f"| columns | rows | separation | {' | '.join(methods)} |")
    print("|---" * (len(methods) + 3) + "|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on rows that suit their family badly
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        for name, n, separation, indices in measure(methods, arguments.sizes, seeds):
            cells = [_mean_with_error(indices.get(method)) for method in methods]
            print(f"| {name} | {n} | {separation:g} | {' | '.join(cells)} |", flush=True)


def _mean_with_error(values):
    if values is None:
        return ""
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.2f}"


def _tree(drawn, measurements, counts):
    family = {
        measurements: drawn.columns("measurement"),
        counts: drawn.columns("count"),
        "categorical": drawn.columns("rating", "category"),
    }
    return fastrbhc.linkage(drawn.table, family).cut(n_clusters=N_CLUSTERS)


def _numeric(drawn):
    return drawn.columns("measurement", "count", "rating")


def _classes(n, rng):
    return rng.choice(N_CLUSTERS, n, p=SHARES)


def _locations(separation, rng):
    """A function that draws a location for each cluster."""
    return lambda: separation * rng.normal(size=N_CLUSTERS)


def _levels(z, separation, rng):
    """One of four levels for every row, with shares that depend on the cluster."""
    shares = np.exp(0.7 * separation * rng.normal(size=(N_CLUSTERS, 4)))
    below = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[z]
    drawn = (rng.random(z.size)[:, None] > below[:, :-1]).sum(axis=1)
    return np.array(["a", "b", "c", "d"])[drawn]


def _drawn(table, kinds, z):
    return Drawn(pd.DataFrame(table), dict(zip(table, kinds, strict=True)), z)


if __name__ == "__main__":
    main()
