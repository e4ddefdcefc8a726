"""``fastrbhc compile``: fill the cache of compiled kernels ahead of time."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from fastrbhc._interrupts import importing


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "compile",
        help="compile kernels ahead of time",
        description="Compile kernels on all cores and keep them on disk, so that first calls need "
        "not. For containers and CI. NUMBA_CACHE_DIR says where they are kept.",
        epilog="Example: fastrbhc compile --family poisson multinomial --columns 2 3",
    )
    option = command.add_argument
    option(
        "--family",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="families (default ward, gaussian and poisson); gaussian+poisson is a product of "
        "blocks in this order",
    )
    option(
        "--columns",
        nargs="+",
        action="extend",
        type=int,
        metavar="N",
        help="also compile the kernels that know the number of columns, for these numbers, 1 to 8; "
        "they are used from 5,000 rows on (with --all, default 2 and 3)",
    )
    option("--algorithm", nargs="+", action="extend", metavar="NAME", help="default auto")
    option("--bhc", nargs="*", metavar="MODEL", help="models of BHC; all if none is named")
    option("--audit", action="store_true", help="for audits too")
    option("--missing", action="store_true", help="for rows with missing cells too")
    option(
        "--all",
        action="store_true",
        help="all families but products, audits, missing cells and models of BHC, unless other "
        "options name some of them; takes some minutes of processor time",
    )
    option("--jobs", type=int, metavar="N", help="number of processes; -1 for all cores")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Compile, and print the number of kernels and the time."""
    with importing():
        from fastrbhc import precompile
        from fastrbhc._precompile import COLUMNS_OF_ALL, families_of_the_package
        from fastrbhc._versions import described_cache

    every = arguments.all
    models = arguments.bhc
    if models is None:
        models = every and arguments.family is None
    start = time.perf_counter()
    found = precompile(
        arguments.family or (families_of_the_package() if every else None),
        n_features=arguments.columns or (COLUMNS_OF_ALL if every else None),
        algorithms=arguments.algorithm or "auto",
        audit=arguments.audit or every,
        bhc=True if models == [] else models,
        missing=arguments.missing or every,
        n_jobs=arguments.jobs,
        progress=True,
    )
    seconds = time.perf_counter() - start
    for title, compiled in found.items():
        print(f"{title}: {compiled.kernels} kernels, {compiled.seconds:.1f} s")
    kernels = sum(compiled.kernels for compiled in found.values())
    print(f"{kernels} kernels in {seconds:.1f} s; they are kept in {described_cache()}")
