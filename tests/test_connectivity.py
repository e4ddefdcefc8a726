"""Only adjacent clusters merge: the textbook's tree, certified, whatever way the graph is given."""

from __future__ import annotations

import json
import pickle

import naive
import numpy as np
import pytest
from certificates import certify_on_graph
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import ward_tree
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from strategies import FAMILIES, continuous_rows, data_sets, tied_rows, wide_counts
from trees import leaf_sets, merged_sets, same_tree

import fastrbhc
from fastrbhc import RBHC, Dendrogram, families, linkage
from fastrbhc._connectivity import check_connectivity
from fastrbhc._engine.agglomeration import adjacency, link_queue
from fastrbhc.families import as_family
from fastrbhc.tree.dendrogram import dendrogram_of_merges

FEW_FAMILIES = ("spherical_gaussian", "poisson", "gaussian")


def random_edges(rng, n, m, whole=True):
    """m random pairs of rows; if whole, a random tree is among them."""
    edges = rng.integers(n, size=(m, 2))
    if whole:
        order = rng.permutation(n)
        edges = np.concatenate([edges, [(order[k], order[rng.integers(k)]) for k in range(1, n)]])
    return edges


def matrix_of(edges, n):
    """The graph as a symmetric matrix."""
    ones = np.ones(len(edges))
    one_way = sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    return (one_way + one_way.T).tocsr()


def nearest_four(X):
    """A graph that is symmetric."""
    graph = kneighbors_graph(X, 4)
    return graph + graph.T


def reference_tree(X, weights, family, edges, threshold=np.inf):
    leaf_weights = np.ones(len(X)) if weights is None else weights
    merges = naive.greedy_on_graph(X, weights, family, edges, threshold)
    return dendrogram_of_merges(*merges, leaf_weights, threshold)


def assert_agree(computed, reference):
    """The same merges, made in the same order, at the same heights but for rounding."""
    np.testing.assert_array_equal(computed.steps, reference.steps)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)
    np.testing.assert_allclose(computed.weights, reference.weights, rtol=1e-12)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_textbook_merge_for_merge(family):
    rng = np.random.default_rng(0)
    X, weights = continuous_rows(family, 24, 3, seed=3), rng.uniform(0.1, 10.0, 24)
    edges = random_edges(rng, 24, 20)
    for given_weights in (None, weights):
        reference = reference_tree(X, given_weights, family, edges)
        computed = linkage(X, family, connectivity=edges, sample_weight=given_weights)
        assert_agree(computed, reference)
        assert computed.origin.connectivity == "graph"


@pytest.mark.fast
@pytest.mark.parametrize("family", FEW_FAMILIES)
@given(data=st.data())
def test_every_merge_is_the_nearest_of_all_adjacent_pairs(family, data):
    X, weights = data.draw(data_sets(family))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    edges = random_edges(rng, len(X), data.draw(st.integers(0, 40)), data.draw(st.booleans()))
    tree = linkage(X, family, connectivity=edges, sample_weight=weights)
    certify_on_graph(tree, X, weights, family, edges)
    pieces, _ = sparse.csgraph.connected_components(matrix_of(edges, len(X)))
    assert tree.n_trees == pieces


@pytest.mark.fast
@pytest.mark.parametrize("family", FEW_FAMILIES)
def test_stops_at_the_threshold(family):
    rng = np.random.default_rng(1)
    X, edges = continuous_rows(family, 40, 2, seed=4), random_edges(rng, 40, 30)
    whole = linkage(X, family, connectivity=edges)
    level = float(np.median(whole.heights))
    forest = linkage(X, family, connectivity=edges, threshold=level)
    certify_on_graph(forest, X, None, family, edges)
    assert forest.n_trees > 1
    np.testing.assert_array_equal(forest.cut(), whole.cut(threshold=level))
    none = linkage(X, family, connectivity=edges, threshold=0.0)
    assert none.n_trees == 40
    assert none.origin.connectivity == "graph"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_complete_graph_is_no_graph(family):
    """To the bit, with ties; a graph does not collapse repeated rows, so that there are none."""
    tied = tied_rows(family, 150, 3, seed=6)
    _, distinct = np.unique(as_family(family).observe(tied).means, axis=0, return_index=True)
    for X in (continuous_rows(family, 130, 3, seed=5), tied[distinct]):
        n = len(X)
        reference = linkage(X, family, algorithm="greedy")
        computed = linkage(X, family, connectivity=np.ones((n, n), bool))
        assert same_tree(computed, reference)
        apart = linkage(X, family, connectivity=np.empty((0, 2), int), connect=True)
        assert same_tree(apart, reference)
        assert apart.origin.connectivity == "joined"


