"""A team: threads that wait inside a kernel for their share of the next short job.

Waking a Python thread and calling a kernel takes a tenth of a millisecond; many rounds of merging
take less. So while a kernel runs, helper threads run `worker_loop`, in which they wait for a
*ticket*, and sharing a round costs a few memory reads.

A ticket is one number that encodes the number of pieces and the next piece, so that one atomic
addition takes a piece and tells whether any was left. The result does not depend on which thread
takes which piece. The leader stores the job, publishes a ticket, takes pieces as well, and waits
until the pieces of all other threads are done. Only then is the job replaced by another.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from fastrbhc._engine.jit import PLAIN_PYTHON, instruction, kernel
from fastrbhc._engine.records import JOB_TYPE, Job, call, call_succeeds, record

# Places in Team.words, two cache lines apart.
_TICKET, _DONE, _JOB, _WORDS = 0, 16, 32, 48
# Bits of a ticket: number of pieces, next piece. Negative: the team is dismissed.
_COUNT_SHIFT, _MASK = 24, (1 << 24) - 1
_DISMISSED = -(1 << 62)
# A thread that waits reads for about ten microseconds. Then it yields its core between reads, and
# after most of a millisecond it sleeps between them, so that others can have the core, or the
# container its share of it.
_READS, _YIELDS = 4000, 2000
_NAP_MICROSECONDS = 50
# With many more threads, the shared cache line becomes the bottleneck.
_LARGEST = 16


@record
class Team:
    """Memory shared by the threads of a team."""

    words: NDArray[np.int64]  # the ticket, the pieces done, and the job
    total: int  # how many elements the job has
    size: int  # how many threads
    failed: bool  # whether the job has raised an exception


def team_of(n_threads: int) -> Team:
    """A team of up to ``n_threads`` threads; of one in plain Python, which has no atomics."""
    size = 1 if PLAIN_PYTHON else min(n_threads, _LARGEST)
    return Team(np.zeros(_WORDS, np.int64), 0, size, False)


def assemble(team: Team) -> None:
    """Reset the team, so that helpers wait for tickets until it is dismissed."""
    team.words[:] = 0


def dismiss(team: Team) -> None:
    """Make the helpers return; no piece may be in progress."""
    team.words[_TICKET] = _DISMISSED


@kernel
def parallel_for(team, job, total, pieces, scratch):
    """Run a job on ``total`` elements, divided into pieces that the team shares."""
    if team.size == 1 or pieces < 2:
        if total > 0:
            call(job, 0, total, scratch)
        return
    words = team.words
    _write_job(words, _JOB, job)
    team.total = total
    _store(words, _DONE, 0)
    _store(words, _TICKET, pieces << _COUNT_SHIFT)
    piece = fetch_add(words, _TICKET, 1) & _MASK
    while piece < pieces:
        first, last = piece * total // pieces, (piece + 1) * total // pieces
        if not call_succeeds(job, first, last, scratch):
            team.failed = True
        fetch_add(words, _DONE, 1)
        piece = fetch_add(words, _TICKET, 1) & _MASK
    looks = 0
    while _load(words, _DONE) < pieces:
        looks += 1
        _pause(looks)
    if team.failed:
        team.failed = False
        call(job, 0, total, scratch)  # raises it here
        raise RuntimeError("a job failed that did not fail again")


@kernel
def worker_loop(team, scratch):
    """Take pieces from every ticket, until the team is dismissed."""
    words, looks = team.words, 0
    while True:
        ticket = _load(words, _TICKET)
        if ticket < 0:
            return
        if (ticket & _MASK) < (ticket >> _COUNT_SHIFT):
            # It may be another ticket by now: the one that the addition returns is valid.
            ticket = fetch_add(words, _TICKET, 1)
            piece, pieces = ticket & _MASK, ticket >> _COUNT_SHIFT
            if ticket >= 0 and piece < pieces:
                total = team.total
                job = _read_job(words, _JOB)
                first, last = piece * total // pieces, (piece + 1) * total // pieces
                if not call_succeeds(job, first, last, scratch):
                    team.failed = True
                fetch_add(words, _DONE, 1)
            looks = 0
        else:
            looks += 1
            _pause(looks)


@kernel
def _pause(looks):
    """Wait a little, the longer the more often one has looked in vain."""
    if looks > _READS + _YIELDS:
        _nap()
    elif looks > _READS:
        _yield_cpu()


# Plain Python, where a team has one member.


def _load(words: Any, place: int) -> Any:
    return words[place]


def _store(words: Any, place: int, value: int) -> None:
    words[place] = value


def fetch_add(words: Any, place: int, amount: int) -> Any:
    """Add to an entry, and return what it was before: one step, whatever other threads do."""
    before = words[place]
    words[place] += amount
    return before


def _yield_cpu() -> None:
    pass


def _nap() -> None:
    pass


def _write_job(words: Any, place: int, job: Job) -> None:
    raise AssertionError("plain Python works alone")


def _read_job(words: Any, place: int) -> Job:
    raise AssertionError("plain Python works alone")


# The same in kernels.


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, [arguments[1]])


@instruction(_load)
def _atomic_load(context: Any, words: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "acquire", 8)

    return types.int64(words, types.intp), code


@instruction(_store)
def _atomic_store(context: Any, words: Any, place: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(words, types.intp, types.int64), code


@instruction(fetch_add)
def _atomic_add(context: Any, words: Any, place: Any, amount: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, arguments[2], "acq_rel")

    return types.int64(words, types.intp, types.int64), code


def _call_system(name: str, kinds: list[Any], values: list[Any]) -> Any:
    """Code that calls a function of the C library; none on Windows, which has no such functions."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform != "win32":
            kind = ir.FunctionType(ir.IntType(32), kinds)
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, values)
        return context.get_dummy_value()

    return types.void(), code


@instruction(_yield_cpu)
def _sched_yield(context: Any) -> Any:
    return _call_system("sched_yield", [], [])


@instruction(_nap)
def _usleep(context: Any) -> Any:
    number = ir.IntType(32)
    return _call_system("usleep", [number], [ir.Constant(number, _NAP_MICROSECONDS)])


@instruction(_write_job)
def _store_job(context: Any, words: Any, place: Any, job: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        kind = context.get_value_type(JOB_TYPE).as_pointer()
        builder.store(arguments[2], builder.bitcast(pointer, kind))
        return context.get_dummy_value()

    return types.void(words, types.intp, job), code


@instruction(_read_job)
def _load_job(context: Any, words: Any, place: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        kind = context.get_value_type(JOB_TYPE).as_pointer()
        return builder.load(builder.bitcast(pointer, kind))

    return JOB_TYPE(words, types.intp), code
