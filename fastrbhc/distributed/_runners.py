"""Where the tasks run: here, one after another, or on the workers of a Dask client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from fastrbhc._optional import require

# How often Dask repeats a task that its worker did not survive, or that failed to read a file.
_RETRIES = 2


class Runner(Protocol):
    """Calls a function for each of several tasks."""

    n_at_a_time: int  # tasks that run at the same time
    n_threads: int  # threads of each
    shared: bool  # whether other processes run them
    memory_limit: int | None  # what a task may take, if that is known

    def map(
        self,
        function: Callable[..., Any],
        tasks: Iterable[Sequence[Any]],
        done: Callable[[int], None],
    ) -> list[Any]:
        """The results in the order of the tasks; ``done`` is told how many there are so far."""


class Here:
    """Tasks one after another, in this process."""

    n_at_a_time, shared = 1, False
    memory_limit: int | None = None

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def map(
        self,
        function: Callable[..., Any],
        tasks: Iterable[Sequence[Any]],
        done: Callable[[int], None],
    ) -> list[Any]:
        results = []
        for task in tasks:
            results.append(function(*task))
            done(len(results))
        return results


class OnDask:
    """Tasks on the workers of a client, which repeats those of workers that are lost."""

    n_threads, shared = 1, True

    def __init__(self, client: Any) -> None:
        self._client = client
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise ValueError("the Dask client has no workers: start some, or leave client= out")
        self.n_at_a_time = sum(worker["nthreads"] for worker in workers)
        limits = [worker["memory_limit"] / worker["nthreads"] for worker in workers]
        # Dask pauses a worker at 80 % of its memory.
        self.memory_limit = int(0.6 * min(limits)) if all(limits) else None

    def map(
        self,
        function: Callable[..., Any],
        tasks: Iterable[Sequence[Any]],
        done: Callable[[int], None],
    ) -> list[Any]:
        futures = [
            self._client.submit(function, *task, pure=False, retries=_RETRIES) for task in tasks
        ]
        return self._results(futures, done)

    def compute(self, values: Sequence[Any], done: Callable[[int], None]) -> list[Any]:
        """The values of delayed objects."""
        return self._results(self._client.compute(list(values), retries=_RETRIES), done)

    def _results(self, futures: list[Any], done: Callable[[int], None]) -> list[Any]:
        distributed = require("distributed", "work on a Dask cluster")
        try:
            finished = distributed.as_completed(futures)
            for count, future in enumerate(finished, start=1):
                if future.status != "finished":
                    future.result()  # raises the error of the task
                done(count)
            results: list[Any] = self._client.gather(futures)
            return results
        finally:
            # After an error or Ctrl-C the others are not wanted any more.
            self._client.cancel([future for future in futures if not future.done()])


def runner_for(data: Any, client: Any, n_threads: int) -> Runner:
    """The workers of the client that was given, or is current for a Dask collection; or here."""
    if client is None and is_dask(data):
        try:
            from distributed import get_client

            client = get_client()
        except (ImportError, ValueError):
            pass
    if client is None:
        return Here(n_threads)
    if not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client has to be a dask.distributed.Client, got {type(client).__name__}")
    return OnDask(client)


def is_dask(data: Any) -> bool:
    """Whether it is an array or a data frame of Dask."""
    return hasattr(data, "dask") and hasattr(data, "to_delayed")
