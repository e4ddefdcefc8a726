"""Threads that share a range of independent pieces of work.

Kernels release the interpreter lock, so plain Python threads run them in parallel. Pieces are small
enough for Ctrl-C to act promptly, and large enough to be worth a call.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from fastrbhc._engine.team import Team, assemble, dismiss, worker_loop

# Target duration of one call: balances the load, and lets Ctrl-C act promptly.
_PIECE_SECONDS = 0.02
# Shorter work is divided into one piece per thread.
_ONE_PIECE_SECONDS = 2e-3
# Address space for a thread: its stack, twice what the C library reserves, and a little to begin.
_THREAD_BYTES = (8 + 2 * 64 + 8) * 2**20
# Waking a thread and waiting for it costs about a tenth of this.
_WORTH_A_THREAD_SECONDS = 5e-4


class Threads:
    """Calls work(start, stop, scratch) for parts of a range, on several threads.

    Every thread has scratch memory of its own. ``work`` must not depend on how the range is
    divided, so that the result does not depend on the number of threads.
    """

    def __init__(self, scratches: list[Any]) -> None:
        self._helpers = _started(len(scratches) - 1)
        self.scratches = scratches[: 1 + len(self._helpers)]
        self.count = len(self.scratches)

    def run(
        self,
        work: Callable[[int, int, Any], None],
        total: int,
        seconds: float,
        report: Callable[[int], None] = lambda begun: None,
    ) -> float:
        """Do all of the work; ``seconds`` is the expected time per element. Returns the actual one.

        Only the calling thread reports how many elements have been begun.
        """
        if total == 0:
            return seconds
        several = self.count > 1 and total * seconds > _WORTH_A_THREAD_SECONDS
        # At least four pieces per thread, so that none waits long for the others, unless the call
        # itself, a few microseconds, would take longer.
        pieces = 1 if total * seconds < _ONE_PIECE_SECONDS else 4
        largest = -(-total // (pieces * self.count)) if several else total
        begun = 0
        lock = threading.Lock()
        interrupted = False

        def take_turns(scratch: Any) -> tuple[float, int]:
            nonlocal begun, interrupted
            begin, done = time.perf_counter(), 0
            each = seconds
            try:
                while not interrupted:
                    size = min(largest, max(1, int(_PIECE_SECONDS / each)))
                    with lock:
                        start, begun = begun, begun + size
                    if start >= total:
                        break
                    stop = min(total, start + size)
                    work(start, stop, scratch)
                    done += stop - start
                    if scratch is self.scratches[0]:
                        report(min(begun, total))
                    # Bounded from below: if the first were easy, pieces would become too long.
                    each = max((time.perf_counter() - begin) / done, 0.1 * each)
            except BaseException:
                interrupted = True  # the others need not go on
                raise
            return time.perf_counter() - begin, done

        if not several:
            return take_turns(self.scratches[0])[0] / total
        jobs: list[Future[tuple[float, int]]] = []
        try:
            for helper, scratch in zip(self._helpers, self.scratches[1:], strict=True):
                jobs.append(helper.submit(take_turns, scratch))
            busy = take_turns(self.scratches[0])[0]
        except BaseException:
            interrupted = True  # also if Ctrl-C came before the first turn
            raise
        finally:
            others = [seconds for seconds, _ in _results(jobs)]
        report(total)  # the last pieces may have been taken by others
        return (busy + sum(others)) / total

    @contextlib.contextmanager
    def helping(self, team: Team) -> Iterator[Any]:
        """Let the other threads help the team; yields the scratch memory of the leading kernel."""
        if team.size == 1 or self.count == 1:
            yield self.scratches[0]
            return
        jobs: list[Future[None]] = []
        assemble(team)
        try:
            for helper, scratch in zip(self._helpers, self.scratches[1 : team.size], strict=False):
                jobs.append(helper.submit(worker_loop, team, scratch))
            yield self.scratches[0]
        finally:
            dismiss(team)
            _results(jobs)

    def close(self) -> None:
        for helper in self._helpers:
            helper.shutdown()

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _results(jobs: list[Future[Any]]) -> list[Any]:
    """Wait for the jobs that have been begun, and drop the others: there is nothing left to do."""
    begun = [job for job in jobs if not job.cancel()]
    wait(begun)
    return [job.result() for job in begun]


def _started(count: int) -> list[ThreadPoolExecutor]:
    """Up to ``count`` threads, each a pool of its own, so that no later call has to start one.

    Where memory or the number of processes is limited, there may be fewer. The work is then shared
    by those that could be started.
    """
    helpers: list[ThreadPoolExecutor] = []
    try:
        while len(helpers) < count and _is_room_for_a_thread():
            helpers.append(ThreadPoolExecutor(1))
            helpers[-1].submit(int)
    except (RuntimeError, MemoryError):
        helpers.pop().shutdown(wait=False)
    except BaseException:
        for helper in helpers:
            helper.shutdown(wait=False)
        raise
    return helpers


def _is_room_for_a_thread() -> bool:
    """Whether a thread can be started within the limit of address space, if there is one.

    A thread that finds no memory for its first call ends, and Python waits for it forever.
    """
    if resource is None or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    try:
        mmap.mmap(-1, _THREAD_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True
