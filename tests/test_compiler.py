"""Kernels: fragments for other kernels, programs for Python, and the cache on disk."""

from __future__ import annotations

import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_kernel_cache import copy_package, printed

from fastrbhc._engine.compiler import Fragment, Program
from fastrbhc._engine.jit import PLAIN_PYTHON, fused_kernel, kernel

compiled_only = pytest.mark.skipif(PLAIN_PYTHON, reason="nothing is compiled")


@kernel
def square(x):
    return x * x


@kernel
def sum_of_squares(x, y):
    return square(x) + square(y)


@kernel
def fourth_power(x):
    return square(square(x))


@kernel
def checked_root(x):
    if x < 0.0:
        raise ValueError("negative")
    return np.sqrt(x)


@kernel
def sum_of_roots(x, y):
    return checked_root(x) + checked_root(y)


@kernel
def count_digits(n):
    return 1 if n < 10 else 1 + count_digits_of_rest(n // 10)


@kernel
def count_digits_of_rest(n):
    digits = 1
    while n >= 10:
        n //= 10
        digits += 1
    return digits


def libraries(function):
    """The compiled form of each version of a kernel, as called by kernels and by Python."""
    fragments = [version.library for version in function.overloads.values()]
    programs = [version.library for version in function.program.overloads.values()]
    return fragments, programs


@pytest.mark.fast
def test_a_fragment_is_part_of_two_programs():
    assert sum_of_squares(3.0, 4.0) == 25.0
    assert fourth_power(3.0) == 81.0
    assert sum_of_squares(3, 4) == 25
    assert type(fourth_power(2)) is int


@pytest.mark.fast
def test_a_kernel_serves_kernels_and_python():
    assert fourth_power(2.0) == 16.0
    assert square(5.0) == 25.0
    assert fourth_power(3.0) == 81.0
    assert square(np.float64(5.0)) == 25.0


@pytest.mark.fast
def test_a_kernel_that_is_defined_after_its_caller():
    assert [count_digits(n) for n in (7, 10, 12345)] == [1, 2, 5]


@pytest.mark.fast
def test_a_kernel_that_raises():
    assert sum_of_roots(4.0, 9.0) == 5.0
    for function, arguments in [(checked_root, (-1.0,)), (sum_of_roots, (4.0, -9.0))]:
        with pytest.raises(ValueError, match="negative"):
            function(*arguments)
    assert sum_of_roots(4.0, 9.0) == 5.0


@compiled_only
def test_machine_code_is_made_of_programs_only():
    @kernel
    def inner(x):
        return x + 1.0

    @kernel
    def outer(x):
        return inner(x) * inner(2.0 * x)

    assert outer(3.0) == 28.0
    [fragment], no_programs = libraries(inner)
    no_fragments, [program] = libraries(outer)
    assert isinstance(fragment, Fragment)
    assert isinstance(program, Program)
    assert no_programs == no_fragments == []
    assert fragment.texts
    assert not fragment._finalized
    # A program exports only one function, its own.
    exported = [line for line in program.get_llvm_str().splitlines() if line.startswith("define ")]
    assert not any("inner" in line and "internal" not in line for line in exported)


@compiled_only
def test_types_of_arguments_make_versions():
    @kernel
    def inner(x):
        return x + x

    @kernel
    def outer(x):
        return inner(x) + inner(1)

    for _ in range(3):
        assert (outer(1.5), outer(2), outer(np.float64(0.5))) == (5.0, 6, 3.0)
    assert len(outer.program.overloads) == 2
    assert len(inner.overloads) == 2  # constants do not have separate versions


@compiled_only
def test_exact_values_do_not_depend_on_who_asks_first():
    """A bound with fused products calls a kernel without them."""
    a, b, c = 1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0

    @kernel
    def exact(a, b, c):
        return a * b + c

    @fused_kernel
    def bound(a, b, c):
        return 2.0 * exact(a, b, c)

    assert bound(a, b, c) == exact(a, b, c) == a * b + c == 0.0


@compiled_only
def test_threads_that_call_for_the_first_time_at_once():
    for _ in range(5):

        @kernel
        def inner(x):
            return 2.0 * x

        @kernel
        def outer(x, y):
            return inner(x) + inner(y)

        start = threading.Barrier(4)

        def call(x, start=start, outer=outer):
            start.wait()
            return outer(x, 1.0), outer.program

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(call, [0.0, 1.0, 2.0, 3.0]))
        assert [value for value, _ in results] == [2.0, 4.0, 6.0, 8.0]
        assert len({id(program) for _, program in results}) == 1


@compiled_only
def test_a_program_from_disk_gives_the_same(tmp_path):
    """Fragments that raise and take records; the second process compiles nothing."""
    copy_package(tmp_path)
    (tmp_path / "fastrbhc" / "kernels.py").write_text(
        textwrap.dedent("""
            import numpy as np
            from fastrbhc._engine.jit import kernel
            from fastrbhc._engine.records import record

            @record
            class Sums:
                values: object
                total: float

            @kernel
            def add(sums, x):
                if np.isnan(x):
                    raise ValueError("no number")
                sums.total += x

            @kernel
            def add_all(sums):
                for x in sums.values:
                    add(sums, 2.0 * x)
        """)
    )
    code = """
        import numpy as np
        from fastrbhc.kernels import Sums, add_all
        sums = Sums(np.array([0.1, 0.2, 0.3]), 0.0)
        add_all(sums)
        print(sums.total.hex())
        sums.values[1] = np.nan
        try:
            add_all(sums)
        except ValueError as error:
            print(error)
        stats = add_all.program.stats
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
        print(len(add_all.program.overloads))
    """
    first, second = (
        printed(code, cache=tmp_path / "cache", path=tmp_path).splitlines() for _ in range(2)
    )
    assert first[:2] == second[:2]
    assert float.fromhex(first[0]) == 0.2 + 0.4 + 0.6
    assert first[1] == "no number"
    assert (first[2], second[2]) == ("0 1", "1 0")
