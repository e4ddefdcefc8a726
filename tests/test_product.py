"""Products of families, and categories."""

import json
import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from certificates import certify_greedy, certify_nn_chain
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.metrics import adjusted_rand_score

import fastrbhc
from fastrbhc import RBHC, families
from fastrbhc._table import encoded, placed, table_of
from fastrbhc.families import Block, Categorical, Gaussian, Poisson, Product, as_family

MIXED = {
    "poisson": ["visits", "orders"],
    "gaussian": ["age", "income"],
    "categorical": ["country"],
    "bernoulli": ["member"],
}
# Combinations with and without scatter, cached values, mirrors and box features.
COMBINATIONS = [
    {"ward": [0], "poisson": [1], "bernoulli": [2]},
    {"poisson": [1], "gaussian": [0, 3]},
    {"gaussian": [0, 3], "poisson": [1, 2]},
    {"diagonal_gaussian": [0], "von_mises_fisher": [1, 3], "exponential": [4]},
    {"gaussian": [0], "diagonal_gaussian": [1, 2], "ward": [3]},
]


def people(n=120, seed=0):
    """A table of three kinds of people, and their kinds."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    country = (kind + (rng.random(n) < 0.2) * rng.integers(1, 3, n)) % 3
    table = pd.DataFrame(
        {
            "visits": rng.poisson(np.array([2, 8, 20])[kind]),
            "orders": rng.poisson(np.array([1, 1, 4])[kind]),
            "age": rng.normal(np.array([30, 50, 40])[kind], 5.0),
            "income": rng.normal(np.array([2.0, 4.0, 3.0])[kind], 0.5),
            "country": np.array(["FR", "DE", "IT"])[country],
            "member": rng.random(n) < np.array([0.1, 0.5, 0.9])[kind],
        }
    )
    return table, kind


def numbers(n, seed, tied=False):
    """Five columns that suit all families: counts, zeros and ones, positive measurements."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.poisson(3.0, n),
            rng.integers(0, 2, n),
            rng.gamma(2.0, size=n),
            rng.exponential(size=n) + 0.1,
        ]
    )
    X[:, 1] += X[:, 3] == 0
    return np.maximum(np.round(2.0 * X) / 2.0, [-np.inf, 0, 0, 0.5, 0.5]) if tied else X


def with_positions(family, X):
    """The family with the positions of all columns, those it does not name being ignored."""
    named = {k for columns in family.values() for k in columns}
    rest = [k for k in range(X.shape[1]) if k not in named]
    return placed(as_family({**family, "ignore": rest}), X)


@pytest.mark.parametrize("family", COMBINATIONS, ids=str)
def test_d_is_the_sum_over_the_blocks(family):
    X = numbers(40, 1)
    family = with_positions(family, X)
    reference = sum(
        fastrbhc.dissimilarity(X[:15][:, block.columns], X[15:][:, block.columns], block.family)
        for block in family.blocks
    )
    assert fastrbhc.dissimilarity(X[:15], X[15:], family) == pytest.approx(reference, rel=1e-14)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("family", COMBINATIONS, ids=str)
def test_greedy_trees_merge_the_nearest_pair(family, tied):
    X = numbers(36, 2, tied)
    family = with_positions(family, X)
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    for given in (None, weights):
        certify_greedy(fastrbhc.linkage(X, family, sample_weight=given), X, given, family)


def test_chains_merge_reciprocal_neighbours():
    X = numbers(30, 4)
    family = with_positions(COMBINATIONS[1], X)
    certify_nn_chain(fastrbhc.linkage(X, family, algorithm="nn_chain"), X, None, family)


@pytest.mark.parametrize("family", COMBINATIONS, ids=str)
def test_all_backends_build_the_same_tree(family):
    X = numbers(700, 5)
    family = with_positions(family, X)
    reference = fastrbhc.linkage(X, family, neighbors="brute", n_jobs=1)
    for neighbors in ("kd_tree", "auto"):
        found = fastrbhc.linkage(X, family, neighbors=neighbors, n_jobs=2)
        np.testing.assert_array_equal(found.merges, reference.merges)
        np.testing.assert_array_equal(found.heights, reference.heights)


