"""Jobs shared by threads that wait in kernels: every piece once, whoever takes it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fastrbhc._engine import team as _team
from fastrbhc._engine.jit import config, kernel
from fastrbhc._engine.records import Job, call, record, replaced
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads


@record
class Counting:
    """How often each element was done."""

    done: NDArray[np.int64]


@record
class Squares:
    """Numbers, and a place for their squares."""

    numbers: NDArray[np.float64]
    squares: NDArray[np.float64]


@record
class OwnCount:
    """How many elements one thread has done."""

    done: int


@record
class Rounds:
    """Two independent jobs, and a team."""

    jobs: tuple[Job, Job]
    count: int
    pieces: int
    team: Team


@kernel
def count_elements(counting, first, last, scratch):
    for place in range(first, last):
        counting.done[place] += 1
        scratch.done += 1


@kernel
def square_elements(squares, first, last, scratch):
    for place in range(first, last):
        squares.squares[place] = squares.numbers[place] ** 2
        scratch.done += 1


@kernel
def fail_at_six(counting, first, last, scratch):
    for place in range(first, last):
        scratch.done += 1
        if place == 6:
            raise ValueError("six")


@kernel
def take_turns(rounds, n_rounds, scratch):
    first, second = rounds.jobs
    for turn in range(n_rounds):
        job = first if turn % 2 == 0 else second
        parallel_for(rounds.team, job, rounds.count, rounds.pieces, scratch)


@kernel
def call_some(rounds, first, last, scratch):
    call(rounds.jobs[0], first, last, scratch)


def two_jobs(n_threads, count, pieces):
    counting = Counting(np.zeros(count, np.int64))
    squares = Squares(np.arange(count) + 0.5, np.zeros(count))
    scratch = OwnCount(0)
    jobs = Job(count_elements, counting, scratch), Job(square_elements, squares, scratch)
    return counting, squares, Rounds(jobs, count, pieces, team_of(n_threads))


def own_counts(n_threads):
    return [OwnCount(0) for _ in range(n_threads)]


@pytest.mark.fast
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("count", "pieces"), [(0, 0), (1, 1), (2, 2), (7, 3), (100, 100), (3, 8)])
def test_every_element_once_a_round(n_threads, count, pieces):
    n_rounds = 300 if not config.DISABLE_JIT else 10
    counting, squares, rounds = two_jobs(n_threads, count, pieces)
    scratches = own_counts(n_threads)
    with Threads(scratches) as threads:
        for _ in range(3):  # the same team, assembled again
            with threads.helping(rounds.team) as scratch:
                take_turns(rounds, n_rounds, scratch)
    assert (counting.done == 3 * n_rounds // 2).all()
    np.testing.assert_array_equal(squares.squares, squares.numbers**2)
    assert sum(scratch.done for scratch in scratches) == 3 * n_rounds * count


def test_helpers_help():
    counting, _, rounds = two_jobs(2, 50, 50)
    assert rounds.team.size == 2
    scratches = own_counts(2)
    with Threads(scratches) as threads:
        while scratches[1].done == 0:  # it may take a while until a core is free
            with threads.helping(rounds.team) as scratch:
                take_turns(rounds, 30_000, scratch)
    assert sum(scratch.done for scratch in scratches) == 2 * counting.done.sum()


@pytest.mark.fast
def test_an_error_of_the_leader_lets_the_helpers_go():
    counting, _, rounds = two_jobs(3, 5, 5)
    with Threads(own_counts(3)) as threads:
        with pytest.raises(KeyboardInterrupt), threads.helping(rounds.team):
            raise KeyboardInterrupt
        with threads.helping(rounds.team) as scratch:
            take_turns(rounds, 3, scratch)
    assert (counting.done == 2).all()


@pytest.mark.fast
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_an_exception_of_a_job_is_heard(n_threads):
    """Whichever thread it occurs in; and the team still works afterwards."""
    counting, _, rounds = two_jobs(n_threads, 10, 10)
    failing = Job(fail_at_six, counting, OwnCount(0))
    broken = replaced(rounds, jobs=(rounds.jobs[0], failing))
    with Threads(own_counts(n_threads)) as threads:
        for _ in range(20):
            with pytest.raises(ValueError, match="six"), threads.helping(rounds.team) as scratch:
                take_turns(broken, 2, scratch)
        counting.done[:] = 0
        with threads.helping(rounds.team) as scratch:
            take_turns(rounds, 2, scratch)
    assert (counting.done == 1).all()
    with pytest.raises(ValueError, match="six"):
        call_some(replaced(rounds, jobs=(failing, failing)), 0, 7, OwnCount(0))


@pytest.mark.fast
def test_a_job_does_the_same_for_python_and_for_kernels():
    counting, _, rounds = two_jobs(1, 10, 1)
    scratch = OwnCount(0)
    rounds.jobs[0](2, 5, scratch)
    call_some(rounds, 4, 8, scratch)
    assert counting.done.tolist() == [0, 0, 1, 1, 2, 1, 1, 1, 0, 0]
    assert scratch.done == 7


@pytest.mark.fast
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_python_threads_share_jobs_too(n_threads):
    """As they do for a job so long that it has to be interruptible."""
    counting, _, rounds = two_jobs(n_threads, 1000, 1)
    with Threads(own_counts(n_threads)) as threads:
        threads.run(rounds.jobs[0], 1000, 1.0)
    assert (counting.done == 1).all()


@pytest.mark.fast
def test_a_team_is_not_larger_than_what_one_word_can_serve():
    assert team_of(1).size == 1
    assert team_of(1000).size == (1 if config.DISABLE_JIT else _team._LARGEST)
