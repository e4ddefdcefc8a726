"""Processes of their own, for what a test cannot do to the process it runs in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import fastrbhc

ROOT = Path(fastrbhc.__file__).parents[1]
NOBODY = 65534

# Rows, families and a digest of a tree, as most of these processes need them.
PRELUDE = """
import hashlib, os, resource, signal, sys, threading, time, warnings
import numpy as np
import fastrbhc

signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).integers(1, 60, size=(3_000, 3)).astype(float)
FAMILIES = ("ward", "poisson", "gaussian")


def digest(family="poisson", n=3_000, n_jobs=2):
    tree = fastrbhc.linkage(X[:n], family, n_jobs=n_jobs)
    return hashlib.sha256(tree.merges.tobytes() + tree.heights.tobytes()).hexdigest()[:16]


def digests(n=3_000, n_jobs=2):
    return " ".join(digest(family, n, n_jobs) for family in FAMILIES)
"""


def environment(cache=None, path=ROOT, **variables):
    """The variables of a process; None removes one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    kept.update(PYTHONPATH=str(path), PYTHONDONTWRITEBYTECODE="1", **variables)
    if cache is not None:
        kept["NUMBA_CACHE_DIR"] = str(cache)
    return {name: value for name, value in kept.items() if value is not None}


def command(code):
    return [sys.executable, "-c", PRELUDE + textwrap.dedent(code)]


def run(code, *, cache=None, path=ROOT, cwd="/", **variables):
    """What a process prints, and what it warns of."""
    result = subprocess.run(
        command(code),
        env=environment(cache, path, **variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip(), result.stderr


def interrupted(code, delay, *, cache=None):
    """Run code, press Ctrl-C some time after it has printed "started".

    It prints "answered" where it has caught the exception. Returns the seconds in between, and the
    lines that follow.
    """
    process = subprocess.Popen(
        command(code),
        env=environment(cache),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout:
            if line == "started\n":
                break
        time.sleep(delay)
        assert process.poll() is None, "the work was over before Ctrl-C"
        begin = time.perf_counter()
        process.send_signal(signal.SIGINT)
        for line in process.stdout:
            assert line != "not interrupted\n"
            if line == "answered\n":
                break
        seconds = time.perf_counter() - begin
        output, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0
    return seconds, output.split()