@pytest.mark.parametrize("family", COMBINATIONS[:3], ids=str)
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_audits_count_all_violations(family, neighbors):
    X = numbers(28, 6, tied=True)
    family = with_positions(family, X)
    tree = fastrbhc.linkage(X, family, neighbors=neighbors, audit=True)
    known, found = naive.violations(tree, X, None, family), tree.audit
    assert found.triples == known.triples
    assert len(known.certain) <= found.violations <= len(known.certain) + len(known.open)


def test_one_block_is_its_family():
    X = numbers(60, 7)[:, [1, 2]]
    found, reference = fastrbhc.linkage(X, {"poisson": [0, 1]}), fastrbhc.linkage(X, "poisson")
    np.testing.assert_array_equal(found.heights, reference.heights)


def test_the_order_of_rows_does_not_matter():
    X = numbers(150, 8, tied=True)
    family = with_positions(COMBINATIONS[2], X)
    order = np.random.default_rng(9).permutation(len(X))
    tree, other = fastrbhc.linkage(X, family), fastrbhc.linkage(X[order], family)
    np.testing.assert_array_equal(other.heights, tree.heights)
    labels, others = tree.cut(n_clusters=9)[order], other.cut(n_clusters=9)
    assert adjusted_rand_score(labels, others) == 1.0


def test_weights_are_factors_of_blocks():
    X = numbers(30, 10)
    blocks = (Block("poisson", [1], weight=3.0), Block("ward", [0], weight=0.25))
    family = Product((*blocks, Block("ignore", [2, 3, 4])))
    reference = 3.0 * fastrbhc.dissimilarity(X[:9, [1]], X[9:, [1]], "poisson")
    reference += 0.25 * fastrbhc.dissimilarity(X[:9, [0]], X[9:, [0]], "ward")
    assert fastrbhc.dissimilarity(X[:9], X[9:], family) == pytest.approx(reference, rel=1e-14)
    pairs = {"poisson": ([1], 3.0), "ward": ([0], 0.25), "ignore": slice(2, None)}
    assert placed(as_family(pairs), X) == placed(as_family(family), X)
    certify_greedy(fastrbhc.linkage(X, family), X, None, placed(as_family(family), X))


# Columns.


@pytest.mark.parametrize(
    "columns",
    [
        ["visits", "orders"],
        [0, 1],
        slice(0, 2),
        slice("visits", "orders"),
        [True, True, False, False, False, False],
        np.array([True, True] + 4 * [False]),
        make_column_selector(pattern="visits|orders"),
    ],
    ids=["names", "positions", "slice", "slice of names", "mask", "array", "selector"],
)
def test_ways_to_name_columns(columns):
    table, _ = people(30)
    rest = ["age", "income", "country", "member"]
    family = placed(as_family({"poisson": columns, "ignore": rest}), table)
    assert family.blocks == (Block(Poisson(), (0, 1), 1.0),)
    assert family.n_columns == 6


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"poisson": ["visits"]}, "no block has column 'orders', column 'age'"),
        ({**MIXED, "poisson": ["visits", "order"]}, "no column 'order'. Did you mean 'orders'"),
        ({**MIXED, "ward": ["visits"]}, "column 'visits' is in two blocks, 'poisson' and"),
        ({**MIXED, "poisson": ["visits", "visits"]}, "column 'visits' is named twice"),
        ({**MIXED, "poisson": ["visits", 17]}, "no column 17"),
        ({"ignore": slice(None)}, "at least one block"),
        ({}, "at least one block"),
        ({"poisson": [True, False]}, "a mask of 2 columns"),
        ({"poisson": (slice(None), 2.0)}, "weight compares blocks"),
        ({"poisson": ([0], -1.0), "ignore": slice(1, None)}, "weight of the block 'poisson'"),
        ({**MIXED, "poison": []}, "poison"),
        ({Product((Block("poisson", (0,)),)): [0]}, "cannot be a block of another"),
    ],
    ids=str,
)
def test_what_is_wrong_with_columns(family, message):
    table, _ = people(30)
    with pytest.raises((ValueError, TypeError), match=message):
        fastrbhc.linkage(table, family)


