"""The demonstration: clusters of handwritten digits, and a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.metrics import adjusted_rand_score

from fastrbhc._files import save_picture
from fastrbhc.datasets import load_digit_counts
from fastrbhc.estimators import RBHC
from fastrbhc.plotting._frame import label_axis, with_scale
from fastrbhc.plotting._style import INK, hue
from fastrbhc.thresholds import kmeans_threshold

_GUESS = 10
_OTHER_SEEDS = (1, 2, 3, 4)


class Findings(NamedTuple):
    """The results of the demonstration."""

    X: NDArray[np.uint8]
    y: NDArray[np.uint8]
    model: RBHC
    seconds: float
    score: float
    other_counts: list[int]
    score_at_ten: float
    ward_score: float
    ward_seconds: float


def run(output: str | Path = "fastrbhc-demo.png") -> None:
    """Print the clusters of the digits, and draw them if matplotlib is installed.

    Parameters
    ----------
    output : str or Path
        Where to write the picture.
    """
    print("Clustering 1,500 handwritten digits; the first run also compiles, for half a minute.")
    findings = find()
    print(report(findings))
    try:
        draw(findings, output)
    except ImportError:
        print("\npip install fastrbhc[plot] would draw a picture.")
    else:
        print(f"\nwrote {output}")


def find() -> Findings:
    """Cluster the digits: Poisson with the heuristic's λ, then Ward's method at the true number.

    Ward's method is SciPy's, because ours would have to be compiled first.
    """
    X, y = load_digit_counts()
    model = RBHC("poisson", threshold="kmeans", n_clusters_guess=_GUESS, random_state=0)
    model.set_params(compute_full_tree=True).fit(X[:50])  # compile first
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    ward_labels = fcluster(ward(X.astype(np.float64)), 10, "maxclust")
    ward_seconds = time.perf_counter() - start
    tree = model.dendrogram_
    others = [kmeans_threshold(X, "poisson", _GUESS, random_state=seed) for seed in _OTHER_SEEDS]
    return Findings(
        X,
        y,
        model,
        seconds,
        float(adjusted_rand_score(y, model.labels_)),
        [int(tree.cut(threshold=threshold).max()) + 1 for threshold in others],
        float(adjusted_rand_score(y, tree.cut(n_clusters=10))),
        float(adjusted_rand_score(y, ward_labels)),
        ward_seconds,
    )


def report(findings: Findings) -> str:
    """The findings next to the truth, as lines of text."""
    model, y = findings.model, findings.y
    seeds, counts_of_seeds = (
        ", ".join(map(str, numbers)) for numbers in (_OTHER_SEEDS, findings.other_counts)
    )
    lines = [
        "",
        f"data      {len(y):,} digits of {findings.X.shape[1]} counts, 0 to 16; "
        "the clustering never sees which digit is which",
        f"family    poisson, lambda = {model.threshold_:.1f} by the k-means heuristic "
        f"(guess {_GUESS}, seed 0)",
        f"found     {model.n_clusters_} clusters; the truth is 10 digits "
        f"(seeds {seeds}: {counts_of_seeds} clusters)",
        f"agreement adjusted Rand index {findings.score:.3f} (1 is perfect, 0 is chance)",
        f"time      {findings.seconds:.2f} s for the whole tree",
        "",
        "cluster  rows  digits in it",
    ]
    for cluster in range(model.n_clusters_):
        counts = np.bincount(y[model.labels_ == cluster], minlength=10)
        order = [digit for digit in np.argsort(-counts, kind="stable") if counts[digit]]
        inside = ", ".join(f"{counts[digit]} x '{digit}'" for digit in order[:4])
        rest = int(counts[order[4:]].sum())
        more = f", {rest} more" if rest else ""
        lines.append(f"{cluster:7d}  {counts.sum():4d}  {inside}{more}")
    return "\n".join(
        [
            *lines,
            "",
            "when told that there are 10 clusters:",
            f"  poisson  adjusted Rand index {findings.score_at_ten:.3f}, a cut of the same tree",
            f"  ward     adjusted Rand index {findings.ward_score:.3f}, by SciPy in "
            f"{findings.ward_seconds:.2f} s",
        ]
    )


def draw(findings: Findings, output: str | Path) -> None:
    """Draw the tree with λ, and the mean image of every cluster.

    Parameters
    ----------
    findings : Findings
        From `find`.
    output : str or Path
        Where to write the picture. The suffix decides the format; without one it is PNG.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure: Any = Figure(figsize=(11.0, 5.4), dpi=110, facecolor="white", layout=engine)
    left, right = figure.subfigures(1, 2, width_ratios=(1.12, 1.0))
    _draw_tree(left, findings.model)
    _draw_means(right, findings)
    save_picture(figure, output)


def _draw_tree(figure: Any, model: RBHC) -> None:
    axes = figure.add_subplot()
    model.dendrogram_.plot(axes, threshold=model.threshold_, labels=model.labels_)
    label_axis(axes, "y", *with_scale("sqrt", "dissimilarity d of a merge"))


def _draw_means(figure: Any, findings: Findings) -> None:
    model = findings.model
    n_columns = 4 if model.n_clusters_ <= 16 else 6
    n_rows = -(-model.n_clusters_ // n_columns)
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for cluster, axes in enumerate(grid.ravel()[: model.n_clusters_]):
        members = model.labels_ == cluster
        counts = np.bincount(findings.y[members], minlength=10)
        axes.set_axis_on()
        axes.imshow(findings.X[members].mean(axis=0).reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color=hue(cluster), linewidth=2.5)
        axes.set_title(f"{cluster}", color=hue(cluster), fontweight="bold", fontsize=11, pad=4)
        axes.set_xlabel(
            f"{counts.sum()} rows\n{counts.max() / counts.sum():.0%} are ‘{counts.argmax()}’",
            fontsize=9,
            color=INK,
        )
    figure.suptitle(
        f"Mean digit of each cluster (adjusted Rand index {findings.score:.2f})",
        fontsize=12,
        color=INK,
    )