@pytest.mark.fast
@pytest.mark.parametrize("seed", range(5))
def test_ties_do_not_depend_on_the_order_of_rows(seed):
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, 6, (60, 2)), axis=0).astype(float)
    n = len(X)
    edges, order = random_edges(rng, n, 2 * n), rng.permutation(n)
    places = np.argsort(order)
    tree = linkage(X, "ward", connectivity=edges)
    shuffled = linkage(X[order], "ward", connectivity=places[edges])
    assert merged_sets(tree) == merged_sets(shuffled, order)
    assert linkage(X, "ward", connectivity=edges, n_jobs=1).merges.tolist() == tree.merges.tolist()


def test_every_way_to_give_a_graph_gives_the_same_tree():
    rng = np.random.default_rng(2)
    X, edges = rng.normal(size=(30, 2)), random_edges(rng, 30, 20)
    matrix = matrix_of(edges, 30)
    tree = linkage(X, "ward", connectivity=edges)
    zeros = sparse.coo_array(([0.0, 0.0], ([0, 29], [29, 0])), shape=(30, 30))
    with_zeros = sparse.coo_array(
        (
            np.append(matrix.tocoo().data, zeros.data),
            (np.append(matrix.tocoo().row, zeros.row), np.append(matrix.tocoo().col, zeros.col)),
        ),
        shape=(30, 30),
    )
    with_loops = matrix + sparse.eye_array(30)
    negative = -matrix
    others = [
        edges.tolist(),
        [tuple(edge) for edge in edges.tolist()],
        edges[:, ::-1].astype(np.uint8),
        np.concatenate([edges, edges, [[4, 4]]]),
        matrix,
        matrix.astype(bool),
        matrix.astype(np.int8),
        sparse.csr_matrix(matrix),
        matrix.tocsc(),
        matrix.tocoo(),
        matrix.tolil(),
        matrix.todok(),
        matrix.toarray(),
        matrix.toarray().tolist(),
        with_zeros,
        with_loops,
        negative,
        lambda rows: edges if rows is X else None,
    ]
    for other in others:
        assert same_tree(linkage(X, "ward", connectivity=other), tree)


def test_a_dense_matrix_for_two_rows():
    X = np.array([[1.0], [2.0]])
    for graph in ([[False, True], [True, False]], [[0.0, 1.0], [1.0, 0.0]], [[0, 1], [1, 0]]):
        assert len(linkage(X, "ward", connectivity=graph).merges) == 1
    assert len(linkage(X, "ward", connectivity=np.eye(2, dtype=bool)).merges) == 0


def test_a_grid_is_its_matrix():
    X = np.random.default_rng(3).normal(size=(24, 2))
    for shape in ((4, 6), (24,), (2, 3, 4), (1, 24)):
        grid = fastrbhc.grid(*shape)
        tree = linkage(X, "ward", connectivity=grid)
        assert same_tree(tree, linkage(X, "ward", connectivity=grid.matrix()))
        assert same_tree(tree, linkage(X, "ward", connectivity=("grid", shape)))
        assert same_tree(tree, linkage(X, "ward", connectivity=("grid", *shape)))
        assert fastrbhc.grid(shape) == grid
        if len(shape) > 1:
            theirs = grid_to_graph(*shape, mask=None).tolil()
            theirs.setdiag(0)
            assert (grid.matrix().toarray() == (theirs.toarray() != 0)).all()


def test_diagonal_neighbours():
    graph = fastrbhc.grid(3, 3, diagonals=True).matrix()
    assert graph.sum(axis=1).tolist() == [3, 5, 3, 5, 8, 5, 3, 5, 3]
    assert (graph != graph.T).nnz == 0


