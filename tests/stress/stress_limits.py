"""Little memory, few threads, one core: clean errors, and no time wasted."""

from __future__ import annotations

import os
import sys

import pytest
from processes import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")

MEMORY = """
def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")

big = np.random.default_rng(1).integers(0, 40_000, size=(500_000, 3)).astype(float)
def grow(n=None, audit=False):
    return fastrbhc.linkage(big[:n], {family!r}, n_jobs=2, audit=audit)

def bits(tree):
    return hashlib.sha256(tree.merges.tobytes() + tree.heights.tobytes()).hexdigest()

small = bits(grow(6_000))  # compiles, and imports
grow(6_000, audit="sample")
whole = bits(grow())
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
outcomes = []
for megabytes in (0, 3, 6, 10, 14, 18, 22, 26, 30, 35, 40, 300):
    resource.setrlimit(resource.RLIMIT_AS, (size() + megabytes * 2**20, hard))
    try:
        outcome = "tree" if bits(grow()) == whole else "wrong"
    except MemoryError:
        outcome = "error"
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    assert bits(grow(6_000)) == small
    assert threading.active_count() == 1, threading.enumerate()
    outcomes.append(outcome)
print(*outcomes)
"""


@pytest.mark.parametrize("family", ["ward", "poisson"])
def test_memory_that_ends_in_the_middle(family, capsys):
    output, warned = run(MEMORY.replace("{family!r}", repr(family)))
    outcomes = output.split()
    assert set(outcomes) == {"tree", "error"}
    assert warned == ""
    with capsys.disabled():
        print(f"\n{family}: {outcomes.count('error')} errors, then {outcomes.count('tree')} trees")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_no_more_threads():
    """The tree is then built by those that there are."""
    code = """
        big = np.random.default_rng(1).normal(size=(20_000, 3))
        reference = fastrbhc.linkage(big, "ward", n_jobs=4)
        os.setgroups([]); os.setgid(54321); os.setuid(54321)
        for most in (1, 2, 3):
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))
            tree = fastrbhc.linkage(big, "ward", n_jobs=4)
            assert (tree.heights == reference.heights).all()
            assert (tree.merges == reference.merges).all()
        print(threading.active_count())
    """
    assert run(code)[0] == "1"


CORES = """
os.sched_setaffinity(0, {cores})
rng = np.random.default_rng(3)
cases = [
    ("ward", rng.normal(size=(100_000, 3))),
    ("poisson", rng.poisson(9.0, size=(60_000, 3)) + rng.uniform(size=(60_000, 3))),
    ("gaussian", rng.normal(size=(20_000, 3))),
    ("ward", rng.normal(size=(6_000, 20))),
]
for family, rows in cases:
    times = {{1: [], 2: []}}
    for n_jobs in (1, 2, 1, 2, 1, 2):
        wall, cpu = time.perf_counter(), time.process_time()
        fastrbhc.linkage(rows, family, n_jobs=n_jobs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        times[n_jobs].append((wall, cpu))
    one, two = min(times[1]), min(times[2])
    print(family, *rows.shape, *one, *two)
"""


@pytest.mark.parametrize("n_cores", [1, 2])
def test_cores(n_cores, capsys):
    """Printed, not judged: two threads on one core should take as long as one."""
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
    if len(cores) < n_cores:
        pytest.skip("not so many cores")
    for _ in range(2):  # the first may compile
        output, _ = run(CORES.format(cores=set(cores)))
    with capsys.disabled():
        print(f"\n{n_cores} core(s): two threads over one, wall and CPU time; CPU over wall time")
        for line in output.splitlines():
            family, n, d, *times = line.split()
            wall1, cpu1, wall2, cpu2 = map(float, times)
            ratios = wall2 / wall1, cpu2 / cpu1, cpu2 / wall2
            print(f"  {family} {n} × {d}:", *(f"{ratio:.2f}" for ratio in ratios))


def test_a_process_bound_to_one_core_starts_no_threads():
    code = """
        from fastrbhc._cores import available_cores
        before = available_cores()
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(before, available_cores())
    """
    before, after = map(int, run(code)[0].split())
    assert before >= 1
    assert after == 1
