"""Compiling ahead of time: small calls that go through the same kernels as large ones.

Numba compiles one function at a time per process, so several processes share the work. Each makes
the calls of one `Job` and writes the kernels to the common cache on disk. Kernels that all families
share are compiled by the first process that needs them, and loaded by the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import config as _numba_config
from numpy.typing import NDArray

from fastrbhc._dissimilarity import dissimilarity
from fastrbhc._engine import jit
from fastrbhc._engine.compilations import listening
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._engine.planning.plan import WORTH_COMPILING
from fastrbhc._linkage import linkage
from fastrbhc._options import ALGORITHM_NAMES
from fastrbhc._validation import check_audit, check_choice, check_count, check_threads
from fastrbhc._versions import cache_folder
from fastrbhc.bhc import BHC, as_model
from fastrbhc.bhc import registered as registered_models
from fastrbhc.estimators import RBHC
from fastrbhc.families import as_family, registered

_config: Any = _numba_config

# The default families.
_USUAL = ("spherical_gaussian", "gaussian", "poisson")

# The line that a process writes for each kernel.
_COMPILED = "compiled"

# More columns than the kd-tree is used for.
_MANY_COLUMNS = FEW_COLUMNS + 4
# Rows on the kd-tree, and for scans: enough for two threads, if the algorithm uses them.
_ROWS_ON_A_TREE, _ROWS_TO_SCAN = 2_700, 1_300
# Rows for everything that runs on a single thread.
_FEW_ROWS = 300


class Compiled(NamedTuple):
    """The kernels compiled, without those that were already on disk."""

    kernels: int
    seconds: float


class Job(NamedTuple):
    """The work of one process: a family or a model, and the kinds of trees."""

    kind: str  # "family" or "model"
    name: str
    columns: int | None  # for kernels that know this number of columns; None for all others
    audit: bool | str
    algorithms: tuple[str, ...]
    scans_first: bool  # half of the processes begin at the other end

    @property
    def title(self) -> str:
        """The name that the user sees."""
        of = f"BHC {self.name}" if self.kind == "model" else self.name
        return of if self.columns is None else f"{of}, columns: {self.columns}"


def precompile(
    families: str | Iterable[Any] | None = None,
    *,
    n_features: int | Iterable[int] | None = None,
    audit: bool = False,
    algorithms: str | Iterable[str] = "auto",
    bhc: bool | Iterable[Any] = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> dict[str, Compiled]:
    """Compile kernels ahead of time, so that first calls find them on disk.

    For containers, CI and notebooks: `linkage`, `RBHC`, `kmeans_threshold` and `dissimilarity` of
    these families, and `bhc_linkage` and `BHC` of these models, then compile nothing.

    Parameters
    ----------
    families : str or sequence of str, optional
        Names of families, or records of the package. By default the spherical Gaussian (Ward), the
        Gaussian and the Poisson family. User-defined families cannot be compiled ahead of time:
        their kernels are kept in memory only.
    n_features : int or sequence of int, optional
        Numbers of columns. From 5,000 rows on, kernels for up to 8 columns know their number, and
        are compiled for each. By default only kernels for any number of columns are compiled.
    audit : bool, default=False
        Compile for audits too.
    algorithms : str or sequence of str, default="auto"
        See `linkage`. Algorithms that do not apply to a family are skipped.
    bhc : bool or sequence of str, default=False
        Names of models for `bhc_linkage`; True for all of them.
    n_jobs : int, optional
        Number of processes; None for one per core.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    dict
        For each family, number of columns and model: the number of kernels compiled, and the time
        of its process in seconds. Kernels that are already on disk are not compiled again.

    Raises
    ------
    OSError
        If compiled kernels cannot be kept on disk, or if a process fails.

    Notes
    -----
    Compiled kernels are valid for one state of the package, one version of Python and of Numba, and
    one kind of CPU. If a container is built on one kind of CPU and runs on another, set
    ``NUMBA_CPU_NAME`` to a common baseline, for example ``x86-64-v3``, and
    ``NUMBA_CPU_FEATURES`` to an empty string, in both places.

    See Also
    --------
    show_versions : Prints where compiled kernels are kept.

    Examples
    --------
    >>> import fastrbhc
    >>> list(fastrbhc.precompile("ward"))
    ['spherical_gaussian']
    """
    jobs = _jobs(families, n_features, audit, algorithms, bhc)
    n_processes = check_threads(n_jobs)
    _check_cache()
    return _run(jobs, n_processes, progress)


def _jobs(
    families: Any, n_features: Any, audit: bool, algorithms: Any, bhc: Any
) -> list[tuple[Job, list[Job]]]:
    """The jobs to run, each with the jobs that follow it."""
    names = [_family_name(each) for each in _several(_USUAL if families is None else families)]
    given = [] if n_features is None else _several(n_features)
    columns = sorted({check_count(each, "n_features") for each in given})
    wanted = tuple(_several(algorithms))
    for algorithm in wanted:
        check_choice(algorithm, "algorithm", ALGORITHM_NAMES)
    check_audit(audit)
    models = _several(bhc)
    if isinstance(bhc, bool):
        models = [*registered_models()] if bhc else []
    found: list[tuple[Job, list[Job]]] = []
    for name in dict.fromkeys(names):
        first = Job("family", name, None, audit, wanted, len(found) % 2 == 1)
        more = [first._replace(columns=each) for each in columns if each <= FEW_COLUMNS]
        found.append((first, more))
    for model in dict.fromkeys(as_model(each).name for each in models):
        found.append((Job("model", model, None, False, (), False), []))
    return found


def _several(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | int | type) or hasattr(given, "_fields") else [*given]


def families_of_the_package() -> list[str]:
    """Names of all families whose kernels are kept on disk."""
    classes: Any = registered().values()
    return sorted({cls.name for cls in classes if _is_ours(cls)})


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def _family_name(given: Any) -> str:
    family = as_family(given)
    if not _is_ours(type(family)):
        raise ValueError(
            f"kernels of the family {family.name!r} are kept in memory only, because it is not "
            "part of the package: there is nothing to compile ahead of time"
        )
    return family.name


def _check_cache() -> None:
    try:
        folder = cache_folder()
    except OSError as error:
        raise OSError(f"compiled kernels cannot be kept on disk: {error}") from None
    wanted = _config.CACHE_DIR
    if wanted and Path(wanted).resolve() not in folder.resolve().parents:
        raise OSError(
            f"compiled kernels cannot be kept on disk: NUMBA_CACHE_DIR is {wanted}, which cannot "
            "be written"
        )


# The processes, as seen from the one that starts them.


def _run(
    jobs: list[tuple[Job, list[Job]]], n_processes: int, progress: bool
) -> dict[str, Compiled]:
    from tqdm.auto import tqdm

    found: dict[str, Compiled] = {}
    total = len(jobs) + sum(len(more) for _, more in jobs)
    with (
        tqdm(total=total, desc="compiling", unit="job", disable=not progress) as bar,
        ThreadPoolExecutor(max(1, min(n_processes, total))) as pool,
    ):
        processes = _Processes(lambda count: bar.set_postfix_str(f"{count} kernels"))
        pending: dict[Future[Compiled], tuple[Job, list[Job]]] = {
            pool.submit(processes.run, job): (job, more) for job, more in jobs
        }
        try:
            while pending:
                for done in wait(pending, return_when=FIRST_COMPLETED).done:
                    job, more = pending.pop(done)
                    found[job.title] = done.result()
                    bar.update()
                    pending.update({pool.submit(processes.run, each): (each, []) for each in more})
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
            raise
    order = [each.title for job, more in jobs for each in (job, *more)]
    return {title: found[title] for title in order}


class _Processes:
    """Processes that write a line per kernel, and the kernels they have compiled."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._n_kernels = 0
        self._running: list[subprocess.Popen[str]] = []

    def run(self, job: Job) -> Compiled:
        """Run a job in a separate process."""
        start, kernels, said = time.perf_counter(), 0, ""
        with _started(job) as process:
            self._running.append(process)
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == _COMPILED:
                    kernels += 1
                    with self._lock:
                        self._n_kernels += 1
                        self._report(self._n_kernels)
                else:
                    said = line.strip() or said
        self._running.remove(process)
        if process.returncode:
            said = said or f"exit code {process.returncode}"
            raise ChildProcessError(f"{job.title} could not be compiled: {said}")
        return Compiled(kernels, time.perf_counter() - start)

    def stop(self) -> None:
        """Terminate the running processes."""
        for process in list(self._running):
            process.terminate()


