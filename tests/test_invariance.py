"""What a tree may depend on: the values of the rows and their weights, and nothing else."""

from __future__ import annotations

import importlib
import itertools

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    FAMILIES,
    TRANSLATION_INVARIANT,
    continuous,
    continuous_rows,
    gridded,
    repeated,
    tied_data_sets,
    tied_rows,
)
from trees import leaf_sets, merged_sets, merged_values, same_tree

from fastrbhc import dissimilarity, linkage
from fastrbhc._engine import threads as threads_module
from fastrbhc._engine.planning import plan as plan_module
from fastrbhc.families import (
    Exponential,
    Gaussian,
    Multinomial,
    Poisson,
    SphericalGaussian,
    as_family,
)

both_algorithms = pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
every_family = pytest.mark.parametrize("family", FAMILIES)


# The same values in another form


def layouts(X, directory):
    """The same numbers, laid out in memory in every way we can think of."""
    padded = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    padded[::2, ::3] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    mapped = np.memmap(directory / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    yield "Fortran", np.asfortranarray(X)
    yield "strided", padded[::2, ::3]
    yield "backwards", X[::-1].copy()[::-1]
    yield "read-only", read_only
    yield "memmap", mapped
    yield "lists", X.tolist()
    yield "big-endian", X.astype(">f8")


@pytest.mark.fast
@both_algorithms
@every_family
def test_layout_in_memory_does_not_matter(family, algorithm, tmp_path):
    X = continuous_rows(family, 15, 3, seed=6)
    before = X.copy()
    reference = linkage(X, family, algorithm=algorithm)
    for name, same in layouts(X, tmp_path):
        assert same_tree(linkage(same, family, algorithm=algorithm), reference), name
    np.testing.assert_array_equal(X, before)


@pytest.mark.fast
@both_algorithms
@every_family
def test_number_types_do_not_matter(family, algorithm):
    X = continuous_rows(family, 15, 3, seed=6).astype(np.float32)
    reference = linkage(X.astype(np.float64), family, algorithm=algorithm)
    assert same_tree(linkage(X, family, algorithm=algorithm), reference)
    counts = np.random.default_rng(6).integers(0, 2, size=(15, 3))
    counts[:, 0] = 1
    domain = as_family(family).domain
    counts += int(max(domain.lower, 0.0)) + (not domain.includes_lower)
    reference = linkage(counts.astype(np.float64), family, algorithm=algorithm)
    for dtype in (np.int64, np.int32, np.uint8, np.float32, np.float16):
        assert same_tree(linkage(counts.astype(dtype), family, algorithm=algorithm), reference)


@pytest.mark.fast
@both_algorithms
@every_family
def test_runs_repeat_to_the_bit(family, algorithm):
    for X in (continuous_rows(family, 20, 3, seed=9), tied_rows(family, 20, 2, seed=9)):
        reference = linkage(X, family, algorithm=algorithm)
        for _ in range(3):
            assert same_tree(linkage(X, family, algorithm=algorithm), reference)


@pytest.mark.parametrize("family", ["spherical_gaussian", "poisson", "gaussian"])
@pytest.mark.parametrize(("rows", "n"), [(continuous_rows, 2000), (tied_rows, 3000)])
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_number_of_threads_does_not_matter(monkeypatch, family, rows, n, neighbors):
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD_BY_LEVELS", 0)
    X = rows(family, n, 6, 10)
    assert len(np.unique(X, axis=0)) ** 2 * 6 >= plan_module._WORTH_A_THREAD
    threads = numba.get_num_threads()
    reference = linkage(X, family, neighbors=neighbors, n_jobs=1)
    for n_jobs in (2, 3):
        computed = linkage(X, family, neighbors=neighbors, n_jobs=n_jobs)
        assert same_tree(computed, reference)
    # All that takes time is shared by Python, instead of by kernels among each other.
    monkeypatch.setattr(threads_module, "_WORTH_A_THREAD_SECONDS", 0)
    for name in ("greedy", "levels"):
        module = importlib.import_module(f"fastrbhc._engine.agglomeration.{name}")
        monkeypatch.setattr(module, "LONG_SECONDS", 0.0)
    assert same_tree(linkage(X, family, neighbors=neighbors, n_jobs=2), reference)
    assert numba.get_num_threads() == threads


@pytest.mark.fast
@both_algorithms
@every_family
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_order_of_rows_does_not_matter(family, algorithm, data, seed):
    X, _ = data.draw(continuous(family))
    order = np.random.default_rng(seed).permutation(len(X))
    reference = linkage(X, family, algorithm=algorithm)
    computed = linkage(X[order], family, algorithm=algorithm)
    assert merged_sets(computed, order) == merged_sets(reference)
    np.testing.assert_array_equal(computed.heights, reference.heights)


@pytest.mark.fast
@both_algorithms
@every_family
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_order_of_rows_does_not_matter_with_ties(family, algorithm, data, seed):
    X, _ = data.draw(tied_data_sets(family))
    order = np.random.default_rng(seed).permutation(len(X))
    reference = linkage(X, family, algorithm=algorithm)
    computed = linkage(X[order], family, algorithm=algorithm)
    assert merged_values(computed, X[order]) == merged_values(reference, X)
    np.testing.assert_array_equal(computed.heights, reference.heights)


@pytest.mark.parametrize("family", ["spherical_gaussian", "gaussian", "multinomial"])
@both_algorithms
def test_order_of_rows_does_not_matter_on_a_grid(family, algorithm):
    """A full grid, where most of all pairs are tied; large enough to close gaps repeatedly."""
    grid = np.array(list(itertools.product(range(1, 15), repeat=2)), float)
    reference = linkage(grid, family, algorithm=algorithm)
    order = np.random.default_rng(0).permutation(len(grid))
    computed = linkage(grid[order], family, algorithm=algorithm)
    assert merged_values(computed, grid[order]) == merged_values(reference, grid)


# Units


def scaled_by_powers_of_two(exponent):
    """(family, the same with its parameter in the other unit, factor of X, factor of d)."""
    unit = 2.0**exponent
    yield SphericalGaussian(), SphericalGaussian(), unit, unit**2
    yield SphericalGaussian(), SphericalGaussian(unit**2), unit, 1.0
    yield Poisson(), Poisson(0.01 * unit), unit, unit
    yield Multinomial(), Multinomial(), unit, unit
    yield Exponential(), Exponential(), unit, 1.0


# Kernels that run as plain Python warn where a bound overflows on its way to 0, which is still one.
overflow_is_no_error = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.fast
@overflow_is_no_error
@both_algorithms
@pytest.mark.parametrize("exponent", [-332, -100, -1, 7, 100, 332])
def test_units_scale_every_height_and_change_no_merge(exponent, algorithm):
    for family, other, factor, height_factor in scaled_by_powers_of_two(exponent):
        X = continuous_rows(family.name, 20, 3, seed=12)
        reference = linkage(X, family, algorithm=algorithm)
        computed = linkage(X * factor, other, algorithm=algorithm)
        np.testing.assert_array_equal(computed.merges, reference.merges)
        np.testing.assert_array_equal(computed.heights, reference.heights * height_factor)


@pytest.mark.fast
@pytest.mark.parametrize("exponent", [-200, -20, 20, 200])
def test_units_change_nothing_where_the_smoothing_follows(exponent):
    X = continuous_rows("gaussian", 20, 3, seed=12)
    reference = linkage(X, Gaussian(0.01))
    computed = linkage(X * 2.0**exponent, Gaussian(0.01 * 4.0**exponent))
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


@pytest.mark.fast
@overflow_is_no_error
@both_algorithms
@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_trees_are_whole_whatever_the_unit(scale, algorithm):
    for family in FAMILIES:
        domain = as_family(family).domain
        if (np.isfinite(domain.upper) and scale > 1.0) or domain.lower > 0.0:
            continue
        X = continuous_rows(family, 20, 3, seed=13) * scale
        if family == "rayleigh" and not 1e-60 < scale < 1e60:
            with pytest.raises(ValueError, match="whose squares are beyond double precision"):
                linkage(X, family, algorithm=algorithm)
            continue
        if family == "gaussian" and scale > 1.0:
            with pytest.raises(ValueError, match="Scale the columns"):
                linkage(X, family, algorithm=algorithm)
            continue
        tree = linkage(X, family, algorithm=algorithm)
        assert tree.n_trees == 1, family
        assert np.isfinite(tree.heights).all(), family
        assert (tree.heights > 0.0).all(), family


@pytest.mark.fast
@pytest.mark.parametrize("family", TRANSLATION_INVARIANT)
def test_a_far_origin_does_not_blur_the_tree(family):
    X = np.round(1024.0 * continuous_rows(family, 20, 3, seed=14)) / 1024.0
    reference = linkage(X, family)
    computed = linkage(X + 2.0**30, family)  # exact: the sums have few binary digits
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


# Copies and weights


@pytest.mark.fast
@both_algorithms
@every_family
@given(data=st.data())
def test_copies_merge_at_exactly_zero(family, algorithm, data):
    X, _ = data.draw(repeated(family))
    tree = linkage(X, family, algorithm=algorithm)
    n_copies = len(X) - len(np.unique(X, axis=0))
    np.testing.assert_array_equal(tree.heights[:n_copies], 0.0)
    domain = as_family(family).domain
    if not (domain.needs_positive_total or domain.needs_nonzero_row):  # where multiples are copies
        assert (tree.heights[n_copies:] > 0.0).all()


@pytest.mark.fast
@both_algorithms
@every_family
@given(data=st.data())
def test_a_weight_counts_copies(family, algorithm, data):
    X, _ = data.draw(st.one_of(continuous(family), gridded(family)))
    copies = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(X), max_size=len(X))))
    source = np.repeat(np.arange(len(X)), copies)
    computed = linkage(X, family, algorithm=algorithm, sample_weight=copies)
    reference = linkage(X[source], family, algorithm=algorithm)
    assert positive_merges(computed) == positive_merges(reference, source)
    for k in range(1, 1 + np.count_nonzero(computed.heights > 0.0)):
        np.testing.assert_array_equal(
            computed.cut(n_clusters=k)[source], reference.cut(n_clusters=k)
        )