def test_pieces_have_trees_of_their_own_and_connect_joins_them():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2)) + np.repeat([[0.0, 0.0], [50.0, 0.0], [49.0, 9.0]], 10, axis=0)
    edges = np.concatenate([random_edges(rng, 10, 4) + 10 * k for k in range(3)])
    forest = linkage(X, "ward", connectivity=edges)
    assert (forest.n_trees, forest.threshold) == (3, np.inf)
    assert adjusted_rand_score(forest.cut(), np.repeat([0, 1, 2], 10)) == 1.0
    whole = linkage(X, "ward", connectivity=edges, connect=True)
    assert (whole.n_trees, whole.origin.connectivity) == (1, "joined")
    assert "pieces of a graph joined at last" in repr(whole)
    assert merged_sets(forest).items() <= merged_sets(whole).items()
    # The second and the third piece are nearer to one another than to the first.
    assert leaf_sets(whole)[-2] == frozenset(range(10, 30))
    cut = linkage(X, "ward", connectivity=edges, connect=True, threshold=2000.0)
    np.testing.assert_array_equal(cut.cut(), whole.cut(threshold=2000.0))
    joined = linkage(X, "ward", connectivity=random_edges(rng, 30, 3), connect=True)
    assert joined.origin.connectivity == "graph"
    assert "3 trees," in repr(forest)
    with pytest.raises(ValueError, match=r"in 3 pieces, with a tree each.*connect=True"):
        forest.cut(n_clusters=2)
    with pytest.raises(ValueError, match=r"in 3 pieces.*connect=True"):
        fastrbhc.gap_threshold(forest)


def test_single_rows_and_isolated_ones():
    assert linkage([[1.0], [2.0]], "ward", connectivity=[]).n_trees == 2
    assert linkage([[1.0], [2.0]], "ward", connectivity=[[0, 1]]).heights.tolist() == [0.25]
    tree = linkage([[1.0], [2.0], [9.0]], "ward", connectivity=[[0, 2]])
    assert tree.merges.tolist() == [[0, 2]]


def test_scikit_learn_finds_the_same_segments():
    """Its heights are 2√d. Noise decides ties."""
    rng = np.random.default_rng(5)
    image = np.kron(rng.integers(0, 9, (6, 8, 3)), np.ones((5, 5, 1)))
    X = image.reshape(-1, 3) + 1e-3 * rng.normal(size=(1200, 3))
    tree = linkage(X, "ward", connectivity=fastrbhc.grid(30, 40))
    children, *_, distances = ward_tree(X, connectivity=grid_to_graph(30, 40), return_distance=True)
    heights = tree.heights[np.argsort(tree.steps)]
    np.testing.assert_allclose(2.0 * np.sqrt(heights), distances, rtol=1e-9)
    theirs = dendrogram_of_merges(children, heights, np.ones(len(X)))
    for k in (5, 48, 300):
        assert adjusted_rand_score(theirs.cut(n_clusters=k), tree.cut(n_clusters=k)) == 1.0


def test_scikit_learn_finds_the_same_tree_of_a_random_graph():
    rng = np.random.default_rng(6)
    X, edges = rng.normal(size=(300, 4)), random_edges(rng, 300, 500)
    tree = linkage(X, "ward", connectivity=edges)
    children, *_, distances = ward_tree(X, connectivity=matrix_of(edges, 300), return_distance=True)
    order = np.argsort(tree.steps)
    np.testing.assert_allclose(2.0 * np.sqrt(tree.heights[order]), distances, rtol=1e-9)
    theirs = dendrogram_of_merges(np.sort(children, axis=1), tree.heights[order], np.ones(300))
    assert merged_sets(theirs).keys() == merged_sets(tree).keys()
    assert tree.n_inversions > 0


def test_repeated_rows_stay_in_their_places():
    X = np.array([[1.0], [7.0], [1.0], [1.0]])
    tree = linkage(X, "ward", connectivity=fastrbhc.grid(4))
    assert tree.merges.tolist()[0] == [2, 3]
    assert tree.heights[0] == 0.0
    assert tree.cut(n_clusters=3).tolist() == [1, 2, 0, 0]


def test_sparse_rows_have_the_tree_of_dense_ones():
    X = wide_counts("poisson", 300, 500, seed=7)
    edges = random_edges(np.random.default_rng(7), 300, 600)
    dense = linkage(X.toarray(), "poisson", connectivity=edges)
    computed = linkage(sparse.csr_array(X), "poisson", connectivity=edges)
    assert_agree(computed, dense)
    joined = linkage(sparse.csr_array(X), "poisson", connectivity=edges[:200], connect=True)
    assert_agree(joined, linkage(X.toarray(), "poisson", connectivity=edges[:200], connect=True))


def test_products_and_missing_cells_are_certified():
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.poisson(4.0, 40), rng.normal(size=(40, 2))]).astype(float)
    edges = random_edges(rng, 40, 60)
    product = families.Product({"poisson": [0], "gaussian": [1, 2]})
    tree = linkage(X, product, connectivity=edges)
    certify_on_graph(tree, X, None, tree.family, edges)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    gaps = linkage(X, "ward", connectivity=edges, missing="ignore")
    certify_on_graph(gaps, X, None, "spherical_gaussian", edges)