def test_text_without_a_family_for_it():
    table, _ = people(30)
    with pytest.raises(ValueError, match=r"column 'country' of X holds text.*categorical"):
        fastrbhc.linkage(table, {"ward": slice(None)})


def test_values_outside_the_domain_of_their_block():
    table, _ = people(30)
    table.loc[4, "orders"] = -1
    with pytest.raises(ValueError, match=r"row 4, column 'orders' is -1.*poisson"):
        fastrbhc.linkage(table, MIXED)


def test_columns_without_names_are_called_by_their_positions():
    X = numbers(9, 12)
    X[4, 2] = 7.0
    family = {"ward": [0, 1], "bernoulli": [2], "ignore": [3, 4]}
    with pytest.raises(ValueError, match=r"row 4, column 2 is 7\..*Rows and columns count from 0"):
        fastrbhc.linkage(X, family)


def test_names_for_arrays():
    X = numbers(30, 11)[:, :2]
    family = {"ward": ["a"], "poisson": ["b"]}
    tree = fastrbhc.linkage(X, family, feature_names=["a", "b"])
    np.testing.assert_array_equal(
        tree.heights, fastrbhc.linkage(X, {"ward": [0], "poisson": [1]}).heights
    )
    with pytest.raises(ValueError, match="no names of columns"):
        fastrbhc.linkage(X, family)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="toarray"):
        fastrbhc.linkage(sparse.csr_array(np.eye(4)), {"poisson": slice(None)})


def test_multinomial_blocks_take_proportions():
    family = as_family({"multinomial": [0, 1], "ward": [2]})
    assert not family.blocks[0].family.weight_by_total


# Mixed tables.


def test_clusters_of_a_mixed_table():
    table, kind = people()
    tree = fastrbhc.linkage(table, MIXED)
    assert adjusted_rand_score(kind, tree.cut(n_clusters=3)) > 0.8
    summary = tree.summary(table, n_clusters=3)
    assert list(summary.columns[5:]) == [f"mean_{name}" for name in table.columns]
    labels = tree.cut(n_clusters=3)
    for k in range(3):
        assert summary["mean_age"][k] == pytest.approx(table["age"][labels == k].mean())
        level = table["country"][labels == k].mode()[0]
        assert summary["mean_country"][k].startswith(f"{level} (")
    encoded = tree.family.encode(table_of(table))
    certify_greedy(fastrbhc.linkage(table[:40], tree.family), encoded[:40], None, tree.family)


@pytest.mark.parametrize("threshold", ["gap", "evidence", "predictive", "kmeans"])
def test_thresholds(threshold):
    table, _ = people()
    model = RBHC(MIXED, threshold=threshold, random_state=0).fit(table)
    assert 2 <= model.n_clusters_ <= 12


def test_the_estimator_for_new_rows():
    table, _ = people()
    model = clone(RBHC(MIXED, n_clusters=3)).fit(table)
    assert adjusted_rand_score(model.predict(table), model.labels_) > 0.8
    new = table.copy()
    new.loc[0, "country"] = "XX"
    assert model.predict(new).shape == (len(table),)
    assert model.transform(table[:5]).shape == (5, 3)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(table), model.predict(table))
    assert model.summary().shape[0] == 3
    # Others, fewer, or in another order: what fills them is no longer what the blocks are for.
    for columns in (["age", "visits", "orders", "income", "country", "member"], table.columns[:-1]):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(table[list(columns)])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[table.columns[::-1]])


def test_trees_remember_their_product():
    table, _ = people(40)
    tree = fastrbhc.linkage(table, MIXED)
    again = fastrbhc.Dendrogram.from_json(tree.to_json())
    assert again.family == tree.family
    assert pickle.loads(pickle.dumps(tree)).family == tree.family
    content = json.loads(tree.to_json())
    assert content["family"]["parameters"]["blocks"][0][0]["name"] == "poisson"
    summary = again.summary(table, n_clusters=2)
    pd.testing.assert_frame_equal(summary, tree.summary(table, n_clusters=2))