def _started(job: Job) -> subprocess.Popen[str]:
    package = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import work; work()", json.dumps(job)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


# The same, as seen from inside.


def work() -> None:
    """Make the calls of the job in the last argument of the command line."""
    kind, name, columns, audit, algorithms, scans_first = json.loads(sys.argv[-1])
    warnings.simplefilter("ignore")
    with listening(lambda: None, lambda: print(_COMPILED, flush=True)):
        if kind == "model":
            _use_model(name)
        elif columns is None:
            _use_family(name, audit, algorithms, scans_first)
        else:
            _use_columns(name, columns, audit, algorithms)
    if jit._WARNED:
        raise OSError(jit._WARNED[0])


def _use_family(name: str, audit: Any, algorithms: list[str], scans_first: bool) -> None:
    """Compile the kernels that serve any number of columns."""

    def on_a_tree() -> None:
        _grow(_rows(name, _ROWS_ON_A_TREE, 3), name, audit, algorithms)

    def by_scanning() -> None:
        # Scans for reducible families are short, and use threads where the tree does not.
        n = _ROWS_TO_SCAN if as_family(name).reducible else _FEW_ROWS
        _grow(_rows(name, n, _MANY_COLUMNS), name, audit, algorithms)
        # Few rows take a way of their own, and one column has another layout.
        _grow(_rows(name, 50, 1), name, audit, algorithms)

    for part in (by_scanning, on_a_tree) if scans_first else (on_a_tree, by_scanning):
        part()
    for n_columns in (3, _MANY_COLUMNS):
        X = _rows(name, _FEW_ROWS, n_columns)
        model = RBHC(name, n_clusters_guess=2, random_state=0, compute_full_tree=True).fit(X)
        model.predict(X[:2])
        model.summary()
    dissimilarity(X[:2], X[2:4], name)
    few = np.repeat(X[:20], 2, axis=0)
    linkage(few, name, sample_weight=np.arange(40.0))  # a row without weight
    _look_at(linkage(few, name))