def test_trees_survive_json_and_pickle():
    X = np.random.default_rng(9).normal(size=(20, 2))
    whole = linkage(X, "ward", connectivity=fastrbhc.grid(4, 5))
    pieces = linkage(X, "ward", connectivity=[[0, 1], [1, 2]])
    joined = linkage(X, "ward", connectivity=[[0, 1], [1, 2]], connect=True)
    for tree, how in ((whole, "graph"), (pieces, "graph"), (joined, "joined")):
        for copy in (Dendrogram.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
            assert same_tree(copy, tree)
            assert copy.origin == tree.origin
            assert copy.origin.connectivity == how
    content = json.loads(pieces.to_json())
    for wrong in ("none", 3, "joined"):
        with pytest.raises(ValueError, match=r"connectivity|no threshold"):
            Dendrogram.from_json(json.dumps(content | {"connectivity": wrong}))
    assert "connectivity" not in json.loads(linkage(X, "ward").to_json())


def test_the_estimator_takes_a_graph():
    rng = np.random.default_rng(10)
    image = np.kron([[0.0, 9.0], [9.0, 0.0]], np.ones((6, 6))) + rng.normal(size=(12, 12))
    X, grid = image.reshape(-1, 1), fastrbhc.grid(12, 12)
    model = clone(RBHC("ward", n_clusters=4, connectivity=grid)).fit(X)
    segments = np.kron([[0, 1], [2, 3]], np.ones((6, 6), int)).ravel()
    assert adjusted_rand_score(model.labels_, segments) == 1.0
    # New rows have no place in the graph: they join the nearest cluster.
    assert model.predict([[0.0]])[0] in model.labels_[[0, -1]]
    tree = linkage(X, "ward", connectivity=grid)
    np.testing.assert_array_equal(model.labels_, tree.cut(n_clusters=4))
    gap = RBHC("ward", threshold="gap", connectivity=grid).fit(X)
    assert gap.threshold_ == fastrbhc.gap_threshold(tree)
    by_function = RBHC(
        "ward",
        n_clusters=4,
        connectivity=lambda Z: kneighbors_graph(image, 2) if Z is None else grid,
    ).fit(X)
    np.testing.assert_array_equal(by_function.labels_, model.labels_)
    with pytest.raises(ValueError, match=r"threshold='predictive'.*n_clusters"):
        RBHC("ward", connectivity=grid).fit(X)
    with pytest.raises(ValueError, match="no graph"):
        model.assess(X)
    with pytest.raises(ValueError, match="no graph"):
        fastrbhc.predictive_threshold(tree, X)


X5 = np.arange(10.0).reshape(5, 2)


@pytest.mark.parametrize(
    ("graph", "error", "words"),
    [
        ("grid", ValueError, "shape of a grid has to be given"),
        (fastrbhc.grid(2, 3), ValueError, "2 × 3 = 6 places and X has 5 rows"),
        (("grid", (5, 0)), ValueError, "at least 1 place"),
        (("grid", (2.5, 2)), TypeError, "whole numbers"),
        (("grid", 4), ValueError, "4 = 4 places and X has 5 rows"),
        (("grid",), ValueError, "a grid needs a shape"),
        (np.ones((4, 4)), ValueError, "array of shape .4, 4. for the 5 rows"),
        (sparse.eye_array(4), ValueError, "matrix of 4 × 4, and X has 5 rows"),
        (sparse.csr_array(np.full((5, 5), np.nan)), ValueError, "nan for rows 0 and 0"),
        (sparse.csr_array(np.full((5, 5), np.inf)), ValueError, "inf for rows 0 and 0"),
        (sparse.csr_array(np.full((5, 5), 1j)), TypeError, "numbers or truth values"),
        ([[0, 1], [2, -1]], ValueError, r"edge 1 of connectivity is \[2, -1\].*negative"),
        ([[0, 1], [2, 5]], ValueError, r"edge 1 .*\[2, 5\].*not one of the 5 rows.*0 to 4"),
        ([[0.0, 1.0]], TypeError, "whole numbers"),
        ([[0, 1, 2]], ValueError, "array of shape .1, 3."),
        ([[0, 1], [2]], TypeError, "connectivity has to be a sparse matrix"),
        ([["a", "b"]], TypeError, "connectivity has to be a sparse matrix"),
        (3, ValueError, "array of shape"),
        (lambda X: None, TypeError, "NoneType"),
    ],
)
def test_a_graph_that_is_none_is_refused(graph, error, words):
    with pytest.raises(error, match=words):
        linkage(X5, "ward", connectivity=graph)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"audit": True}, ValueError, "audit=.*leave it out"),
        ({"algorithm": "levels"}, ValueError, "use 'greedy'"),
        ({"algorithm": "nn_chain"}, ValueError, "use 'greedy'"),
        ({"neighbors": "brute"}, ValueError, "those of the graph"),
        ({"threshold": "predictive"}, ValueError, "samples have no graph"),
        ({"sample_weight": [1, 1, 0, 1, 1]}, ValueError, "sample_weight is 0.*Leave them out"),
        ({"connect": "yes"}, TypeError, "connect has to be True or False"),
    ],
)
def test_options_without_a_meaning_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        linkage(X5, "ward", connectivity=[[0, 1]], **options)
    with pytest.raises(ValueError, match="give connectivity="):
        linkage(X5, "ward", connect=True)


