"""Ctrl-C while a kernel is compiled: never lost, and nothing half done is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from test_kernel_cache import environment

import fastrbhc
from fastrbhc._engine import interrupts, kernel_cache
from fastrbhc._engine.compilations import listening
from fastrbhc._engine.compiler import Program
from fastrbhc._engine.jit import PLAIN_PYTHON, kernel

pytestmark = pytest.mark.skipif(PLAIN_PYTHON, reason="nothing is compiled")


def press_ctrl_c(*_):
    signal.raise_signal(signal.SIGINT)


def nothing(*_):
    pass


@pytest.fixture(autouse=True)
def usual_handler(monkeypatch):
    monkeypatch.setattr(kernel_cache, "_CACHE_WANTED", False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after is signal.default_int_handler


@pytest.fixture
def two_kernels():
    """A kernel that Python calls, and the one that it calls; neither compiled so far."""

    @kernel
    def inner(x):
        return 2.0 * x

    @kernel
    def outer(x):
        return inner(x) + 1.0

    return outer, inner


def test_in_a_callback_of_llvm(two_kernels, monkeypatch):
    """Python prints an exception in such a callback, and ignores it."""
    outer, _ = two_kernels
    outer(1.0)
    [version] = outer.program.overloads.values()
    engine = version.library.codegen._engine._ee
    monkeypatch.setattr(engine, "_object_cache_notify", press_ctrl_c)

    @kernel
    def another(x):
        return outer(x) + 2.0

    with pytest.raises(KeyboardInterrupt):
        another(1.0)
    monkeypatch.undo()
    assert another(1.0) == 5.0


@pytest.mark.parametrize("where", ["begun", "in the midst"])
def test_no_program_is_finished_after_it(two_kernels, where, monkeypatch):
    outer, inner = two_kernels
    if where == "in the midst":
        monkeypatch.setattr(Program, "set_environments", unexpected)
        monkeypatch.setattr(Program, "_everything_below", pressing(Program._everything_below))
    with (
        listening(press_ctrl_c if where == "begun" else nothing, nothing),
        pytest.raises(KeyboardInterrupt),
    ):
        outer(1.0)
    monkeypatch.undo()
    assert not outer.program.overloads
    assert (outer(1.0), inner(3.0), outer(2)) == (3.0, 6.0, 5.0)


def unexpected(*_):
    raise AssertionError("machine code was made")


def pressing(method):
    def press_and_call(*arguments):
        press_ctrl_c()
        return method(*arguments)

    return press_and_call


def test_it_leaves_no_lock_behind(two_kernels):
    outer, inner = two_kernels
    with listening(press_ctrl_c, nothing), pytest.raises(KeyboardInterrupt):
        outer(1.0)
    results = []
    other = threading.Thread(target=lambda: results.append((outer(1.0), inner(1.0))), daemon=True)
    other.start()
    other.join(timeout=60.0)
    assert results == [(3.0, 2.0)]


def test_a_handler_that_does_not_raise(two_kernels):
    calls = []
    handler = lambda number, frame: calls.append(number)  # noqa: E731
    signal.signal(signal.SIGINT, handler)
    with listening(press_ctrl_c, nothing):
        assert two_kernels[0](1.0) == 3.0
    assert calls == [signal.SIGINT]
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is handler


class PressedError(Exception):
    pass


def test_a_handler_with_an_exception_of_its_own(two_kernels):
    """Numba would take it for an error in the kernel."""

    def handler(number, frame):
        raise PressedError("by the user")

    signal.signal(signal.SIGINT, handler)
    with listening(press_ctrl_c, nothing), pytest.raises(PressedError, match=r"^by the user$"):
        two_kernels[0](1.0)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is handler
    assert two_kernels[0](1.0) == 3.0


def test_a_handler_that_sets_another(two_kernels):
    """As `asyncio` and debuggers do; theirs stays."""

    def later(number, frame):
        raise PressedError

    def handler(number, frame):
        signal.signal(signal.SIGINT, later)

    signal.signal(signal.SIGINT, handler)
    with listening(press_ctrl_c, nothing):
        assert two_kernels[0](1.0) == 3.0
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is later


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_other_handlers_are_left_alone(two_kernels, handler):
    found = []
    signal.signal(signal.SIGINT, handler)
    with listening(lambda: found.append(signal.getsignal(signal.SIGINT)), nothing):
        two_kernels[0](1.0)
    assert found == [handler]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_threads_compile_without_handlers(two_kernels):
    found = []
    with listening(lambda: found.append(signal.getsignal(signal.SIGINT)), nothing):
        other = threading.Thread(target=two_kernels[0], args=(1.0,))
        other.start()
        other.join()
    assert found == [signal.default_int_handler]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to threads")
def test_waiting_for_another_thread_that_compiles_ends_at_once(two_kernels):
    outer, _ = two_kernels
    locked, leave = threading.Event(), threading.Event()

    def compile_for_long():
        with interrupts.global_compiler_lock:
            locked.set()
            leave.wait(timeout=60.0)

    other = threading.Thread(target=compile_for_long)
    other.start()
    locked.wait()
    main = threading.main_thread().ident
    finger = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    finger.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            outer(1.0)
        assert not leave.is_set()
    finally:
        leave.set()
        other.join()
        finger.join()
    assert outer(1.0) == 3.0


def test_a_first_call_that_is_interrupted(tmp_path):
    """With nothing on disk; the next call of the same process gives the right value."""
    code = """
        import signal
        import numpy as np
        import fastrbhc
        from fastrbhc._engine.compilations import listening
        signal.signal(signal.SIGINT, signal.default_int_handler)
        X = np.random.default_rng(0).normal(size=(60, 2))
        finished = []
        try:
            with listening(lambda: print("compiling", flush=True), lambda: finished.append(1)):
                fastrbhc.linkage(X, "ward", algorithm="greedy", audit=True)
        except KeyboardInterrupt:
            print(len(finished), flush=True)
        again = fastrbhc.linkage(X, "ward")
        print(again.heights.sum().hex())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "compiling\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    *compiling, finished, total = output.splitlines()
    assert set(compiling) <= {"compiling"}
    assert int(finished) <= 1 + len(compiling) <= 2
    assert process.returncode == 0
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert fastrbhc.linkage(X, "ward").heights.sum().hex() == total
    assert list(Path(tmp_path).rglob("*.nbc"))
    assert not list(Path(tmp_path).rglob("*.tmp.*"))
