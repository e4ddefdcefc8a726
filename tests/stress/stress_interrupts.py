"""Ctrl-C at any moment: answered soon, and the process goes on as if nothing had happened."""

from __future__ import annotations

import pytest
from processes import interrupted, run

# Prints "started" when a stage of the progress bar begins, and Ctrl-C can be pressed.
STAGE = """
from fastrbhc import _progress

def started(self, stage, done):
    if stage == {stage!r} and not self.__dict__.setdefault("told", False):
        self.told = True
        print("started", flush=True)

rng = np.random.default_rng(1)
warnings.simplefilter("ignore")
{prepare}
reference = digests()
usual, _progress.Progress.__call__ = _progress.Progress.__call__, started
try:
    {work}
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("answered", flush=True)
    _progress.Progress.__call__ = usual
    print(digests() == reference, threading.active_count())
"""

COUNTS = "Y = rng.poisson(rng.gamma(2.0, 4.0, size=(30_000, 1)), size=(30_000, 30)).astype(float)"

STAGES = {
    "audit": (
        "Y = rng.normal(size=(12_000, 12))",
        "fastrbhc.linkage(Y, 'gaussian', algorithm='nn_chain', threshold=8.0, audit=True)",
    ),
    "evidence": (
        "Y = rng.normal(size=(2_500, 6))",
        "fastrbhc.BHC('gaussian', hyperparameters='evidence').fit(Y)",
    ),
    "neighbours": (COUNTS, "fastrbhc.linkage(Y, 'poisson')"),
    "merging": (COUNTS, "fastrbhc.linkage(Y, 'poisson')"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_during_long_work(stage, capsys):
    prepare, work = STAGES[stage]
    code = STAGE.format(stage=stage, prepare=prepare, work=work)
    taken = []
    for delay in (0.05, 0.7, 1.5):
        seconds, rest = interrupted(code, delay)
        assert rest == ["True", "1"]
        taken.append(seconds)
    with capsys.disabled():
        print(f"\n{stage}: answered after", *(f"{seconds:.2f} s" for seconds in taken))


COMPILING = """
from fastrbhc._engine.compilations import listening

told = []
def begun():
    if not told:
        print("started", flush=True)
    told.append(1)

try:
    with listening(begun, lambda: None):
        digests()
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("answered", flush=True)
    results = []
    other = threading.Thread(target=lambda: results.append(digests()))
    other.start()
    other.join()
    print(*results, threading.active_count())
"""


def test_while_compiling(tmp_path, capsys):
    reference, _ = run("print(digests())", cache=tmp_path / "reference")
    taken = []
    for k, delay in enumerate((0.0, 0.5, 2.2, 5.1)):
        seconds, rest = interrupted(COMPILING, delay, cache=tmp_path / str(k))
        assert rest == [*reference.split(), "1"]
        taken.append(seconds)
        assert not list((tmp_path / str(k)).rglob("*.tmp.*"))
    with capsys.disabled():
        print("\ncompiling: answered after", *(f"{seconds:.2f} s" for seconds in taken))