def test_parameters_of_blocks():
    table, _ = people(40)
    family = {
        Poisson(smoothing=0.5): ["visits", "orders"],
        Gaussian(smoothing="auto"): ["age", "income"],
        "ignore": ["country", "member"],
    }
    model = RBHC(family, n_clusters=2).fit(table)
    blocks = model.dendrogram_.family.blocks
    assert blocks[0].family == Poisson(0.5)
    assert isinstance(blocks[1].family.smoothing, float)


# Categories.


def test_categories_in_all_containers():
    text = [["red", "1"], ["blue", "2"], ["red", "2"], ["green", "1"], ["red", "1"]]
    reference = fastrbhc.linkage(text, "categorical")
    frame = pd.DataFrame(text, columns=["colour", "size"])
    mixed = frame.assign(colour=frame["colour"].astype("category"), size=frame["size"].astype(int))
    floats = frame.assign(size=frame["size"].astype(float))
    for X in (np.array(text), np.array(text, object), frame, mixed, floats):
        tree = fastrbhc.linkage(X, "categorical")
        np.testing.assert_array_equal(tree.heights, reference.heights)
        assert tree.family.levels == (("blue", "green", "red"), ("1", "2"))


def test_d_of_categories_is_that_of_indicators():
    X = np.random.default_rng(12).choice(["a", "b", "c"], (30, 1))
    indicators = (np.array(["a", "b", "c"]) == X).astype(float)
    family = families.Multinomial(weight_by_total=False)
    found = fastrbhc.dissimilarity(X[:12], X[12:], "categorical")
    assert found == pytest.approx(fastrbhc.dissimilarity(indicators[:12], indicators[12:], family))
    tree, reference = fastrbhc.linkage(X, "categorical"), fastrbhc.linkage(indicators, family)
    np.testing.assert_allclose(tree.heights, reference.heights, rtol=1e-13)


def test_categories_are_not_reducible():
    levels = ["a", "b", "c"]
    rows = [["a"]] * 2 + [["b"]], [["a"]] + [["b"]] * 2, [["a"], ["b"]] * 8 + [["c"]]
    family = Categorical(levels=(tuple(levels),))
    near = [fastrbhc.dissimilarity(part, rows[2], family) for part in rows[:2]]
    assert fastrbhc.dissimilarity(rows[0] + rows[1], rows[2], family) < min(near)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_missing_categories_are_refused(gap):
    frame = pd.DataFrame({"colour": ["red", gap, "blue"]}, dtype=object)
    with pytest.raises(ValueError, match="missing value: row 1, column 'colour'"):
        fastrbhc.linkage(frame, "categorical")


def test_a_cell_is_one_entry_however_many_levels_there_are():
    X = np.random.default_rng(21).permutation(10_000).astype(str)[:, None]
    family = placed(as_family("categorical"), X)
    observed = family.observe(encoded(X, family))
    assert observed.n_entries == len(X)
    assert observed.n_columns == 10_001


def test_identifiers_are_advised_against():
    frame = pd.DataFrame({"id": [f"c{row}" for row in range(150)], "size": list("sml") * 50})
    with pytest.warns(UserWarning, match=r"'id' has 150 levels in 150 rows.*leave it out"):
        fastrbhc.linkage(frame, "categorical")


LEVELS = [
    {"categorical": [2, 3, 4]},
    {"ward": [0], "categorical": [2, 4]},
    {Categorical(smoothing=0.3): [2], "poisson": [1], "categorical": [3, 4]},
    {"categorical": [4], Categorical(smoothing=0.5): [2, 3]},
]


