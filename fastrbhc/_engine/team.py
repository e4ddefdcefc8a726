"""A team: threads that wait inside a kernel for their share of the next short piece of work.

Waking a Python thread and calling a kernel takes a tenth of a millisecond; many rounds of merging
are over in less. So for as long as a kernel runs, helpers run another one beside it, in which they
wait for a *ticket*, and a round is shared at the cost of a few reads of memory.

A ticket is one number: the kind of work, how many pieces there are, and the next piece to be
taken, so that one atomic addition takes a piece and tells what it is. Who takes which piece does
not matter to the result. The leader, who publishes a ticket, takes pieces as well, and waits until
those that others have taken are done.

What is shared is described by a *crew*, a record with a field ``team`` and the method
``work(crew, kind, piece, scratch)``, run inside kernels.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from fastrbhc._engine.jit import config, contract, instruction, kernel

# Places in Team.words, far enough from each other for two lines of the cache.
_TICKET, _DONE, _WORDS = 0, 16, 32
# Bits of a ticket: kind, number of pieces, next piece. Negative: the team is dismissed.
_KIND_SHIFT, _COUNT_SHIFT, _MASK = 48, 24, (1 << 24) - 1
_DISMISSED = -(1 << 62)
# Looks at a ticket, some ten microseconds, before a helper lets others have its core.
_PATIENCE = 4000
# With many more, the common line of the cache becomes the bottleneck.
_LARGEST = 16


class Team(NamedTuple):
    """The words that its members share, and how many they are."""

    words: NDArray[np.int64]
    size: int


def team_of(n_threads: int) -> Team:
    """A team of so many threads; plain Python cannot share words, and works alone."""
    return Team(np.zeros(_WORDS, np.int64), 1 if config.DISABLE_JIT else min(n_threads, _LARGEST))


def assemble(team: Team) -> None:
    """Let helpers wait, until the team is dismissed."""
    team.words[:] = 0


def dismiss(team: Team) -> None:
    """Let the helpers go; no piece may be under way."""
    team.words[_TICKET] = _DISMISSED


@contract
def work(crew, kind, piece, scratch):
    """One piece of work, a method of every crew."""


@kernel
def together(crew, kind, count, scratch):
    """Do all pieces of a kind of work, with the help of the team."""
    words = crew.team.words
    if crew.team.size == 1 or count < 2:
        for piece in range(count):
            work(crew, kind, piece, scratch)
        return
    _store(words, _DONE, 0)
    _store(words, _TICKET, (kind << _KIND_SHIFT) | (count << _COUNT_SHIFT))
    piece = _add_one(words, _TICKET) & _MASK
    while piece < count:
        work(crew, kind, piece, scratch)
        _add_one(words, _DONE)
        piece = _add_one(words, _TICKET) & _MASK
    looks = 0
    while _load(words, _DONE) < count:
        looks += 1
        if looks > _PATIENCE:
            _let_others_run()


@kernel
def assist(crew, scratch):
    """Take pieces from every ticket, until the team is dismissed."""
    words, looks = crew.team.words, 0
    while True:
        ticket = _load(words, _TICKET)
        if ticket < 0:
            return
        if (ticket & _MASK) < ((ticket >> _COUNT_SHIFT) & _MASK):
            # By now it may be another ticket: what counts is the one that is added to.
            ticket = _add_one(words, _TICKET)
            if ticket >= 0 and (ticket & _MASK) < ((ticket >> _COUNT_SHIFT) & _MASK):
                work(crew, ticket >> _KIND_SHIFT, ticket & _MASK, scratch)
                _add_one(words, _DONE)
            looks = 0
        else:
            looks += 1
            if looks > _PATIENCE:
                _let_others_run()


def _load(words: Any, place: int) -> Any:
    return words[place]


def _store(words: Any, place: int, value: int) -> None:
    words[place] = value


def _add_one(words: Any, place: int) -> Any:
    words[place] += 1
    return words[place] - 1


def _let_others_run() -> None:
    pass


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, [arguments[1]])


@instruction(_load)
def _atomic_load(context: Any, words: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "acquire", 8)

    return types.int64(words, types.intp), generate


@instruction(_store)
def _atomic_store(context: Any, words: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(words, types.intp, types.int64), generate


@instruction(_add_one)
def _atomic_add(context: Any, words: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(words, types.intp), generate


@instruction(_let_others_run)
def _sched_yield(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform != "win32":  # where there is no such function
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
