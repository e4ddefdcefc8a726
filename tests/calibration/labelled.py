"""Compare ways to choose the number of clusters, on labelled data.

    PYTHONPATH=tests python -m calibration.labelled --folder docs

Prints the mean adjusted Rand index of each set and method. Writes a table with a row for each kind
of data, and a picture, to a folder. Kinds whose package or file is not there are left out, and a
line says so. Other methods take most of the time. With ``--sets`` or ``--without-peers``, what is
not measured stays as it is in the table.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

import fastrbhc
from calibration.labelled_files import MissingDataError
from calibration.labelled_sets import ALL
from calibration.peers import labels_of_peers

# The set in the picture: the last one.
SHOWN = ALL[-1].set
NAME = "number-of-clusters"


def measure(kind, with_peers=True):
    """A row of the table: what is found in one kind of data, and how well it agrees."""
    X, classes = kind.rows()
    n_classes = len(np.unique(classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on rows that suit their family badly
        model = fastrbhc.RBHC(kind.family).fit(X)
    labels = {
        "predictive": model.labels_,
        "told_k": model.dendrogram_.cut(n_clusters=n_classes),
    }
    if with_peers:
        labels |= labels_of_peers(X, kind.family, n_classes)
    row = {
        "set": kind.heading,
        "data": kind.name,
        "family": kind.family,
        "rows": X.shape[0],
        "columns": X.shape[1],
        "classes": n_classes,
        "found": model.choice_.n_clusters,
    }
    # Zero may be found as −0.0.
    indices = {
        method: round(adjusted_rand_score(classes, found), 3) + 0.0
        for method, found in labels.items()
    }
    return row | indices


def measure_all(kinds, with_peers):
    """The rows of all kinds that can be read; the others are named."""
    rows = []
    for kind in kinds:
        try:
            row = measure(kind, with_peers)
        except MissingDataError as reason:
            print(f"{kind.heading}, {kind.name}: left out, {reason}", flush=True)
            continue
        print(
            f"{kind.heading}, {kind.name}: {row['found']} of {row['classes']} clusters, "
            f"index {row['predictive']:.3f}, told the number {row['told_k']:.3f}",
            flush=True,
        )
        rows.append(row)
    return rows


def methods_of(rows):
    """The names of the columns with indices."""
    names = list(rows[0])
    return names[names.index("predictive") :]


def show_means(rows):
    """The mean of each method in each set, and in all."""
    methods = methods_of(rows)
    print(f"{'set':26} kinds ", *(f"{method:>20}" for method in methods))
    for heading in [*dict.fromkeys(row["set"] for row in rows), None]:
        own = [row for row in rows if heading in (None, row["set"])]
        means = [np.mean([row[method] for row in own]) for method in methods]
        print(f"{heading or 'all':26} {len(own):5} ", *(f"{mean:20.3f}" for mean in means))
        print(f"{'':26} {means[0] / means[1]:.3f} of the same trees, told the number")


def with_known(rows, path):
    """Rows for all kinds, with what a table already has where nothing new is known."""
    known = {}
    if path.exists():
        with open(path, newline="") as file:
            known = {(row["set"], row["data"]): _numbers(row) for row in csv.DictReader(file)}
    for row in rows:
        key = row["set"], row["data"]
        known[key] = known.get(key, {}) | row
    keys = [(kind.heading, kind.name) for kind in ALL]
    return [known[key] for key in keys if key in known]


def _numbers(row):
    names = list(row)
    first = names.index("predictive")
    return row | {name: float(row[name]) for name in names[first:]}


def write_table(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def draw(rows, path):
    """The index of a chosen number against that of the true one, for two methods."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = {"predictive": "fastrbhc, number chosen", "ward_gap": "Ward and the largest gap"}
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4.4), layout="constrained", sharex=True, sharey=True
    )
    told = [row["told_k"] for row in rows]
    for ax, (method, title) in zip(axes, titles.items(), strict=True):
        chosen = [row[method] for row in rows]
        ax.axline((0, 0), slope=1, color="0.7", lw=1, zorder=0)
        ax.scatter(told, chosen, s=26, color="#2a6f97", alpha=0.8, lw=0)
        ax.set_title(f"{title}: mean {np.mean(chosen):.2f}", loc="left", fontsize=10)
        ax.set_xlabel("adjusted Rand index of our tree, told the number")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("adjusted Rand index")
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the table and the picture are written")
    parser.add_argument("--sets", nargs="*", help="only sets whose name begins so")
    parser.add_argument("--without-peers", action="store_true", help="our choice only")
    options = parser.parse_args()
    begins = tuple(options.sets or [""])
    chosen = [kind for kind in ALL if kind.heading.startswith(begins)]
    rows = measure_all(chosen, not options.without_peers)
    if options.folder:
        path = options.folder / NAME
        rows = with_known(rows, path.with_suffix(".csv"))
        write_table(rows, path.with_suffix(".csv"))
        draw([row for row in rows if row["set"] == SHOWN], path.with_suffix(".png"))
    if rows:
        show_means(rows)


if __name__ == "__main__":
    main()
