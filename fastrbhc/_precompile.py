"""Compiling ahead of time: what is to be compiled.

`_compile_workers` starts the processes that compile, and `_compile_jobs` has the calls they make.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numba import config as _numba_config

from fastrbhc._compile_jobs import Job
from fastrbhc._compile_workers import Compiled, run
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._options import ALGORITHM_NAMES
from fastrbhc._validation import check_audit, check_choice, check_count, check_threads
from fastrbhc._versions import cache_folder
from fastrbhc.bhc import as_model
from fastrbhc.bhc import registered as registered_models
from fastrbhc.families import as_family, registered
from fastrbhc.families._missing import takes_missing
from fastrbhc.families.product import IGNORE

_config: Any = _numba_config

# Numbers of columns that kernels know after `fastrbhc compile --all`: those of most large data sets
# that the kd-tree serves.
COLUMNS_OF_ALL = (2, 3)

# The default families.
_USUAL = ("spherical_gaussian", "gaussian", "poisson")


def precompile(
    families: str | Iterable[Any] | None = None,
    *,
    n_features: int | Iterable[int] | None = None,
    audit: bool = False,
    algorithms: str | Iterable[str] = "auto",
    bhc: bool | Iterable[Any] = False,
    missing: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> dict[str, Compiled]:
    """Compile kernels ahead of time, so that first calls find them on disk.

    For containers, CI and notebooks: `linkage`, `RBHC`, `kmeans_threshold` and `dissimilarity` of
    these families, and `bhc_linkage` and `BHC` of these models, then compile nothing. Families and
    models of counts are compiled for sparse rows too.

    Parameters
    ----------
    families : str, dict or sequence of these, optional
        Names of families, or records of the package. By default the spherical Gaussian (Ward), the
        Gaussian and the Poisson family. Names joined by "+", such as "gaussian+poisson", stand for
        a product of blocks in this order, and so does a dict or a `Product`, whatever its columns.
        User-defined families cannot be compiled ahead of time: their kernels are kept in memory
        only.
    n_features : int or sequence of int, optional
        Numbers of columns. From 5,000 rows on, kernels for up to 8 columns know their number, and
        are compiled for each. By default only kernels for any number of columns are compiled, and
        so they are for products.
    audit : bool, default=False
        Compile for audits too.
    algorithms : str or sequence of str, default="auto"
        See `linkage`. Algorithms that do not apply to a family are skipped.
    bhc : bool or sequence of str, default=False
        Names of models for `bhc_linkage`; True for all of them.
    missing : bool, default=False
        Compile for rows with missing cells too, of families that take these.
    n_jobs : int, optional
        Number of processes; None for one per core.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    dict
        For each family, its sparse rows, its missing cells, each number of columns, and each model:
        the number of kernels compiled, and the time in seconds. Kernels that are already on disk
        are not compiled again.

    Raises
    ------
    OSError
        If compiled kernels cannot be kept on disk, or if a process fails.

    Notes
    -----
    Compiled kernels are valid for one state of the package, one version of Python and of Numba, and
    one kind of CPU. If a container is built on one kind of CPU and runs on another, set
    ``NUMBA_CPU_NAME`` to a common baseline, for example ``x86-64-v3``, and
    ``NUMBA_CPU_FEATURES`` to an empty string, in both places.

    See Also
    --------
    show_versions : Prints where compiled kernels are kept.

    Examples
    --------
    >>> import fastrbhc
    >>> list(fastrbhc.precompile("ward"))
    ['spherical_gaussian']
    """
    jobs = _jobs(families, n_features, audit, algorithms, bhc, missing)
    n_processes = check_threads(n_jobs)
    _check_cache()
    return run(jobs, n_processes, progress)


def _jobs(
    families: Any, n_features: Any, audit: bool, algorithms: Any, bhc: Any, missing: bool = False
) -> list[tuple[Job, list[Job]]]:
    """The jobs to run, each with the jobs that follow it."""
    names = [_family_name(each) for each in _several(_USUAL if families is None else families)]
    given = [] if n_features is None else _several(n_features)
    columns = sorted({check_count(each, "n_features") for each in given})
    wanted = tuple(_several(algorithms))
    for algorithm in wanted:
        check_choice(algorithm, "algorithm", ALGORITHM_NAMES)
    check_audit(audit)
    models = _several(bhc)
    if isinstance(bhc, bool):
        models = models_of_the_package() if bhc else []
    found: list[tuple[Job, list[Job]]] = []
    for name in dict.fromkeys(names):
        first = Job("family", name, None, audit, wanted, len(found) % 2 == 1)
        found.append((first, [] if "+" in name else _following(first, columns, missing)))
    for model in {record.name: record for record in map(as_model, models)}.values():
        one = Job("model", model.name, None, False, (), False)
        found.append((one, [one._replace(sparse=True)] if model.takes_sparse_rows else []))
    return found


def _following(first: Job, columns: list[int], missing: bool) -> list[Job]:
    """What else there is to compile for a single family."""
    family = as_family(first.name)
    more = [first._replace(sparse=True)] if family.entropy_share > 0.0 else []
    if missing and takes_missing(family):
        more.append(first._replace(missing=True))
    return more + [first._replace(columns=each) for each in columns if each <= FEW_COLUMNS]


def _several(given: Any) -> list[Any]:
    alone = isinstance(given, str | int | type | dict) or hasattr(given, "_fields")
    return [given] if alone else [*given]


def families_of_the_package() -> list[str]:
    """Names of all families whose kernels are kept on disk.

    Products have kernels for each combination of families: those that are needed have to be named.
    Categories have the kernels of the multinomial family.
    """
    classes: Any = registered().values()
    return sorted({cls.name for cls in classes if _is_ours(cls) and not hasattr(cls, "place")})


def models_of_the_package() -> list[str]:
    """Names of all models, except products of them."""
    classes: Any = registered_models().values()
    return sorted({cls.name for cls in classes if not hasattr(cls, "place")})


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def _family_name(given: Any) -> str:
    if isinstance(given, str) and "+" in given:
        return "+".join(map(_family_name, given.split("+")))
    family: Any = as_family(given)
    if hasattr(family, "blocks"):
        blocks = [block.family for block in family.blocks if block.family != IGNORE]
        return "+".join(map(_family_name, blocks))
    if not _is_ours(type(family)):
        raise ValueError(
            f"kernels of the family {family.name!r} are kept in memory only, because it is not "
            "part of the package: there is nothing to compile ahead of time"
        )
    return family.name


def _check_cache() -> None:
    try:
        folder = cache_folder()
    except OSError as error:
        raise OSError(f"compiled kernels cannot be kept on disk: {error}") from None
    wanted = _config.CACHE_DIR
    if wanted and Path(wanted).resolve() not in folder.resolve().parents:
        raise OSError(
            f"compiled kernels cannot be kept on disk: NUMBA_CACHE_DIR is {wanted}, which cannot "
            "be written"
        )
