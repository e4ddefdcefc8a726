"""Threads that share a range: every element once, errors raised, scratch memory not shared."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastrbhc._engine import threads as _threads
from fastrbhc._engine.records import replaced
from fastrbhc._engine.team import team_of
from fastrbhc._engine.threads import Threads

pytestmark = pytest.mark.fast

every_count = pytest.mark.parametrize("count", [1, 2, 3, 8])
LONG = 1.0  # claimed seconds per element, so that all threads are woken


@every_count
@pytest.mark.parametrize("seconds", [1e-9, 1e-4, LONG])
@pytest.mark.parametrize("total", [0, 1, 2, 7, 100, 12_345])
def test_every_element_once(count, total, seconds):
    calls = []
    with Threads([None] * count) as threads:
        threads.run(lambda *call: calls.append(call[:2]), total, seconds)
    visits = np.zeros(total, int)
    for start, stop in calls:
        assert 0 <= start < stop <= total
        visits[start:stop] += 1
    assert (visits == 1).all()


def test_one_pool_for_many_ranges():
    done = np.zeros(50, int)

    def count_up(start, stop, scratch):
        done[start:stop] += 1

    with Threads([None] * 3) as threads:
        for _ in range(20):
            threads.run(count_up, done.size, LONG)
    assert (done == 20).all()


def test_long_work_is_cut_so_that_an_interrupt_is_heard():
    pieces = []
    with Threads([None]) as threads:
        threads.run(lambda start, stop, _: pieces.append(stop - start), 100, 0.01)
    assert pieces[0] == 2  # 0.02 seconds, and not everything that one thread could have taken


def test_short_work_stays_in_the_calling_thread():
    names = set()
    with Threads([None] * 4) as threads:
        threads.run(lambda *_: names.add(threading.get_ident()), 1000, 1e-9)
    assert names == {threading.get_ident()}


def test_long_work_is_done_by_several_threads():
    """Each thread waits until all have arrived."""
    meeting = threading.Barrier(3)
    with Threads([None] * 3) as threads:
        threads.run(lambda *_: meeting.wait(timeout=60.0), 3, LONG)
    assert not meeting.broken


@every_count
def test_scratch_memory_is_not_shared(count):
    """Whoever finds a mark that is not its own has met another thread."""
    scratches = [[] for _ in range(count)]
    strangers = []

    def work(start, stop, scratch):
        scratch.append(threading.get_ident())
        time.sleep(1e-4)
        if set(scratch) != {threading.get_ident()}:
            strangers.append(scratch)

    with Threads(scratches) as threads:
        threads.run(work, 200, LONG)
    assert not strangers
    assert set(scratches[0]) <= {threading.get_ident()}
    assert any(scratches)


@every_count
def test_the_last_report_is_of_all(count):
    """Even if another thread was faster and did everything."""
    for _ in range(20):
        reports = []
        with Threads([None] * count) as threads:
            threads.run(lambda *_: None, 3, LONG, reports.append)
        assert reports[-1] == 3
        assert reports == sorted(reports)


def test_time_is_told_for_one_element():
    with Threads([None] * 2) as threads:
        took = threads.run(lambda start, stop, _: time.sleep(1e-3 * (stop - start)), 40, 1e-3)
        assert threads.run(lambda *_: None, 0, 7.0) == 7.0
    assert took >= 1e-3  # of all threads together


class WorkError(Exception):
    pass


@pytest.mark.parametrize("error", [WorkError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_errors_are_heard_and_all_threads_end(where, error):
    before = threading.active_count()
    here = threading.get_ident()
    raised = threading.Event()

    def work(start, stop, scratch):
        if (threading.get_ident() == here) == (where == "here"):
            raised.set()
            raise error("at work")
        raised.wait(timeout=60.0)

    threads = Threads([None] * 3)
    with pytest.raises(error, match="at work"), threads:
        threads.run(work, 1000, LONG)
    assert raised.is_set()
    assert threading.active_count() == before


def test_an_error_in_the_main_thread_stops_the_others_soon():
    here, done = threading.get_ident(), []
    begun = threading.Event()

    def work(start, stop, scratch):
        if threading.get_ident() == here:
            begun.wait(timeout=60.0)
            raise WorkError
        begun.set()
        time.sleep(1e-4 * (stop - start))
        done.append(stop - start)

    with pytest.raises(WorkError), Threads([None] * 2) as threads:
        threads.run(work, 20_000, LONG)
    assert sum(done) < 10_000


@every_count
def test_errors_of_a_single_range_leave_the_pool_of_use(count):
    done = []

    def fail(start, stop, scratch):
        raise WorkError

    with Threads([None] * count) as threads:
        with pytest.raises(WorkError):
            threads.run(fail, 100, LONG)
        threads.run(lambda start, stop, _: done.extend(range(start, stop)), 100, LONG)
    assert sorted(done) == list(range(100))


def test_fewer_threads_where_no_more_can_be_started(monkeypatch):
    """All of the work is done, by those that could."""
    started = []
    start = threading.Thread.start

    def start_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    monkeypatch.setattr(_threads, "worker_loop", wait_until_dismissed)
    before, done = threading.active_count(), np.zeros(50, int)

    def count_up(start, stop, scratch):
        done[start:stop] += 1

    with Threads([[], [], [], [], []]) as threads:
        assert threads.count == len(threads.scratches) == 3
        threads.run(count_up, done.size, LONG)
        with threads.helping(team_of(5)) as scratch:
            assert scratch is threads.scratches[0]
    assert (done == 1).all()
    assert threading.active_count() == before


def test_no_threads_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(_threads, "_is_room_for_a_thread", lambda: False)
    with Threads([None] * 3) as threads:
        assert threads.count == 1


@pytest.mark.skipif(_threads.resource is None, reason="no limits on Windows")
def test_room_is_looked_for_where_it_is_limited(monkeypatch):
    resource = _threads.resource
    assert _threads._is_room_for_a_thread()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**40, resource.RLIM_INFINITY))
    assert _threads._is_room_for_a_thread()
    monkeypatch.setattr(_threads, "_THREAD_BYTES", 2**60)
    assert not _threads._is_room_for_a_thread()


def test_a_helper_that_does_not_begin_is_not_waited_for(monkeypatch):
    """It has to be something else that keeps it; all is done without it."""
    done, free = np.zeros(50, int), threading.Event()

    def count_up(start, stop, scratch):
        done[start:stop] += 1

    monkeypatch.setattr(_threads, "worker_loop", wait_until_dismissed)
    with Threads([None] * 2) as threads:
        threads._helpers[0].submit(free.wait, 60.0)
        threads.run(count_up, done.size, LONG)
        with threads.helping(replaced(team_of(1), size=2)):
            pass
        assert not free.is_set()
        free.set()
    assert (done == 1).all()


def test_an_error_of_a_helper_stops_all():
    here, done = threading.get_ident(), []
    raised = threading.Event()

    def work(start, stop, scratch):
        if threading.get_ident() != here:
            raised.set()
            raise WorkError
        raised.wait(timeout=60.0)
        time.sleep(1e-4 * (stop - start))
        done.append(stop - start)

    with pytest.raises(WorkError), Threads([None] * 2) as threads:
        threads.run(work, 20_000, LONG)
    assert sum(done) < 10_000


@pytest.mark.parametrize(
    "call_helpers",
    [
        lambda threads: threads.run(lambda *_: time.sleep(1e-3), 10**6, LONG),
        lambda threads: threads.helping(replaced(team_of(1), size=3)).__enter__(),
    ],
)
def test_ctrl_c_while_the_helpers_are_called(call_helpers, monkeypatch):
    """After the first has been, and before the second; both are let go."""
    before, calls = threading.active_count(), []
    submit = ThreadPoolExecutor.submit

    def submit_once(pool, *call):
        if calls:
            raise KeyboardInterrupt
        calls.append(call)
        return submit(pool, *call)

    threads = Threads([None] * 3)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_once)
    monkeypatch.setattr(_threads, "worker_loop", wait_until_dismissed)
    with pytest.raises(KeyboardInterrupt), threads:
        call_helpers(threads)
    assert threading.active_count() == before


def wait_until_dismissed(team, scratch):
    while team.words[0] >= 0:
        time.sleep(1e-3)