def positive_merges(tree, names=None):
    """Merges above height 0 as {set of rows: (height, weight)}."""
    names = range(tree.n_leaves) if names is None else names
    sets = (frozenset(int(names[leaf]) for leaf in leaves) for leaves in leaf_sets(tree))
    facts = zip(tree.heights.tolist(), tree.weights.tolist(), strict=True)
    return {rows: fact for rows, fact in zip(sets, facts, strict=True) if fact[0] > 0.0}


@pytest.mark.fast
@every_family
@pytest.mark.parametrize("rows", [continuous_rows, tied_rows])
def test_numbers_follow_the_order_of_rows_only_among_equals(family, rows):
    X = rows(family, 30, 2, 18)
    order = np.random.default_rng(18).permutation(30)
    reference, computed = linkage(X, family), linkage(X[order], family)
    for k in range(1, 1 + np.count_nonzero(reference.heights > 0.0)):
        before, after = reference.summary(n_clusters=k), computed.summary(n_clusters=k)
        facts = ["size", "weight", "level"]
        pd.testing.assert_frame_equal(after[facts], before[facts])
        label0, label1 = reference.cut(n_clusters=k)[order], computed.cut(n_clusters=k)
        np.testing.assert_array_equal(renumbered(label1), renumbered(label0))
        alone = ~before.duplicated(["weight", "level"], keep=False).to_numpy()
        np.testing.assert_array_equal(label1[alone[label0]], label0[alone[label0]])


