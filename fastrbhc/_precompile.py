"""Compiling ahead of time: small calls that go through the same kernels as large ones.

Numba compiles one function at a time per process, so several processes share the work, one per
core. Each makes the calls of one `Job` after another and writes the kernels to the common cache on
disk. Kernels that all families share are compiled by the first process that needs them, and loaded
by the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numba import config as _numba_config
from numpy.typing import NDArray

from fastrbhc._dissimilarity import dissimilarity
from fastrbhc._engine import kernel_cache
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

# Numbers of columns that kernels know after `fastrbhc compile --all`: those of most large data sets
# that the kd-tree serves.
COLUMNS_OF_ALL = (2, 3)

# The default families.
_USUAL = ("spherical_gaussian", "gaussian", "poisson")

# What a process writes: it is about to compile a kernel, and waits for the answer; it has compiled
# the kernel, or found it on disk after all; the job is done.
_BEGIN, _COMPILED, _FOUND, _DONE = "begin", "compiled", "found", "done"
_GO = "go"
_ORPHANED = "the process that started this one has ended"

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
    """Work for one process at a time: a family or a model, and the kinds of trees."""

    kind: str  # "family" or "model"
    name: str
    columns: int | None  # for kernels that know this number of columns; None for all others
    audit: bool | str
    algorithms: tuple[str, ...]
    scans_first: bool  # every second one begins at the other end, so that processes seldom wait

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
        in seconds. Kernels that are already on disk are not compiled again.

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

    order = [each for job, more in jobs for each in (job, *more)]
    n_processes = max(1, min(n_processes, len(order)))
    with (
        tqdm(total=len(order), desc="compiling", unit="job", disable=not progress) as bar,
        ThreadPoolExecutor(n_processes) as pool,
    ):
        processes = _Processes(jobs, bar)
        try:
            for each in as_completed([pool.submit(processes.run) for _ in range(n_processes)]):
                each.result()
        except BaseException:
            processes.stop()
            raise
    return {job.title: processes.found[job.title] for job in order}


class _Processes:
    """Processes that take one job after another, and never compile a kernel twice.

    A process announces each kernel, and has to wait while another one compiles it.
    """

    def __init__(self, jobs: list[tuple[Job, list[Job]]], bar: Any) -> None:
        self.found: dict[str, Compiled] = {}
        self._bar = bar
        self._waiting = deque(job for job, _ in jobs)
        self._following = dict(jobs)
        self._n_unfinished = sum(1 + len(more) for _, more in jobs)
        self._n_kernels = 0
        self._turns: dict[str, threading.Lock] = {}
        self._changed = threading.Condition()  # of everything here
        self._stopped = False
        self._running: list[subprocess.Popen[str]] = []

    def run(self) -> None:
        """Start a process and give it jobs, until there are no more."""
        job = self._next()
        with self._changed:
            if job is None or self._stopped:
                return
            process = _started()
            self._running.append(process)
        with process:
            try:
                while job is not None:
                    self._do(job, process)
                    job = self._next(job)
            finally:
                with contextlib.suppress(OSError):  # it may have failed
                    _pipe(process.stdin).close()

    def stop(self) -> None:
        """Terminate all processes."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            for process in self._running:
                process.terminate()

    def _next(self, finished: Job | None = None) -> Job | None:
        """Wait for a job to do; None if there will be none."""
        with self._changed:
            if finished is not None:
                # Its own process goes on with these: it has their fragments already.
                self._waiting.extendleft(reversed(self._following.pop(finished, [])))
                self._n_unfinished -= 1
                self._changed.notify_all()
                self._bar.update()
            while not (self._waiting or self._stopped or self._n_unfinished == 0):
                self._changed.wait()
            return self._waiting.popleft() if self._waiting and not self._stopped else None

    def _do(self, job: Job, process: subprocess.Popen[str]) -> None:
        start, n_kernels, said = time.perf_counter(), 0, ""
        mine: dict[str, threading.Lock] = {}  # the kernels that the process may compile
        _tell(process, json.dumps(job))
        try:
            for line in _pipe(process.stdout):
                word, _, kernel = line.rstrip("\n").partition(" ")
                if word == _BEGIN:
                    if kernel not in mine:
                        turn = self._turns.setdefault(kernel, threading.Lock())
                        turn.acquire()
                        mine[kernel] = turn
                    _tell(process, _GO)
                elif word in (_COMPILED, _FOUND):
                    if kernel in mine:
                        mine.pop(kernel).release()
                    n_kernels += word == _COMPILED
                    self._count(word == _COMPILED)
                elif word == _DONE:
                    self.found[job.title] = Compiled(n_kernels, time.perf_counter() - start)
                    return
                else:
                    said = line.strip() or said
        finally:
            for turn in mine.values():
                turn.release()
        said = said or f"exit code {process.wait()}"
        raise ChildProcessError(f"{job.title} could not be compiled: {said}")

    def _count(self, n_kernels: int) -> None:
        with self._changed:
            self._n_kernels += n_kernels
            self._bar.set_postfix_str(f"{self._n_kernels} kernels")


def _started() -> subprocess.Popen[str]:
    package = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import work; work()"],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _tell(process: subprocess.Popen[str], line: str) -> None:
    pipe = _pipe(process.stdin)
    with contextlib.suppress(OSError):  # if it has failed, its last words tell why
        pipe.write(f"{line}\n")
        pipe.flush()


# The same, as seen from inside.


def work() -> None:
    """Do the jobs that arrive on standard input, one per line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    warnings.simplefilter("ignore")

    def say(*words: str) -> None:
        try:
            print(*words, flush=True)
        except OSError:  # which Numba would take for a fault of the cache
            raise SystemExit(_ORPHANED) from None

    def begin(kernel: str) -> None:
        say(_BEGIN, ascii(kernel))
        if not sys.stdin.readline():
            raise SystemExit(_ORPHANED)

    def end(kernel: str, compiled: bool) -> None:
        say(_COMPILED if compiled else _FOUND, ascii(kernel))

    with kernel_cache.taking_turns(kernel_cache.Turns(begin, end)):
        while line := sys.stdin.readline():
            _use(Job(*json.loads(line)))
            if kernel_cache._WARNED:
                raise OSError(kernel_cache._WARNED[0])
            say(_DONE)


def _use(job: Job) -> None:
    if job.kind == "model":
        _use_model(job.name)
    elif job.columns is None:
        _use_family(job.name, job.audit, job.algorithms, job.scans_first)
    else:
        _use_columns(job.name, job.columns, job.audit, job.algorithms)


def _use_family(name: str, audit: Any, algorithms: Iterable[str], scans_first: bool) -> None:
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


def _use_columns(name: str, columns: int, audit: Any, algorithms: Iterable[str]) -> None:
    """Compile the kernels that know the number of columns."""
    # Look-ups and merges are compiled before the first merge, and all other kernels serve any
    # number of columns: no merge is necessary.
    X = _rows(name, WORTH_COMPILING, columns)
    _grow(X, name, audit, algorithms, threshold=np.finfo(np.float64).tiny)


def _grow(
    X: NDArray[np.float64],
    name: str,
    audit: Any,
    algorithms: Iterable[str],
    threshold: float | None = None,
) -> None:
    reducible = as_family(name).reducible
    for algorithm in algorithms:
        if algorithm != "levels" or reducible:
            linkage(X, name, algorithm=algorithm, threshold=threshold, n_jobs=2)
    if audit:
        linkage(X, name, audit="sample", threshold=threshold, n_jobs=2)


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
