"""Processes that compile, and share one cache on disk.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import IO, Any, NamedTuple

from fastrbhc._compile_jobs import Job, do
from fastrbhc._engine import kernel_cache

# What a process writes: it is about to compile a kernel, and waits for the answer; it has compiled
# the kernel, or found it on disk after all; the job is done.
_BEGIN, _COMPILED, _FOUND, _DONE = "begin", "compiled", "found", "done"
_GO = "go"
_ORPHANED = "the process that started this one has ended"


class Compiled(NamedTuple):
    """The kernels compiled, without those that were already on disk."""

    kernels: int
    seconds: float


# The processes, as seen from the one that starts them.


def run(jobs: list[tuple[Job, list[Job]]], n_processes: int, progress: bool) -> dict[str, Compiled]:
    """Run the jobs, each before those that follow it; what was compiled, by title."""
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
            do(Job(*json.loads(line)))
            if kernel_cache._WARNED:
                raise OSError(kernel_cache._WARNED[0])
            say(_DONE)
