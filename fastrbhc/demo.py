"""The demonstration: handwritten digits, what is found in them, and a picture."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.metrics import adjusted_rand_score

from fastrbhc.datasets import load_digit_counts
from fastrbhc.estimators import RBHC
from fastrbhc.thresholds import kmeans_threshold

_GUESS = 10
_OTHER_SEEDS = (1, 2, 3, 4)
_LEAVES_DRAWN = 40
_INK, _FAINT = "#222222", "#9a9a9a"
# Twelve hues that stay apart on white; further clusters begin again.
_HUES = (
    "#3366aa", "#dd7711", "#339955", "#bb3333", "#8855bb", "#886644",
    "#d066a8", "#5f7a1f", "#1c9fb0", "#c9a000", "#66779f", "#a0522d",
)  # fmt: skip


class Findings(NamedTuple):
    """What the demonstration found."""

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
    """Print what was found in the digits, and draw it if matplotlib is installed.

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

    Ward's is SciPy's, as ours would have to be compiled first.
    """
    X, y = load_digit_counts()
    RBHC("poisson", n_clusters_guess=_GUESS, random_state=0).fit(X[:50])  # compile first
    start = time.perf_counter()
    model = RBHC("poisson", n_clusters_guess=_GUESS, random_state=0, compute_full_tree=True).fit(X)
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
        [int(tree.cut(threshold).max()) + 1 for threshold in others],
        float(adjusted_rand_score(y, tree.cut(n_clusters=10))),
        float(adjusted_rand_score(y, ward_labels)),
        ward_seconds,
    )


def report(findings: Findings) -> str:
    """The findings beside the truth, as lines of text."""
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
        Where to write the picture; its suffix is its format, PNG without one.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure: Any = Figure(figsize=(11.0, 5.4), dpi=110, facecolor="white", layout=engine)
    left, right = figure.subfigures(1, 2, width_ratios=(1.12, 1.0))
    _draw_tree(left, findings.model)
    _draw_means(right, findings)
    figure.savefig(output)


def _hue(cluster: int) -> str:
    return _HUES[cluster % len(_HUES)]


def _draw_tree(figure: Any, model: RBHC) -> None:
    from matplotlib.ticker import FuncFormatter
    from scipy.cluster.hierarchy import dendrogram

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # inversions are drawn level
        Z = model.dendrogram_.to_scipy()
    clusters = _cluster_of_nodes(Z, model).tolist()
    tree = dendrogram(
        Z,
        p=min(max(_LEAVES_DRAWN, 2 * model.n_clusters_), len(Z)),
        truncate_mode="lastp",
        no_plot=True,
        link_color_func=lambda node: _FAINT if clusters[node] < 0 else _hue(clusters[node]),
    )
    axes = figure.add_subplot()
    for x, height, colour in zip(tree["icoord"], tree["dcoord"], tree["color_list"], strict=True):
        axes.plot(x, height, color=colour, linewidth=1.8, solid_joinstyle="round")
    places: dict[int, list[float]] = {}
    for place, node in enumerate(tree["leaves"]):
        places.setdefault(clusters[node], []).append(5.0 + 10.0 * place)
    for cluster, at in places.items():
        axes.annotate(
            str(cluster),
            (float(np.mean(at)), 0.0),
            xytext=(0, -7),
            textcoords="offset points",
            ha="center",
            va="top",
            color=_hue(cluster),
            fontweight="bold",
            annotation_clip=False,
        )
    axes.axhline(model.threshold_, color=_INK, linewidth=1.0, linestyle=(0, (5, 4)))
    axes.annotate(
        f"λ = {model.threshold_:,.0f}",
        (1.0, model.threshold_),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 4),
        textcoords="offset points",
        ha="right",
        color=_INK,
    )
    axes.set_xlim(-5.0, 10.0 * len(tree["leaves"]) + 65.0)  # room for the name of the line
    axes.set_ylim(0.0, 1.04 * Z[-1, 2])
    axes.set_xticks([])
    axes.set_xlabel("cluster", labelpad=20, color=_INK)
    axes.set_ylabel("dissimilarity d of a merge", color=_INK)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(
        f"The last {len(tree['leaves']) - 1} merges: {model.n_clusters_} clusters below λ",
        loc="left",
        fontsize=12,
        color=_INK,
    )


def _cluster_of_nodes(Z: NDArray[np.float64], model: RBHC) -> NDArray[np.int64]:
    """For each node of the tree its cluster, −1 for nodes that join several."""
    n = len(Z) + 1
    clusters = np.concatenate([model.labels_, np.full(n - 1, -1)])
    for node, (child, _, height, _) in enumerate(Z, start=n):
        if height < model.threshold_:
            clusters[node] = clusters[int(child)]
    return clusters


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
            spine.set(color=_hue(cluster), linewidth=2.5)
        axes.set_title(f"{cluster}", color=_hue(cluster), fontweight="bold", fontsize=11, pad=4)
        axes.set_xlabel(
            f"{counts.sum()} rows\n{counts.max() / counts.sum():.0%} are ‘{counts.argmax()}’",
            fontsize=9,
            color=_INK,
        )
    figure.suptitle(
        f"Mean digit of each cluster (adjusted Rand index {findings.score:.2f})",
        fontsize=12,
        color=_INK,
    )
