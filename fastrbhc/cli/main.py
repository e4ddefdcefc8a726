"""The command ``fastrbhc``: cluster a table, see a demonstration, repeat the paper's experiments.

Everything heavy is imported inside the commands.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO

from fastrbhc import __version__

if TYPE_CHECKING:
    from fastrbhc.cli.tables import Table
    from fastrbhc.families import Family

_SIZES_SHOWN = 10
_GUESS = 8
_COLUMN = "Columns are given by name, or by position in the file counted from 1."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments, without the name of the program; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 for a mistake in the input, 130 when interrupted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fastrbhc.cli import main
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y\\n0,0\\n1,0\\n9,9\\n9,8\\n")
    >>> main(["cluster", str(path), "--family", "ward", "--clusters", "5"])
    2
    """
    arguments = _parser().parse_args(argv)
    try:
        with _warnings_as_lines():
            arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except (ValueError, TypeError, ArithmeticError) as error:
        return _fail(str(error))
    except MemoryError as error:
        return _fail(f"not enough memory. {error}")
    return 0


def _fail(message: str) -> int:
    print(f"fastrbhc: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        print(f"fastrbhc: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = show
        yield


class _Parser(argparse.ArgumentParser):
    """Errors in one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(_fail(f"{message}. See {self.prog} --help"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fastrbhc",
        description="Relaxed Bayesian hierarchical clustering with exponential families.",
    )
    parser.add_argument("--version", action="version", version=f"fastrbhc {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_cluster(commands.add_parser)
    _add_demo(commands.add_parser)
    _add_reproduce(commands.add_parser)
    return parser


def _add_cluster(add: Callable[..., argparse.ArgumentParser]) -> None:
    command = add(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table and print how many clusters there are. " + _COLUMN,
        epilog="Example: fastrbhc cluster counts.csv --family poisson --guess 10 "
        "--id name --labels labels.csv",
    )
    option = command.add_argument
    option("file", metavar="FILE", help=".csv, .tsv or other text, .npy, .npz or .parquet")
    option(
        "--family",
        default="gaussian",
        help="gaussian (the default), ward, diagonal_gaussian, von_mises_fisher, poisson, "
        "multinomial, bernoulli, exponential",
    )
    stop = command.add_mutually_exclusive_group()
    stop.add_argument(
        "--threshold",
        type=_number_or_name,
        metavar="LAMBDA",
        help="merge while the dissimilarity is below this number; or gap or evidence, which find "
        "one without a guess",
    )
    stop.add_argument("--clusters", type=int, metavar="K", help="the number of clusters")
    stop.add_argument(
        "--guess",
        type=int,  # no default here: `--guess 8 --clusters 2` would pass unnoticed
        metavar="K",
        help="a rough guess at the number of clusters, from which the k-means heuristic "
        f"finds a threshold (the default, with {_GUESS})",
    )
    option("--algorithm", default="auto", help="auto (the default), greedy or nn_chain")
    option("--id", metavar="COLUMN", help="the column that names the rows")
    option("--weights", metavar="COLUMN", help="the column with the weights of the rows")
    option(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column to leave out; may be given several times",
    )
    option("--smoothing", type=float, metavar="VALUE", help="smoothing of a family that has it")
    option("--variance", type=float, metavar="VALUE", help="variance of a family that has it")
    option("--seed", type=int, default=0, help="seed of the heuristic (default 0)")
    option("--jobs", type=int, metavar="N", help="number of threads; -1 for all cores")
    option("--progress", action="store_true", help="show a progress bar")
    option("--labels", metavar="OUT.csv", help="write the cluster of every row, as id,cluster")
    option(
        "--tree",
        metavar="OUT",
        help="write the whole tree: as Newick to .nwk or .newick, as JSON to .json, "
        "and as a linkage matrix for SciPy to .npy or any other name",
    )
    option("--plot", metavar="PICTURE", help="draw the highest merges of the tree and its clusters")
    command.set_defaults(run=_cluster)


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _add_demo(add: Callable[..., argparse.ArgumentParser]) -> None:
    command = add(
        "demo",
        help="cluster handwritten digits that come with the package",
        description="Cluster 1,500 handwritten digits that come with the package, compare with "
        "the truth and draw a picture.",
    )
    command.add_argument(
        "--output",
        default="fastrbhc-demo.png",
        metavar="PICTURE",
        help="where to write the picture (default fastrbhc-demo.png)",
    )
    command.set_defaults(run=_demo)


class _Experiment(NamedTuple):
    """A module of `fastrbhc.experiments`, its function, and the options on the command line.

    ``amount`` is the option that says how much work there is, with its default and its meaning;
    ``options`` are further ones of the function, as argparse takes them.
    """

    function: str
    help: str
    description: str
    example: str
    amount: tuple[str, int, str]
    options: tuple[tuple[str, dict[str, Any]], ...] = ()
    draws: bool = False


_DIGITS = ("mnist", {"metavar": "PATH", "help": "digits, an NPZ file with X (49 columns) and y"})
_PICTURES = (
    "caltech",
    {
        "metavar": "PATH",
        "help": "counts of visual words, an NPZ file with X or a CSR matrix, and y",
    },
)
_EXPERIMENTS = {
    "table1": _Experiment(
        "table1",
        "d, its Taylor value, and how often d is not reducible",
        "Table 1: d and its Taylor value between random clusters, and how often d is not "
        "reducible, for Poisson, multinomial and Gaussian clusters.",
        "--trials 100000 --seed 0 --json table1.json",
        ("trials", 100_000, "trials for each row"),
    ),
    "table2": _Experiment(
        "table2",
        "synthetic data: linkages, RBHC and BHC",
        "Table 2: how well single, complete and Ward linkage, RBHC and BHC find the clusters of "
        "Poisson, multinomial and Gaussian mixtures.",
        "--repeats 10 --seed 0 --json table2.json",
        ("repeats", 10, "data sets of each kind"),
        (("equal-sizes", {"action": "store_true", "help": "clusters of equal size"}),),
    ),
    "table3": _Experiment(
        "table3",
        "real data: linkages, RBHC and BHC",
        "Table 3: how well the methods of Table 2 find classes of MNIST digits, and of Caltech101 "
        "pictures if their file is named.",
        "--json table3.json --caltech caltech101.npz",
        ("repeats", 5, "samples of digits"),
        (_PICTURES, _DIGITS),
    ),
    "figure1": _Experiment(
        "figure1",
        "the error of the Taylor value against size and scale",
        "Figure 1: the average relative error of the Taylor value of the Gaussian's d, against "
        "the largest cluster size and the scale beta.",
        "--json figure1.json --plot figure1.png",
        ("trials", 2_000, "trials for each point"),
        draws=True,
    ),
    "thresholds": _Experiment(
        "compare_thresholds",
        "choices of lambda compared on all data",
        "How many clusters each choice of lambda finds, and how good they are, on the data of "
        "Tables 2 and 3, digits as counts, and files of one's own.",
        "--repeats 10 --json thresholds.json --also words=multinomial=20newsgroups.npz",
        ("repeats", 10, "data sets of each kind"),
        (
            _PICTURES,
            _DIGITS,
            (
                "also",
                {
                    "metavar": "NAME=FAMILY=PATH",
                    "action": "append",
                    "default": [],
                    "help": "further rows with classes, an NPZ file; may be given several times",
                },
            ),
        ),
    ),
    "mnist": _Experiment(
        "mnist_settings",
        "what the MNIST column of Table 3 depends on",
        "RBHC on digits of MNIST with other pixel scales, smoothings and guesses.",
        "--repeats 5 --json mnist.json",
        ("repeats", 5, "samples of digits"),
        (_DIGITS,),
    ),
}


def _add_reproduce(add: Callable[..., argparse.ArgumentParser]) -> None:
    command = add(
        "reproduce",
        help="repeat the paper's experiments",
        description="Repeat an experiment of Lee & Choi (2015) and print it beside their values.",
    )
    experiments = command.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    for name, experiment in _EXPERIMENTS.items():
        part = experiments.add_parser(
            name,
            help=experiment.help,
            description=experiment.description,
            epilog=f"Example: fastrbhc reproduce {name} {experiment.example}",
        )
        option = part.add_argument
        amount, default, meaning = experiment.amount
        option(
            f"--{amount}",
            type=int,
            default=default,
            metavar="N",
            help=f"{meaning} (default {default})",
        )
        option("--seed", type=int, default=0, help="seed of all random numbers (default 0)")
        option("--jobs", type=int, metavar="N", help="number of threads; -1 for all cores")
        option("--progress", action="store_true", help="show progress bars")
        option("--json", metavar="OUT.json", help="write all figures")
        for key, settings in experiment.options:
            option(f"--{key}", **settings)
        if experiment.draws:
            option("--plot", metavar="PICTURE", help="draw the figure")
        part.set_defaults(run=_reproduce, experiment=name)


def _reproduce(arguments: argparse.Namespace) -> None:
    experiment = _EXPERIMENTS[arguments.experiment]
    picture = arguments.plot if experiment.draws else None
    names = "--json and --plot" if experiment.draws else "--json"
    _check_outputs(names, arguments.json, picture)
    if picture is not None:
        _check_drawing()
    keys = [experiment.amount[0], *(key.replace("-", "_") for key, _ in experiment.options)]
    options = {key: getattr(arguments, key) for key in keys}
    if "also" in options:
        options["also"] = _named_files(options["also"])
    module = importlib.import_module(f"fastrbhc.experiments.{arguments.experiment}")
    start = time.perf_counter()
    result = getattr(module, experiment.function)(
        seed=arguments.seed, n_jobs=arguments.jobs, progress=arguments.progress, **options
    )
    seconds = time.perf_counter() - start
    print(module.report(result))
    print(f"\n{seconds:.1f} s, compiling included")
    if arguments.json is not None:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")
        print(f"wrote {arguments.json}")
    if picture is not None:
        module.draw(result, picture)
        print(f"wrote {picture}")


def _named_files(given: list[str]) -> dict[str, tuple[str, str]]:
    """NAME=FAMILY=PATH as a dictionary."""
    files = {}
    for text in given:
        parts = text.split("=", 2)
        if len(parts) < 3 or not all(parts):
            raise ValueError(f"--also takes NAME=FAMILY=PATH, got {text!r}")
        files[parts[0]] = (parts[1], parts[2])
    return files


def _demo(arguments: argparse.Namespace) -> None:
    _check_writable(arguments.output)
    from fastrbhc.cli.demo import run

    run(arguments.output)


def _cluster(arguments: argparse.Namespace) -> None:
    outputs = _check_outputs(
        "FILE, --labels, --tree and --plot",
        arguments.labels,
        arguments.tree,
        arguments.plot,
        read=arguments.file,
    )
    if arguments.plot is not None:
        _check_drawing()
    from fastrbhc import RBHC
    from fastrbhc._validation import check_values
    from fastrbhc.cli.tables import read_table

    family = _family(arguments.family, smoothing=arguments.smoothing, variance=arguments.variance)
    table = read_table(arguments.file, arguments.id, weights=arguments.weights, drop=arguments.drop)
    name = Path(arguments.file).name
    if len(table.values) < 2:
        raise ValueError(f"{name} has {len(table.values)} rows: at least 2 are needed")
    check_values(table.values, family, table.columns, name)  # with names of columns in messages
    guess = _GUESS if arguments.guess is None else arguments.guess
    start = time.perf_counter()
    model = RBHC(
        family,
        threshold="kmeans" if arguments.threshold is None else arguments.threshold,
        n_clusters=arguments.clusters,
        n_clusters_guess=guess,
        algorithm=arguments.algorithm,
        compute_full_tree=arguments.tree is not None or arguments.plot is not None,
        n_jobs=arguments.jobs,
        progress=arguments.progress,
        random_state=arguments.seed,
    ).fit(table.values, sample_weight=table.weights)
    seconds = time.perf_counter() - start
    _summarise(name, table, family, model, arguments)
    print(f"{seconds:.2f} s")
    if arguments.labels is not None:
        _write_labels(arguments.labels, table.ids, model.labels_)
    if arguments.tree is not None:
        _write_tree(arguments.tree, model.dendrogram_, table.ids)
    if arguments.plot is not None:
        _draw_tree(arguments.plot, model, table.ids)
    if outputs:
        print(f"wrote {' and '.join(outputs)}")


def _family(name: str, **parameters: float | None) -> Family:
    from fastrbhc.families import as_family

    family: Any = as_family(name)
    given = {key: value for key, value in parameters.items() if value is not None}
    for key in given:
        if key not in family._fields:
            raise ValueError(
                f"the family {family.name!r} has no {key}; it has {', '.join(family._fields)}"
            )
    return as_family(family._replace(**given))


def _summarise(
    name: str, table: Table, family: Any, model: Any, arguments: argparse.Namespace
) -> None:
    import numpy as np

    n, d = table.values.shape
    weighted = f", weighted by {arguments.weights}" if table.weights is not None else ""
    print(f"{name}: {n:,} rows, {d:,} columns{weighted}")
    parameters = ", ".join(f"{key} {value}" for key, value in family._asdict().items())
    print(f"family {family.name}" + (f" ({parameters})" if parameters else ""))
    if isinstance(arguments.threshold, str):
        origin = f"by {arguments.threshold}"
    elif arguments.threshold is not None:
        origin = "as given"
    elif arguments.clusters is not None:
        origin = "the first merge not made"
    else:
        origin = f"k-means heuristic with guess {model.n_clusters_guess}, seed {arguments.seed}"
    print(f"lambda {model.threshold_:.6g} ({origin})")
    sizes = np.bincount(model.labels_)
    shown = ", ".join(f"{size:,}" for size in sizes[:_SIZES_SHOWN])
    more = f", ... ({len(sizes) - _SIZES_SHOWN:,} more)" if len(sizes) > _SIZES_SHOWN else ""
    noun = "cluster" if len(sizes) == 1 else "clusters"
    print(f"{len(sizes):,} {noun}; rows in each: {shown}{more}")


def _write_labels(path: str, ids: list[str] | None, labels: Any) -> None:
    names = range(len(labels)) if ids is None else ids
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "cluster"])
        writer.writerows(zip(names, labels.tolist(), strict=True))


def _write_tree(path: str, tree: Any, ids: list[str] | None) -> None:
    import numpy as np

    suffix = Path(path).suffix.lower()
    if suffix in {".nwk", ".newick"}:
        Path(path).write_text(tree.to_newick(ids) + "\n", encoding="utf-8")
    elif suffix == ".json":
        Path(path).write_text(tree.to_json(ids) + "\n", encoding="utf-8")
    else:
        linkage_matrix = tree.to_scipy()
        with open(path, "wb") as file:
            np.save(file, linkage_matrix)


def _draw_tree(path: str, model: Any, ids: list[str] | None) -> None:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9.0, 4.8), dpi=120, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    model.dendrogram_.plot(axes, threshold=model.threshold_, labels=model.labels_, names=ids)
    figure.savefig(path)


def _check_drawing() -> None:
    """Before the work, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install fastrbhc[plot]")


def _check_outputs(names: str, *paths: str | None, read: str | None = None) -> list[str]:
    """The files to write that were asked for: all different, and none that is read."""
    outputs = [path for path in paths if path is not None]
    for path in outputs:
        _check_writable(path)
    files = [Path(path).resolve() for path in (read, *outputs) if path is not None]
    if len(set(files)) < len(files):
        raise ValueError(f"{names} have to be different files")
    return outputs


def _check_writable(path: str) -> None:
    """Before the work, not after it."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{path} is a directory: give the name of a file to write")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"there is no directory {target.parent} to write {target.name} to")


if __name__ == "__main__":
    sys.exit(main())