def with_levels(n, seed):
    """Numbers and counts with ties, and three columns of levels: many, few, about n/2."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n).round(1), rng.poisson(2.0, n)]
    columns += [rng.integers(0, most, n) for most in (n, 3, 1 + n // 2)]
    return np.column_stack(columns).astype(float)


def ignoring(family, n_columns):
    used = {k for columns in family.values() for k in columns}
    return {**family, "ignore": [k for k in range(n_columns) if k not in used]}


@pytest.mark.parametrize("weighted", [None, "whole", "any"])
@pytest.mark.parametrize("family", LEVELS, ids=str)
def test_trees_of_many_levels_are_certified(family, weighted):
    X, rng = with_levels(30, 22), np.random.default_rng(23)
    weights = {"whole": rng.integers(1, 4, 30).astype(float), "any": rng.exponential(size=30)}
    weights = weights.get(weighted, np.ones(30))
    tree = fastrbhc.linkage(X, ignoring(family, 5), sample_weight=weights)
    certify_greedy(tree, encoded(X, tree.family), weights, tree.family)


@pytest.mark.parametrize("family", LEVELS[1:], ids=str)
def test_indices_agree_on_many_levels(family):
    # Large enough for the pool of entries to be compacted many times.
    X = with_levels(1500, 24)
    reference, *computed = (
        fastrbhc.linkage(X, ignoring(family, 5), neighbors=neighbors)
        for neighbors in ("brute", "kd_tree", "auto")
    )
    for tree in computed:
        np.testing.assert_array_equal(tree.merges, reference.merges)
        np.testing.assert_array_equal(tree.heights, reference.heights)


@pytest.mark.parametrize("family", LEVELS, ids=str)
def test_violations_with_many_levels(family):
    X = with_levels(25, 25)
    tree = fastrbhc.linkage(X, ignoring(family, 5), audit=True)
    rows, weights = encoded(X, tree.family), np.ones(25)
    found = naive.violations(tree, rows, weights, tree.family)
    certain, possible = len(found.certain), len(found.certain | found.open)
    assert certain <= tree.audit.violations <= possible


def test_new_rows_beside_clusters_of_many_levels():
    X = with_levels(60, 26)
    family = ignoring(LEVELS[2], 5)
    model = RBHC(family, n_clusters=4).fit(X, sample_weight=np.linspace(0.5, 1.5, 60))
    new = np.vstack([X[:5], X[5] + [0, 0, 1000, 0, 0]])  # the last level is not known
    record = model.dendrogram_.family
    rows, weights = encoded(X, record), np.linspace(0.5, 1.5, 60)
    members = [np.flatnonzero(model.labels_ == k) for k in range(4)]
    reference = [
        [
            naive.dissimilarity(row[None], np.ones(1), rows[own], weights[own], record)
            for own in members
        ]
        for row in encoded(new, record)
    ]
    np.testing.assert_allclose(model.transform(new), reference, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), np.argmin(reference, axis=1))


def test_levels_that_do_not_fit():
    with pytest.raises(ValueError, match="levels for 1 columns"):
        fastrbhc.linkage([["a", "b"], ["b", "a"]], Categorical(levels=(("a", "b"),)))
    with pytest.raises(ValueError, match="named twice"):
        as_family(Categorical(levels=(("a", "a"),)))


def test_auto_is_a_product_for_a_table_with_text():
    table, kind = people()
    with pytest.warns(UserWarning, match="columns are of different kinds"):
        model = RBHC(n_clusters=3).fit(table)
    assert adjusted_rand_score(kind, model.labels_) > 0.7
    names = {block.family.name for block in model.dendrogram_.family.blocks}
    assert {"categorical", "bernoulli"} <= names
    assert model.predict(table[:4]).shape == (4,)


def test_the_suggestion_can_be_pasted():
    table, _ = people()
    table = table.assign(id=[f"customer {k}" for k in range(len(table))])
    family = fastrbhc.suggest_family(table).family
    assert family["ignore"] == ["id"]
    assert fastrbhc.linkage(table, family).n_leaves == len(table)


# What is done with a tree of mixed rows.


def test_top_columns_of_blocks():
    table, _ = people()
    tree = fastrbhc.linkage(table, MIXED)
    labels = tree.cut(n_clusters=3)
    summary = tree.summary(table, n_clusters=3, n_top=50)
    own, rest = table[labels == 0], table[labels != 0]
    reference = fastrbhc.dissimilarity(own, rest, tree.family)
    assert summary["apart"][0] == pytest.approx(reference, rel=1e-12)
    assert summary["top_share"][0] == pytest.approx(1.0)
    words = f"{summary['more_of'][0]}, {summary['less_of'][0]}"
    ratio = own["visits"].mean() / rest["visits"].mean()
    step = own["age"].mean() - rest["age"].mean()
    level = (own["country"] == "FR").mean() / (rest["country"] == "FR").mean()
    for text in (f"visits {ratio:.2g}×", f"age {step:+.3g}", f"country=FR {level:.2g}×"):
        assert text in words
    model = RBHC(MIXED, n_clusters=3).fit(table)
    assert model.summary(n_top=50)["more_of"].tolist() == summary["more_of"].tolist()


def test_columns_left_out_have_no_means():
    table, _ = people(30)
    family = {"poisson": ["orders"], "ward": ["age"], "ignore": ["visits", "income", 4, 5]}
    tree = fastrbhc.linkage(table, family)
    assert list(tree.summary(table, n_clusters=2).columns[5:]) == ["mean_orders", "mean_age"]
    model = RBHC(family, n_clusters=2).fit(table)
    assert list(model.summary().columns[5:]) == ["mean_orders", "mean_age"]


def test_terms_of_blocks_have_their_weights():
    table, _ = people()
    columns = table[["visits", "country"]]
    shares = []
    for weight in (1.0, 1e-6):
        family = {"poisson": (["visits"], weight), "categorical": ["country"]}
        tree = fastrbhc.linkage(columns, family, threshold=1.0)
        top = tree.summary(columns, n_clusters=tree.n_trees, n_top=1, family=tree.family)
        shares.append(sum("visits" in text for text in top["more_of"] + top["less_of"]))
    assert shares[0] > shares[1] == 0


def test_top_levels_of_categories():
    X = pd.DataFrame({"colour": list("aabbcc") * 5, "size": list("sslsll") * 5})
    tree = fastrbhc.linkage(X, "categorical")
    labels = tree.cut(n_clusters=2)
    summary = tree.summary(X, n_clusters=2, n_top=9)
    reference = fastrbhc.dissimilarity(X[labels == 0], X[labels == 1], tree.family)
    assert summary["apart"].tolist() == pytest.approx([reference, reference])
    assert summary["top_share"].tolist() == pytest.approx([1.0, 1.0])
    assert "colour=a only here" in "".join(summary["more_of"])


def test_clusters_of_mixed_rows_are_assessed():
    table, _ = people(150)
    model = RBHC(MIXED, n_clusters=3).fit(table)
    report = model.assess(table)
    assert list(report.verdicts) == ["stable"] * 3
    assert list(model.dendrogram_.stability(table, n_clusters=3).verdicts) == ["stable"] * 3


def test_mixed_noise_has_no_stable_clusters():
    rng = np.random.default_rng(20)
    common = rng.normal(size=150)  # columns of different blocks depend on each other
    table = pd.DataFrame(
        {
            "count": rng.poisson(np.exp(2.0 + 0.4 * common)),
            "size": 3.0 * common + rng.normal(size=150),
            "price": np.exp(rng.normal(size=150)),
            "colour": rng.choice(["red", "blue", "green"], 150),
        }
    )
    family = {
        "poisson": ["count"],
        "gaussian": ["size"],
        "log_normal": ["price"],
        "categorical": ["colour"],
    }
    report = RBHC(family, n_clusters=3).fit(table).assess(table)
    assert "stable" not in list(report.verdicts)


def test_categories_alone_are_assessed():
    rng = np.random.default_rng(21)
    kind = np.arange(120) % 2
    noisy = [(kind + (rng.random(120) < 0.2)) % 2 for _ in range(12)]
    X = np.array(["no", "yes"])[np.column_stack(noisy)]
    assert list(RBHC("categorical", n_clusters=2).fit(X).assess(X).verdicts) == ["stable"] * 2
    X = rng.choice(["a", "b", "c"], (120, 4))
    report = RBHC("categorical", n_clusters=2).fit(X).assess(X)
    assert "stable" not in list(report.verdicts)


def test_pictures_of_mixed_rows():
    table, _ = people(60)
    tree = fastrbhc.linkage(table, MIXED)
    ax = tree.plot_clusters(table, n_clusters=3)
    assert "principal axis" in ax.get_xlabel()
    small = table.assign(income=table["income"] * 1e4)  # units do not matter to the picture
    again = tree.plot_clusters(small, n_clusters=3)
    np.testing.assert_allclose(
        again.collections[0].get_offsets(), ax.collections[0].get_offsets(), atol=1e-6
    )
    two = table[["visits", "age"]]
    ax = fastrbhc.linkage(two, {"poisson": [0], "ward": [1]}).plot_clusters(two, n_clusters=2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("visits", "age")
    one = table[["country"]]
    ax = fastrbhc.linkage(one, "categorical").plot_clusters(one, n_clusters=3)
    assert "principal axis" in ax.get_xlabel()
    assert tree.plot(n_clusters=3).lines or tree.plot(n_clusters=3).collections


def test_products_in_notebooks():
    pytest.importorskip("ipywidgets")
    table, _ = people(60)
    model = RBHC(MIXED, n_clusters=3).fit(table)
    for page in (model._repr_html_(), model.dendrogram_._repr_html_()):
        assert "product of 4 families" in page
        assert "poisson (smoothing 0.01): visits, orders" in page
    assert model.dendrogram_.explore(table).children


def test_new_rows_of_all_kinds():
    table, _ = people()
    model = RBHC(MIXED, n_clusters=3).fit(table)
    new = table[:10].copy()
    new.loc[3, "country"] = "XX"
    d = model.transform(new)
    np.testing.assert_allclose(model.score_samples(new), -d.min(axis=1))
    shares = model.predict_proba(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(new))


def test_unknown_levels_are_as_far_as_levels_that_a_cluster_lacks():
    known = Categorical(levels=(("DE", "FR", "IT"),))
    X = np.array(["FR"] * 45 + ["DE"] * 5)[:, None]
    lacking, unknown = (fastrbhc.dissimilarity([[one]], X, known) for one in ("IT", "XX"))
    assert unknown == lacking


def test_unknown_levels_speak_for_no_cluster():
    levels = ["FR"] * 40 + ["DE"] * 5 + ["IT"] * 5 + ["DE"] * 40 + ["FR"] * 5 + ["IT"] * 5
    X = np.array(levels)[:, None]
    family = Categorical(levels=(("DE", "FR", "IT"),))
    right, wrong, unknown = (
        [fastrbhc.dissimilarity([[level]], X[start : start + 50], family) for start in (0, 50)]
        for level in ("FR", "DE", "XX")
    )
    assert unknown[0] == unknown[1]
    assert right[0] < wrong[0] < unknown[0]


def test_the_taylor_value_is_the_sum_over_the_blocks():
    X = numbers(40, 13)
    family = with_positions({"poisson": [1], "ward": [0], "exponential": [4]}, X)
    centre = X.mean(axis=0)
    reference = sum(
        fastrbhc.taylor_dissimilarity(
            X[:15][:, block.columns],
            X[15:][:, block.columns],
            block.family,
            centre[[*block.columns]],
        )
        for block in family.blocks
    )
    for mean in (centre, list(centre), X):
        found = fastrbhc.taylor_dissimilarity(X[:15], X[15:], family, mean)
        assert found == pytest.approx(reference, rel=1e-10)


def test_the_taylor_value_of_a_mixed_table():
    table, _ = people(40)
    found = fastrbhc.taylor_dissimilarity(table[:20], table[20:], MIXED, table)
    assert found == pytest.approx(fastrbhc.taylor_dissimilarity(table[:20], table[20:], MIXED))
    with pytest.raises(ValueError, match="mean is one row, and the block 'gaussian'"):
        fastrbhc.taylor_dissimilarity(table[:20], table[20:], MIXED, table.iloc[0].tolist())
    rows = table[["visits", "country"]]
    family = {"poisson": ["visits"], "categorical": ["country"]}
    fastrbhc.taylor_dissimilarity(rows[:20], rows[20:], family, rows.iloc[0].tolist())
