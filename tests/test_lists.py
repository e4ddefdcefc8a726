"""Lists of near clusters, and unions offered to them."""

import numpy as np
import pytest
from scipy import sparse

import fastrbhc
from fastrbhc._engine.neighbors import inverted
from fastrbhc._engine.neighbors.contract import Lowered
from fastrbhc._engine.neighbors.lists import (
    LISTED,
    accept,
    enter,
    move_lists,
    new_lists,
    new_offers,
    offer,
)

N = 40


def listed(lists, i):
    """The list of a slot as (slot, bound) pairs; bounds are in single precision."""
    size = lists.sizes[i]
    bounds = np.round(lists.bounds[i, :size].astype(float), 4).tolist()
    return list(zip(lists.slots[i, :size].tolist(), bounds, strict=True))


def filled(bounds, slots, cutoff=np.inf):
    """Lists in which slot 0 has been looked up."""
    lists = new_lists(N)
    lists.sizes[0], lists.others[0] = 0, cutoff
    for slot, bound in zip(slots, bounds, strict=True):
        if bound < lists.others[0]:
            enter(lists, 0, slot, bound, cutoff)
    return lists


def after_offer(lists, union, bound, dead=()):
    """Offer a union to slot 0; the slots whose links are to be lowered, and to what."""
    weights = np.ones(N)
    weights[list(dead)] = np.nan
    offers, lowered = new_offers(N), Lowered(np.empty(N, np.int64), np.full(N, np.inf), 0)
    assert offer(offers, union, 0, np.zeros(1, np.int64), 1, np.array([bound]))
    accept(lists, offers, weights, lowered)
    assert offers.end[0] == 0
    return {int(s): float(lowered.bounds[s]) for s in lowered.slots[: lowered.count]}


def test_a_list_keeps_the_nearest_and_a_bound_for_the_others():
    bounds = np.random.default_rng(0).permutation(np.arange(1.0, 30.0))
    lists = filled(bounds, np.arange(1, 30))
    nearest = np.argsort(bounds)[:LISTED]
    assert listed(lists, 0) == [(int(s) + 1, float(bounds[s])) for s in nearest]
    assert lists.others[0] == pytest.approx(LISTED, rel=1e-6)
    assert lists.others[0] <= LISTED


def test_offers_enter_a_list_in_order():
    lists = filled([1.0, 4.0], [5, 6], cutoff=9.0)
    assert after_offer(lists, 30, 2.0) == {0: 2.0}
    assert listed(lists, 0) == [(5, 1.0), (30, 2.0), (6, 4.0)]
    assert lists.others[0] == 9.0


def test_offers_take_the_places_of_merged_clusters():
    lists = filled(np.arange(1.0, LISTED + 1.0), np.arange(1, LISTED + 1))
    lists.others[0] = 100.0
    after_offer(lists, 30, 50.0, dead=[2, 3])
    assert [slot for slot, _ in listed(lists, 0)] == [1, *range(4, LISTED + 1), 30]
    assert lists.others[0] == 100.0


def test_what_finds_no_room_is_one_of_the_others():
    full = np.arange(1, LISTED + 1)
    lists = filled(full.astype(float), full)
    lists.others[0] = 100.0
    after_offer(lists, 30, 50.0)
    assert [slot for slot, _ in listed(lists, 0)] == full.tolist()
    assert lists.others[0] == pytest.approx(50.0, rel=1e-6)
    after_offer(lists, 31, 0.5)
    assert [slot for slot, _ in listed(lists, 0)] == [31, *full[:-1].tolist()]
    assert lists.others[0] == pytest.approx(LISTED, rel=1e-6)
    assert lists.others[0] <= LISTED


def test_a_union_is_listed_once():
    lists = filled([1.0], [5], cutoff=9.0)
    after_offer(lists, 30, 2.0)
    assert after_offer(lists, 30, 2.0) == {}
    assert listed(lists, 0) == [(5, 1.0), (30, 2.0)]


def test_offers_at_the_bound_for_the_others_only_lower_the_link():
    lists = filled([1.0], [5], cutoff=9.0)
    assert after_offer(lists, 30, 9.0) == {0: 9.0}
    assert listed(lists, 0) == [(5, 1.0)]


@pytest.mark.parametrize("gone", [0, 30], ids=["slot", "union"])
def test_offers_of_clusters_that_are_gone_are_dropped(gone):
    lists = filled([1.0], [5], cutoff=9.0)
    assert after_offer(lists, 30, 2.0, dead=[gone]) == {}
    assert listed(lists, 0) == [(5, 1.0)]


def test_offers_without_room_leave_nothing_behind():
    offers, near, bounds = new_offers(5), np.arange(3), np.ones(3)
    assert offer(offers, 7, 0, near, 3, bounds)
    assert not offer(offers, 8, 0, near, 3, bounds)
    lists = filled([], [], cutoff=9.0)
    lists.sizes[:3], lists.others[:3] = 0, 9.0
    lowered = Lowered(np.empty(N, np.int64), np.full(N, np.inf), 0)
    accept(lists, offers, np.ones(N), lowered)
    assert [listed(lists, i) for i in range(3)] == [[(7, 1.0)]] * 3


def test_lists_move_with_their_clusters():
    lists = filled([1.0, 2.0], [5, 6])
    slots = np.array([6, 0])
    places = np.full(N, -1, np.int32)
    places[slots] = [0, 1]
    move_lists(lists, slots, places)
    assert listed(lists, 1) == [(-1, 1.0), (0, 2.0)]
    assert (lists.sizes[2:] == -1).all()


def topics(n, d, seed, largest=4):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.15, rng.integers(1, largest, (n, d)), 0)
    X[:, 0] += X.sum(axis=1) == 0
    return X.astype(float)


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_the_tree_is_the_same_if_offers_find_no_room(family, monkeypatch):
    X = sparse.csr_array(topics(300, 40, 1))
    reference = fastrbhc.linkage(X, family, neighbors="inverted")
    monkeypatch.setattr(inverted, "new_offers", lambda n: new_offers(2))
    found = fastrbhc.linkage(X, family, neighbors="inverted")
    np.testing.assert_array_equal(found.merges, reference.merges)
    np.testing.assert_array_equal(found.heights, reference.heights)


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_the_tree_is_right_where_bounds_are_loose(family):
    # Counts so large that all bounds are zero.
    X = topics(80, 20, 2) * 1e9 + topics(80, 20, 3)
    X *= np.exp(np.random.default_rng(4).normal(size=(80, 1))).round(2) * 100.0
    X = X.round()
    found = fastrbhc.linkage(sparse.csr_array(X), family, neighbors="inverted")
    reference = fastrbhc.linkage(X, family)
    np.testing.assert_array_equal(found.merges, reference.merges)
    np.testing.assert_allclose(found.heights, reference.heights, rtol=1e-10)