def _use_columns(name: str, columns: int, audit: Any, algorithms: list[str]) -> None:
    """Compile the kernels that know the number of columns."""
    _grow(_rows(name, WORTH_COMPILING, columns), name, audit, algorithms)


def _grow(X: NDArray[np.float64], name: str, audit: Any, algorithms: list[str]) -> None:
    reducible = as_family(name).reducible
    for algorithm in algorithms:
        if algorithm != "levels" or reducible:
            linkage(X, name, algorithm=algorithm, n_jobs=2)
    if audit:
        linkage(X, name, audit="sample", n_jobs=2)


def _look_at(tree: Any) -> None:
    """Call the methods of a tree."""
    tree.cut(n_clusters=2)
    tree.path()
    tree.leaves_order()
    tree.members(tree.n_leaves)


def _use_model(name: str) -> None:
    domain = as_model(name).domain
    for n_columns in (3, _MANY_COLUMNS, 1):
        X = np.round(_within(domain.lower, domain.upper, 40, n_columns))
        model = BHC(name, random_state=0).fit(X)
        model.predict(X[:2])
        model.score_samples(X[:2])


def _rows(name: str, n: int, n_columns: int) -> NDArray[np.float64]:
    """Rows that the family admits, all different."""
    domain = as_family(name).domain
    return _within(domain.lower, domain.upper, n, n_columns)


def _within(lower: float, upper: float, n: int, n_columns: int) -> NDArray[np.float64]:
    least, most = max(lower, -20.0), min(upper, 20.0)
    shares = np.random.default_rng(0).uniform(0.1, 0.9, (n, n_columns))
    return least + (most - least) * shares
