"""Threads that wait in kernels: every piece once, whoever takes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from fastrbhc._engine import team as _team
from fastrbhc._engine.jit import compiling_for, config, kernel
from fastrbhc._engine.team import Team, team_of, together
from fastrbhc._engine.threads import Threads


@pytest.fixture(autouse=True)
def in_memory_only():
    """Kernels for a record of this module are of no use to others."""
    with compiling_for(Counting(None, team_of(1))):
        yield


class Counting(NamedTuple):
    """Notes how often each piece of each kind was done, and who did it."""

    done: Any  # (kinds, pieces)
    team: Team

    def work(crew, kind, piece, scratch):
        crew.done[kind, piece] += 1
        scratch[0] += 1


@kernel
def rounds(crew, n_rounds, count, scratch):
    for turn in range(n_rounds):
        together(crew, np.int64(turn % 3), count, scratch)


@pytest.mark.fast
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_every_piece_once_a_round(n_threads, count):
    n_rounds = 300 if not config.DISABLE_JIT else 9
    crew = Counting(np.zeros((3, count), np.int64), team_of(n_threads))
    scratches = [np.zeros(1, np.int64) for _ in range(n_threads)]
    with Threads(scratches) as threads:
        for _ in range(3):  # the same team, assembled anew
            with threads.helping(crew) as scratch:
                rounds(crew, n_rounds, count, scratch)
    assert (crew.done == n_rounds).all()
    assert sum(int(scratch[0]) for scratch in scratches) == 3 * n_rounds * count


def test_helpers_help():
    crew = Counting(np.zeros((3, 50), np.int64), team_of(2))
    assert crew.team.size == 2
    scratches = [np.zeros(1, np.int64) for _ in range(2)]
    with Threads(scratches) as threads:
        while scratches[1][0] == 0:  # it may take a while until a core is free
            with threads.helping(crew) as scratch:
                rounds(crew, 30_000, 50, scratch)
    assert sum(int(scratch[0]) for scratch in scratches) == crew.done.sum()


@pytest.mark.fast
def test_an_error_of_the_leader_lets_the_helpers_go():
    crew = Counting(np.zeros((3, 5), np.int64), team_of(3))
    with Threads([np.zeros(1, np.int64) for _ in range(3)]) as threads:
        with pytest.raises(KeyboardInterrupt), threads.helping(crew):
            raise KeyboardInterrupt
        with threads.helping(crew) as scratch:
            rounds(crew, 3, 5, scratch)
    assert (crew.done == 1).all()


@pytest.mark.fast
def test_a_team_is_not_larger_than_what_one_word_can_serve():
    assert team_of(1).size == 1
    assert team_of(1000).size == (1 if config.DISABLE_JIT else _team._LARGEST)
