"""Where the tasks run: here, one after another, or on the workers of a Dask client."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from fastrbhc._optional import require
from fastrbhc.distributed._memory import limit_of_workers

Task = Sequence[Any]


class Runner(Protocol):
    """Calls a function for each of several tasks."""

    n_at_a_time: int  # tasks that run at the same time
    n_threads: int  # threads of each
    shared: bool  # whether other processes run them
    memory_limit: int | None  # what a task may take, if that is known

    def map(
        self, function: Callable[..., Any], tasks: Iterable[Task], done: Callable[[int], None]
    ) -> list[Any]:
        """The results in the order of the tasks; ``done`` is told how many there are so far."""

    def check_shared(self, path: Path, text: str) -> None:
        """Refuse a folder whose file with this text is not what the tasks see at the path."""


class Here:
    """Tasks one after another, in this process."""

    n_at_a_time, shared = 1, False
    memory_limit: int | None = None

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def map(
        self, function: Callable[..., Any], tasks: Iterable[Task], done: Callable[[int], None]
    ) -> list[Any]:
        results = []
        for task in tasks:
            results.append(function(*task))
            done(len(results))
        return results

    def check_shared(self, path: Path, text: str) -> None:
        pass


class OnDask:
    """Tasks on the workers of a client, which repeats those of workers that are lost.

    Tasks that raise an error are not repeated: a faulty row stays faulty.
    """

    n_threads, shared = 1, True

    def __init__(self, client: Any) -> None:
        if getattr(client, "asynchronous", False):
            raise ValueError("an asynchronous Dask client cannot be waited for: start a usual one")
        self._client = client
        # By default late versions tell of five workers only. Early ones have no such argument, and
        # ignore it.
        workers = list(client.scheduler_info(n_workers=-1)["workers"].values())
        if not workers:
            raise ValueError("the Dask client has no workers: start some, or leave client= out")
        self.n_at_a_time = sum(worker["nthreads"] for worker in workers)
        self.memory_limit: int | None = limit_of_workers(workers)

    def map(
        self, function: Callable[..., Any], tasks: Iterable[Task], done: Callable[[int], None]
    ) -> list[Any]:
        # Not pure: a call may be repeated because its files are gone.
        return self._results(
            (self._client.submit(function, *task, pure=False) for task in tasks), done
        )

    def compute(self, values: Sequence[Any], done: Callable[[int], None]) -> list[Any]:
        """The values of delayed objects."""
        return self._results(self._client.compute(list(values)), done)

    def _results(self, submitted: Iterable[Any], done: Callable[[int], None]) -> list[Any]:
        distributed = require("distributed", "work on a Dask cluster")
        futures: list[Any] = []
        try:
            for future in submitted:
                futures.append(future)
            places = {future.key: place for place, future in enumerate(futures)}
            results: list[Any] = [None] * len(futures)
            for count, future in enumerate(distributed.as_completed(futures), start=1):
                # At once: results go together with a worker that is lost.
                results[places[future.key]] = future.result()
                done(count)
            return results
        except distributed.KilledWorker as error:
            raise RuntimeError(
                f"the workers that ran a task died one after another, {error.allowed_failures + 1} "
                "of them. Most often they had too little memory: give a lower memory_limit=. What "
                "is finished is used again if the call is repeated with the same scratch="
            ) from error
        except BaseException:
            # After an error or Ctrl-C the others are not wanted any more.
            with contextlib.suppress(Exception):
                self._client.cancel([future for future in futures if not future.done()])
            raise

    def check_shared(self, path: Path, text: str) -> None:
        for address, found in self._client.run(_read, str(path)).items():
            if found != text:
                raise ValueError(
                    f"the worker {address} does not see the folder {path.parent}: give one that "
                    "all workers see as scratch="
                )


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


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