@pytest.mark.fast
@both_algorithms
@every_family
def test_a_common_weight_scales_heights_only(family, algorithm):
    X = continuous_rows(family, 20, 3, seed=15)
    reference = linkage(X, family, algorithm=algorithm)
    computed = linkage(X, family, algorithm=algorithm, sample_weight=4.0)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, 4.0 * reference.heights, rtol=1e-12)
    np.testing.assert_array_equal(computed.weights, 4.0 * reference.weights)


@pytest.mark.fast
@both_algorithms
@every_family
@pytest.mark.parametrize("rows", [continuous_rows, tied_rows])
def test_rows_without_weight_change_nothing(family, algorithm, rows):
    X = rows(family, 20, 2, 16)
    heavy = np.random.default_rng(16).random(20) < 0.6
    kept = np.flatnonzero(heavy)
    reference = linkage(X[heavy], family, algorithm=algorithm)
    computed = linkage(X, family, algorithm=algorithm, sample_weight=heavy.astype(float))
    n_light = len(X) - len(kept)
    np.testing.assert_array_equal(computed.heights[:n_light], 0.0)
    np.testing.assert_array_equal(computed.heights[n_light:], reference.heights)
    seen = {rows & set(kept.tolist()): fact for rows, fact in positive_merges(computed).items()}
    assert seen == positive_merges(reference, kept)
    for k in range(1, 1 + np.count_nonzero(reference.heights > 0.0)):
        # A row without weight may be the first of its cluster, and so decide between equal ones.
        np.testing.assert_array_equal(
            renumbered(computed.cut(n_clusters=k)[heavy]), renumbered(reference.cut(n_clusters=k))
        )


def renumbered(labels):
    """The same clusters, numbered by first appearance."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()))}
    return np.array([numbers[label] for label in labels.tolist()])


@pytest.mark.fast
@every_family
def test_rows_without_weight_join_their_nearest(family):
    X = continuous_rows(family, 16, 2, seed=17)
    weights = np.r_[np.ones(10), np.zeros(6)]
    labels = linkage(X, family, sample_weight=weights).cut(threshold=5e-324)
    for light in range(10, 16):
        reference = min(range(10), key=lambda i: dissimilarity(X[[light]], X[[i]], family))
        assert labels[light] == labels[reference]
