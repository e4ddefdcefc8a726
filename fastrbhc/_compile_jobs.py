"""Small calls that go through the same kernels as large ones, and so have them compiled."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fastrbhc._advice import deliberately
from fastrbhc._dissimilarity import dissimilarity
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._engine.planning.plan import WORTH_COMPILING
from fastrbhc._linkage import linkage
from fastrbhc.bhc import BHC, as_model
from fastrbhc.estimators import RBHC
from fastrbhc.families import Block, Product, as_family

# More columns than the kd-tree is used for.
_MANY_COLUMNS = FEW_COLUMNS + 4
# Rows on the kd-tree, and for scans: enough for two threads, if the algorithm uses them.
_ROWS_ON_A_TREE, _ROWS_TO_SCAN = 2_700, 1_300
# Rows for everything that runs on a single thread.
_FEW_ROWS = 300
# Small sparse matrices are made dense; this many rows times columns stay sparse. With so many
# values in a row, scans of so many rows use two threads.
_SPARSE_EXTENT, _SPARSE_VALUES, _SPARSE_ROWS = 1_200_000, 60, 600


class Job(NamedTuple):
    """Work for one process at a time: a family or a model, and the kinds of trees."""

    kind: str  # "family" or "model"
    name: str  # names of families joined by + are the blocks of a product
    columns: int | None  # for kernels that know this number of columns; None for all others
    audit: bool | str
    algorithms: tuple[str, ...]
    scans_first: bool  # every second one begins at the other end, so that processes seldom wait
    sparse: bool = False  # for sparse rows; others are dense
    missing: bool = False  # for rows with missing cells

    @property
    def title(self) -> str:
        """The name that the user sees."""
        of = f"BHC {self.name}" if self.kind == "model" else self.name
        if self.sparse:
            return f"{of}, sparse"
        if self.missing:
            return f"{of}, missing cells"
        return of if self.columns is None else f"{of}, columns: {self.columns}"


def do(job: Job) -> None:
    """Make the calls of a job."""
    with deliberately():  # rows only have to be in the domain
        if job.kind == "model" and job.sparse:
            _use_sparse_model(job.name)
        elif job.kind == "model":
            _use_model(job.name)
        elif job.sparse:
            _use_sparse_rows(job.name, job.audit, job.algorithms)
        elif job.missing:
            _use_rows_with_gaps(job.name, job.audit, job.algorithms)
        elif job.columns is None:
            _use_family(job.name, job.audit, job.algorithms, job.scans_first)
        else:
            _use_columns(job.name, job.columns, job.audit, job.algorithms)


def _use_family(name: str, audit: Any, algorithms: Iterable[str], scans_first: bool) -> None:
    """Compile the kernels that serve any number of columns."""
    few_columns = max(3, len(_blocks(name)))

    def on_a_tree() -> None:
        _grow(*_case(name, _ROWS_ON_A_TREE, few_columns), audit, algorithms)

    def by_scanning() -> None:
        # Scans for reducible families are short, and use threads where the tree does not.
        n = _ROWS_TO_SCAN if _case(name, 1, few_columns)[1].reducible else _FEW_ROWS
        _grow(*_case(name, n, _MANY_COLUMNS), audit, algorithms)
        # Few rows take a way of their own, and one column has another layout.
        _grow(*_case(name, 50, 1), audit, algorithms)

    for part in (by_scanning, on_a_tree) if scans_first else (on_a_tree, by_scanning):
        part()
    for n_columns in (few_columns, _MANY_COLUMNS):
        X, family = _case(name, _FEW_ROWS, n_columns)
        _fit(X, family)
    dissimilarity(X[:2], X[2:4], family)
    few = np.repeat(X[:20], 2, axis=0)
    linkage(few, family, sample_weight=np.arange(40.0))  # a row without weight
    _look_at(linkage(few, family))
    X, family = _case(name, _FEW_ROWS, 2 * len(_blocks(name)))
    mirrored = X.reshape(_FEW_ROWS, -1, 2)[:, :, ::-1].reshape(X.shape)
    linkage(np.concatenate([X, mirrored]), family)  # ties


def _use_columns(name: str, columns: int, audit: Any, algorithms: Iterable[str]) -> None:
    """Compile the kernels that know the number of columns."""
    # Look-ups and merges are compiled before the first merge, and all other kernels serve any
    # number of columns: no merge is necessary.
    X, family = _case(name, WORTH_COMPILING, columns)
    _grow(X, family, audit, algorithms, threshold=np.finfo(np.float64).tiny)


def _use_rows_with_gaps(name: str, audit: Any, algorithms: Iterable[str]) -> None:
    """Compile the kernels for rows with missing cells."""
    ignoring: dict[str, Any] = {"missing": "ignore"}
    for n, n_columns in ((_ROWS_ON_A_TREE, 3), (_FEW_ROWS, _MANY_COLUMNS), (50, 3)):
        X, family = _case(name, n, n_columns)
        X[::3, 0] = np.nan
        _grow(X, family, audit, algorithms, **ignoring)
    linkage(X, family, sample_weight=np.arange(50.0), **ignoring)  # a row without weight
    dissimilarity(X[:2], X[2:4], family, **ignoring)
    model = RBHC(family, n_clusters=2, **ignoring).fit(X)
    model.predict(X[:2])
    model.summary(n_top=1)
    model.transform(X[:2])
    RBHC(family, **ignoring).fit(X)


def _use_sparse_rows(name: str, audit: Any, algorithms: Iterable[str]) -> None:
    """Compile the kernels for sparse rows."""
    family = as_family(name)
    _grow(_sparse_rows(_SPARSE_ROWS), family, False, algorithms)
    few = _sparse_rows(30)
    _grow(few, family, audit, algorithms)
    _fit(few, family)
    pair = _sparse_rows(2)
    dissimilarity(pair, pair[::-1], family)
    twice = _sparse_rows(20)[np.repeat(np.arange(20), 2)]
    linkage(twice, family, sample_weight=np.arange(40.0))  # a row without weight
    tree = linkage(twice, family)
    _look_at(tree)
    tree.summary(twice, n_clusters=2)


def _fit(X: Any, family: Any) -> None:
    """Call the methods of the estimator."""
    model = RBHC(family, n_clusters=2).fit(X)  # one cluster has nothing to be compared with
    model.predict(X[:2])
    model.summary(n_top=1)
    model.transform(X[:2])
    model.assess(X, n_resamples=2)
    model.dendrogram_.leaves_order(optimal=True, X=X)
    for threshold in ("predictive", "kmeans"):
        RBHC(family, threshold=threshold, random_state=0).fit(X)


def _grow(X: Any, family: Any, audit: Any, algorithms: Iterable[str], **options: Any) -> None:
    for algorithm in algorithms:
        if algorithm != "levels" or (family.reducible and "missing" not in options):
            linkage(X, family, algorithm=algorithm, n_jobs=2, **options)
    if audit:
        linkage(X, family, audit="sample", n_jobs=2, **options)


def _look_at(tree: Any) -> None:
    """Call the methods of a tree."""
    tree.cut(n_clusters=2, min_size=2)
    tree.path()
    tree.leaves_order()
    tree.cophenetic([[0, 1]])
    tree.members(tree.n_leaves)


def _use_model(name: str) -> None:
    for n_columns in (3, _MANY_COLUMNS, 1):
        _fit_model(_whole_rows(name, 40, n_columns), name)


def _use_sparse_model(name: str) -> None:
    _fit_model(_sparse_rows(_FEW_ROWS), name)


def _fit_model(X: Any, name: str) -> None:
    model = BHC(name, random_state=0).fit(X)
    model.predict(X[:2])
    model.score_samples(X[:2])


def _blocks(name: str) -> list[str]:
    """The families of a product, or the only one."""
    return name.split("+")


def _case(name: str, n: int, n_columns: int) -> tuple[NDArray[np.float64], Any]:
    """Rows, all different, and the family of them; every block has at least one column."""
    names = _blocks(name)
    if len(names) == 1:
        return _rows(name, n, n_columns), as_family(name)
    widths = [len(part) for part in np.array_split(np.arange(n_columns), len(names))]
    widths = [max(1, width) for width in widths]
    X = np.hstack([_rows(one, n, width) for one, width in zip(names, widths, strict=True)])
    ends = np.cumsum([0, *widths])
    columns = [tuple(range(start, stop)) for start, stop in pairwise(ends.tolist())]
    product: Any = Product(tuple(map(Block, names, columns)))
    return X, as_family(product)


def _rows(name: str, n: int, n_columns: int) -> NDArray[np.float64]:
    """Rows that the family admits, all different unless they are categories."""
    family = as_family(name)
    if hasattr(family, "levels"):
        return np.random.default_rng(0).integers(0, 2, (n, n_columns)).astype(np.float64)
    return _within(family.domain.lower, family.domain.upper, n, n_columns)


def _within(lower: float, upper: float, n: int, n_columns: int) -> NDArray[np.float64]:
    least, most = max(lower, -20.0), min(upper, 20.0)
    shares = np.random.default_rng(0).uniform(0.1, 0.9, (n, n_columns))
    return least + (most - least) * shares


def _whole_rows(name: str, n: int, n_columns: int) -> NDArray[np.float64]:
    """Rows of whole numbers that the model admits."""
    domain = as_model(name).domain
    X = np.round(_within(domain.lower, domain.upper, n, n_columns))
    if domain.needs_positive_total or domain.needs_nonzero_row:
        X[~X.any(axis=1)] = 1.0
    return X


def _sparse_rows(n: int) -> csr_array:
    """Rows of zeros and ones, which all families of counts admit, in clusters that are plain."""
    rng = np.random.default_rng(0)
    n_clusters, width = 10, 2 * _SPARSE_VALUES
    columns = np.array([rng.permutation(width)[:_SPARSE_VALUES] for _ in range(n)])
    columns = np.sort(columns + width * (np.arange(n) % n_clusters)[:, None])
    shape = n, max(_SPARSE_EXTENT // n, n_clusters * width)
    starts = np.arange(n + 1) * _SPARSE_VALUES
    return csr_array((np.ones(columns.size), columns.ravel(), starts), shape)