def test_an_edge_in_one_direction_is_an_edge_with_a_warning():
    graph = sparse.csr_array(([1, 1, 1], ([0, 1, 3], [1, 0, 4])), shape=(5, 5))
    with pytest.warns(UserWarning, match="not symmetric: 1 of 2 edges") as caught:
        tree = linkage(X5, "ward", connectivity=graph)
    assert caught[0].filename == __file__
    assert same_tree(tree, linkage(X5, "ward", connectivity=[[0, 1], [3, 4]]))


@pytest.mark.fast
def test_links_come_in_their_order_from_heap_and_pile():
    rng = np.random.default_rng(11)
    n = 6000
    queue, values = link_queue.empty_queue(n), rng.integers(0, 500, n) * 1.0
    values[: n // 10] = np.inf
    far = queue.far
    far.values[:], far.orders[:] = values, rng.permutation(n)
    far.slots[:] = far.nodes[:] = np.arange(n)
    nodes = np.arange(n, dtype=np.int32)
    nodes[::7] = -1  # merged
    link_queue.drop_empty(far, n)
    expected = sorted(
        (value, order)
        for value, order, slot in zip(far.values, far.orders, far.slots, strict=True)
        if slot >= n // 10 and slot % 7
    )[: n - n // 10]
    taken = []
    while True:
        if queue.near.size == 0:
            link_queue.refill(queue, nodes)
            if queue.near.size == 0:
                break
        near = queue.near
        if nodes[near.slots[0]] >= 0:
            taken.append((near.values[0], near.orders[0]))
        link_queue.remove_first(near)
    assert len(set(taken)) == len(taken)
    assert taken == sorted(taken)
    assert set(taken) <= set(expected)
    assert len(taken) == np.count_nonzero((np.arange(n) % 7 > 0) & (values < np.inf))


@pytest.mark.fast
def test_marks_of_searches_are_renewed_before_they_overflow():
    graph = fastrbhc.grid(2, 2).graph()
    lists = adjacency.new_adjacency(graph, np.arange(4))
    lists.stamp = 2**31 - 2
    assert adjacency.find_older(lists, np.ones(4), 3) == 2
    assert lists.stamp == 1
    assert sorted(lists.found[:2].tolist()) == [1, 2]


@pytest.mark.fast
@pytest.mark.parametrize("at_a_time", [1, 3, 1000])
def test_lists_of_unions_are_the_neighbours_of_their_parts(at_a_time, monkeypatch):
    """Against sets of neighbours, with the lists moved whenever there is no room."""
    monkeypatch.setattr(adjacency, "_AT_A_TIME", at_a_time)
    rng, n = np.random.default_rng(3), 150
    graph = check_connectivity(random_edges(rng, n, 250), None, n)
    starts = graph.starts
    reference = {i: set(graph.neighbors[starts[i] : starts[i + 1]].tolist()) for i in range(n)}
    lists, weights, n_moves = adjacency.new_adjacency(graph, np.arange(n)), np.ones(n), 0
    for node in range(n, 2 * n - 1):
        i = int(rng.choice(list(reference)))
        j = int(rng.choice(list(reference[i])))
        if not adjacency.room_for_union(lists, i, j):
            adjacency.drop_old_lists(lists)
            n_moves += 1
            assert lists.end <= graph.neighbors.size
        reference[i] = (reference[i] | reference.pop(j)) - {i, j}
        for neighbors in reference.values():
            if j in neighbors:
                neighbors.remove(j)
                neighbors.add(i)
        reference = {k: neighbors - {k} for k, neighbors in reference.items()}
        lists.nodes[i], lists.nodes[j] = node, -1
        count = adjacency.unite_lists(lists, weights, i, j)
        assert sorted(lists.found[:count].tolist()) == sorted(reference[i])
    assert n_moves > 1
    assert lists.counts[i] == 0
