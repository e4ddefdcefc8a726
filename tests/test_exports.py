"""Trees for other programs: nothing is lost, nothing recurses."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from trees import chain, forest_with_ties, leaf_sets, same_tree

import fastrbhc
from fastrbhc import RBHC, Dendrogram, families, linkage

SMALL = [[0.0], [1.0], [5.0], [7.0]]


def small_tree():
    return linkage(SMALL, "ward")


def tree_with_inversions():
    tree = linkage(np.random.default_rng(4).normal(size=(25, 2)), "gaussian")
    assert tree.n_inversions > 0
    return tree


def short_chain():
    return chain(12)


every_kind = pytest.mark.parametrize(
    "make", [small_tree, forest_with_ties, tree_with_inversions, short_chain]
)


def parsed(text):
    """Nodes of a Newick tree as (leaves below, length above), by a plain stack."""
    stack, nodes, place = [[]], [], 0
    leaves = {}

    def finish(node):
        nonlocal place
        length = None
        if text[place] == ":":
            end = min(i for i in range(place, len(text)) if text[i] in ",);")
            length, place = float(text[place + 1 : end]), end
        nodes.append((node, length))
        stack[-1].append(node)

    while text[place] != ";":
        symbol = text[place]
        if symbol == "(":
            stack.append([])
            place += 1
        elif symbol == ",":
            place += 1
        elif symbol == ")":
            place += 1
            finish(frozenset().union(*stack.pop()))
        else:
            if symbol == "'":
                end = place + 1
                while text[end] != "'" or text[end + 1] == "'":
                    end += 2 if text[end] == "'" else 1
                name, place = text[place + 1 : end].replace("''", "'"), end + 1
            else:
                end = min(i for i in range(place, len(text)) if text[i] in ":,);")
                name, place = text[place:end], end
            leaves[name] = len(leaves)
            finish(frozenset([name]))
    assert place == len(text) - 1
    return nodes


@every_kind
def test_newick_has_the_nodes_and_levels_of_the_tree(make):
    tree = make()
    lines = tree.to_newick().split("\n")
    assert len(lines) == tree.n_trees
    found = {node: length for line in lines for node, length in parsed(line)}
    own = [frozenset([str(leaf)]) for leaf in range(tree.n_leaves)]
    own += [frozenset(map(str, leaves)) for leaves in leaf_sets(tree)]
    assert set(found) == set(own)
    levels = np.append(np.zeros(tree.n_leaves), tree.levels)
    parent_of = {child: row for row, pair in enumerate(tree.merges.tolist()) for child in pair}
    for node, leaves in enumerate(own):
        if node in parent_of:
            length = tree.levels[parent_of[node]] - levels[node]
            assert found[leaves] == length >= 0.0
        else:
            assert found[leaves] is None


def test_newick_of_a_small_tree():
    reference = "((0:0.25,1:0.25):14.875,(2:1.0,3:1.0):14.125);"
    assert small_tree().to_newick() == reference


def test_newick_of_negative_heights_has_no_negative_lengths():
    tree = Dendrogram(np.array([[0, 1], [2, 3]]), np.array([-2.0, 1.0]), np.array([2.0, 3.0]), 3)
    assert tree.to_newick() == "(2:3.0,(0:0.0,1:0.0):3.0);"


def test_newick_names_survive():
    names = [
        "it's",
        "a b",
        "x_y",
        "(z)",
        "plain",
        "",
        "semi;colon",
        "comma,",
        "tab\t",
        "'",
        "é",
        ":",
    ]
    lines = chain(len(names)).to_newick(names)
    found = {next(iter(leaves)) for leaves, _ in parsed(lines) if len(leaves) == 1}
    assert found == set(names)
    assert "plain:" in lines
    assert "'x_y':" in lines  # an underscore without quotes is a blank


@every_kind
def test_json_gives_the_tree_back_to_the_bit(make):
    tree = make()
    again = Dendrogram.from_json(tree.to_json())
    assert same_tree(tree, again)
    np.testing.assert_array_equal(tree.node_weights, again.node_weights)
    assert again.merges.dtype == np.int64


def test_json_is_what_the_documentation_says():
    content = json.loads(forest_with_ties().to_json(list("abcdefg")))
    assert list(content) == [
        "format", "version", "package_version", "n_leaves", "threshold", "family", "n_features",
        "feature_names", "chosen", "children", "heights", "weights", "steps", "leaf_weights",
        "algorithm", "names",
    ]  # fmt: skip
    assert content["version"] == 2
    assert content["threshold"] == 20.0
    assert content["family"] == {"name": "spherical_gaussian", "parameters": {"variance": 1.0}}
    assert (content["n_features"], content["feature_names"]) == (1, None)
    assert content["chosen"] == {"threshold": 20.0, "by": "given", "n_clusters": None}
    assert content["names"] == list("abcdefg")
    assert content["leaf_weights"][-1] == 5.0
    assert json.loads(small_tree().to_json())["threshold"] is None


def broken(**changes):
    """JSON of the small tree, with these changes."""
    content = {
        "format": "fastrbhc.dendrogram",
        "version": 1,
        "n_leaves": 4,
        "threshold": None,
        "children": [[0, 1], [2, 3], [4, 5]],
        "heights": [0.25, 1.0, 15.125],
        "weights": [2.0, 2.0, 4.0],
        "steps": [0, 1, 2],
        "leaf_weights": None,
    } | changes
    return json.dumps({key: value for key, value in content.items() if value != "gone"})


def test_json_that_is_not_broken():
    """Of version 1, which holds nothing but the tree."""
    again = Dendrogram.from_json(broken())
    assert same_tree(again, small_tree())
    assert (again.origin, again.chosen) == (None, None)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        (families.Poisson(smoothing=0.3), {"threshold": "gap"}),
        (families.Multinomial(weight_by_total=False), {"n_clusters": 3}),
        ("gaussian", {"threshold": np.inf}),
    ],
)
def test_json_holds_what_a_tree_remembers(family, options):
    X = pd.DataFrame(np.random.default_rng(0).poisson(9.0, (30, 2)), columns=["a", "é"])
    tree = RBHC(family, **options).fit(X).dendrogram_
    again = Dendrogram.from_json(tree.to_json())
    assert (again.origin, again.chosen) == (tree.origin, tree.chosen)
    assert again.feature_names == ("a", "é")
    np.testing.assert_array_equal(again.cut(), tree.cut())
    unknown = Dendrogram(tree.merges, tree.heights, tree.weights, 30)
    assert Dendrogram.from_json(unknown.to_json()).origin is None


def remembered(**changes):
    """JSON of the small tree in version 2, with these changes."""
    content = {
        "version": 2,
        "package_version": "0.1.0",
        "family": {"name": "poisson", "parameters": {"smoothing": 0.3}},
        "n_features": 2,
        "feature_names": ["a", "b"],
        "chosen": {"threshold": 0.5, "by": "gap", "n_clusters": None},
    }
    return broken(**(content | changes))


def poisson_with(**parameters):
    return {"name": "poisson", "parameters": parameters}


def chosen(threshold=0.5, by="gap", n_clusters=None):
    return {"threshold": threshold, "by": by, "n_clusters": n_clusters}


def test_a_family_of_another_process():
    text = remembered(family={"name": "of_my_own", "parameters": {"power": 3.0}})
    with pytest.warns(UserWarning, match="family 'of_my_own', which is not declared here"):
        tree = Dendrogram.from_json(text)
    assert (tree.family, tree.n_features, tree.feature_names) == (None, 2, ("a", "b"))
    assert tree.chosen.by == "gap"


def test_parameters_that_are_left_out_have_their_defaults():
    tree = Dendrogram.from_json(remembered(family=poisson_with()))
    assert tree.family == families.Poisson()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "poisson"}, "not a name with parameters"),
        ({"family": {"name": "poisson"}}, "not a name with parameters"),
        ({"family": {"name": ["poisson"], "parameters": {}}}, "not a name with parameters"),
        ({"family": {"name": "poisson", "parameters": [1.0]}}, "not a name with parameters"),
        ({"family": poisson_with(power=2.0)}, "unknown parameter 'power'"),
        ({"family": poisson_with(smoothing=-1.0)}, "'poisson' that is not valid"),
        ({"family": poisson_with(smoothing=float("nan"))}, "'poisson' that is not valid"),
        ({"family": poisson_with(smoothing="inf")}, "'poisson' that is not valid"),
        ({"family": poisson_with(smoothing=10**400)}, "'poisson' that is not valid"),
        ({"family": poisson_with(smoothing="0.3")}, "parameter 'smoothing' is '0.3'"),
        ({"family": poisson_with(smoothing=True)}, "parameter 'smoothing' is True"),
        ({"family": poisson_with(smoothing=None)}, "parameter 'smoothing' is None"),
        ({"family": poisson_with(smoothing=[0.3])}, "parameter 'smoothing' is"),
        ({"family": {"name": "multinomial", "parameters": {"weight_by_total": 1}}}, "is 1"),
        ({"n_features": 0}, "n_features 0"),
        ({"n_features": 2.0}, "n_features 2.0"),
        ({"n_features": True}, "n_features True"),
        ({"n_features": None}, "None columns and 2 feature_names"),
        ({"feature_names": ["a"]}, "2 columns and 1 feature_names"),
        ({"feature_names": "ab"}, "not a list of texts"),
        ({"feature_names": ["a", 1]}, "not a list of texts"),
        ({"package_version": None}, "package_version None"),
        ({"chosen": 0.5}, "not a threshold, by and n_clusters"),
        ({"chosen": {"threshold": 0.5}}, "not a threshold, by and n_clusters"),
        ({"chosen": chosen(threshold="high")}, "threshold 'high'"),
        ({"chosen": chosen(threshold=-1.0)}, "threshold -1.0"),
        ({"chosen": chosen(by="luck")}, "chosen by 'luck'"),
        ({"chosen": chosen(by=["gap"])}, "chosen by"),
        ({"chosen": chosen(n_clusters=2)}, "chosen by 'gap' and n_clusters 2"),
        ({"chosen": chosen(by="n_clusters")}, "chosen by 'n_clusters' and n_clusters None"),
        ({"chosen": chosen(by="n_clusters", n_clusters=5)}, "the chosen 5 clusters"),
        ({"chosen": chosen(by="n_clusters", n_clusters=2.0)}, "the chosen 2.0 clusters"),
        ({"threshold": 20.0, "chosen": chosen(threshold=30.0)}, "built up to 20, below"),
        ({"chosen": "gone"}, "no 'chosen'"),
    ],
)
def test_memories_that_are_not_valid(changes, message):
    Dendrogram.from_json(remembered())
    with pytest.raises(ValueError, match=message):
        Dendrogram.from_json(remembered(**changes))


def test_parameters_that_are_not_finite():
    @families.family("any_power", separable=True, reducible=False, domain=families.Domain())
    class AnyPower(NamedTuple):
        power: float = np.inf

        def divergence(family, value, mean, step):
            return step * step

    tree = linkage(SMALL, AnyPower())
    assert json.loads(tree.to_json())["family"]["parameters"] == {"power": "inf"}
    assert Dendrogram.from_json(tree.to_json()).family == AnyPower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is not a tree"),
        ("{}", "is not a tree"),
        (broken(version=3), "version 3"),
        (broken(version=True), "version True"),
        (broken(version=2), "no 'family'"),
        (broken(heights="gone"), "no 'heights'"),
        (broken(heights=[1.0]), "3 merges and 1 heights"),
        (broken(heights=[1.0, "high", 2.0]), "not a number"),
        (broken(heights=[1.0, float("nan"), 2.0]), "not finite"),
        (broken(children=[[0, 1], [2, 6], [4, 5]]), "not there yet"),
        (broken(children=[[0, 1], [2, -1], [4, 5]]), "not there yet"),
        (broken(children=[[0, 1], [1, 3], [4, 5]]), "two parents"),
        (broken(leaf_weights=[1.0]), "4 leaves and 1 leaf_weights"),
        (broken(n_leaves=3), "not there yet"),
        (broken(n_leaves=5), "no threshold, 5 leaves and 3 merges: 4 are needed"),
        (broken(n_leaves=300.7), "n_leaves 300.7: a positive whole number"),
        (broken(n_leaves=4.0), "n_leaves 4.0"),
        (broken(n_leaves=True), "n_leaves True"),
        (broken(n_leaves="4"), "n_leaves '4'"),
        (broken(n_leaves=0), "n_leaves 0"),
        (broken(n_leaves=10**15, threshold=99.0), "states 1,000,000,000,000,000 leaves"),
        (broken(n_leaves=10**9), "states 1,000,000,000 leaves|no threshold"),
        (broken(weights=[2.0, float("nan"), 4.0]), "weights that are negative or not finite"),
        (broken(weights=[2.0, -2.0, 4.0]), "weights that are negative or not finite"),
        (broken(weights=[2.0, 10**400, 4.0]), "'weights' that is not a number"),
        (broken(weights=["2", 2.0, 4.0]), "'weights' that is not a number"),
        (broken(weights=[True] * 3), "'weights' that is not a number"),
        (broken(weights=None), "'weights' that is not a number"),
        (broken(weights=[[2.0], [2.0], [4.0]]), r"'weights' of shape \(3, 1\)"),
        (broken(leaf_weights=[1.0, 1.0, 1.0, -1.0]), "leaf_weights that are negative"),
        (broken(leaf_weights=[1.0, 1.0, 1.0, None]), "'leaf_weights' that is not a number"),
        (broken(children=[[0, 1], [2, 3.5], [4, 5]]), "'children' that is not a whole number"),
        (broken(children=[[0, 1], [2, 10**30], [4, 5]]), "'children' that is not a whole number"),
        (broken(children=[0, 1, 2, 3, 4, 5]), r"'children' of shape \(6,\)"),
        (broken(steps=[0, 0, 1]), "steps that are not the numbers 0 to 2"),
        (broken(heights=[1.0, 0.25, 15.125]), "not in the order of their levels"),
        (broken(threshold=float("nan")), "threshold nan"),
        (broken(threshold=-1.0), "threshold -1.0"),
        (broken(threshold="high"), "threshold 'high'"),
        ("[" * 100_000, "nested too deeply"),
        (broken().replace("[0.25", "[" * 501 + "0.25" + "]" * 500), "not one list of numbers"),
    ],
)
def test_json_that_is_no_tree(text, message):
    with pytest.raises(ValueError, match=message):
        Dendrogram.from_json(text)


def test_a_short_text_takes_no_memory():
    text = broken(n_leaves=10**8, threshold=0.1, children=[], heights=[], weights=[], steps=[])
    tracemalloc.start()
    with contextlib.suppress(ValueError):  # where there is little memory
        assert Dendrogram.from_json(text).n_leaves == 10**8
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_json_names_the_version_that_wrote_it(monkeypatch):
    text = small_tree().to_json()
    assert json.loads(text)["package_version"] == fastrbhc.__version__
    assert same_tree(Dendrogram.from_json(broken()), small_tree())  # from before versions
    later = text.replace(fastrbhc.__version__, "7.1.0")
    with pytest.warns(UserWarning, match=r"written by fastrbhc 7\.1\.0 and is read by"):
        assert same_tree(Dendrogram.from_json(later), small_tree())


@pytest.mark.parametrize(
    "name", ["a\0b", "a\nb", "a\rb", "\x1b[1m", "\x7f", "\x85", "\u2028", "\ud800"]
)
def test_newick_refuses_control_characters(name):
    with pytest.raises(ValueError, match=r"the name of row 1, .* has the control character"):
        small_tree().to_newick(["plain", name, "c", "d"])
    assert json.loads(small_tree().to_json(["a", name, "c", "d"]))["names"][1] == name


@every_kind
def test_graph(make):
    tree = make()
    graph = tree.to_networkx()
    n = tree.n_leaves
    assert graph.number_of_nodes() == n + len(tree.merges)
    assert nx.is_branching(graph)
    assert sum(1 for _, degree in graph.in_degree() if degree == 0) == tree.n_trees
    for row, leaves in enumerate(leaf_sets(tree)):
        node = graph.nodes[n + row]
        assert {leaf for leaf in nx.descendants(graph, n + row) if leaf < n} == leaves
        assert node["size"] == len(leaves)
        assert node["weight"] == tree.weights[row]
        assert node["height"] == tree.heights[row]
    assert all(length >= 0.0 for _, _, length in graph.edges.data("length"))


def test_graph_of_named_and_weighted_rows():
    graph = forest_with_ties().to_networkx(list("abcdefg"))
    assert [graph.nodes[leaf]["name"] for leaf in range(7)] == list("abcdefg")
    assert [graph.nodes[leaf]["weight"] for leaf in (0, 4, 6)] == [1.0, 2.0, 5.0]
    assert "name" not in graph.nodes[8]


def test_data_frame():
    tree = tree_with_inversions()
    frame = tree.to_pandas()
    assert frame.index.tolist() == list(range(25, 49))
    np.testing.assert_array_equal(frame[["left", "right"]], tree.merges)
    np.testing.assert_array_equal(frame["height"], tree.heights)
    np.testing.assert_array_equal(frame["level"], tree.levels)
    assert frame["size"].tolist() == [len(leaves) for leaves in leaf_sets(tree)]
    assert frame["step"].tolist() == tree.steps.tolist()


@pytest.mark.parametrize("export", ["to_newick", "to_json", "to_networkx"])
def test_as_many_names_as_rows(export):
    with pytest.raises(ValueError, match="3 names, expected 4"):
        getattr(small_tree(), export)(["a", "b", "c"])


def test_chains_do_not_recurse():
    tree = chain(200_000)
    text = tree.to_newick()
    assert text.count("(") == text.count(")") == 199_999
    assert text.startswith("(199999:199999.0,(199998:199998.0,")
    assert text.endswith(":1.0):1.0);")
    assert same_tree(tree, Dendrogram.from_json(tree.to_json()))
    assert len(tree.to_pandas()) == 199_999


def test_chains_make_graphs():
    graph = chain(20_000).to_networkx()
    longest = [node for node in nx.dfs_preorder_nodes(graph, 39_998) if node >= 20_000]
    assert all(a == b + 1 for a, b in pairwise(longest))


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("pandas", lambda tree: tree.to_pandas(), "frames"),
        ("pandas", lambda tree: tree.summary(), "frames"),
        ("pandas", lambda tree: tree.path().to_pandas(), "frames"),
        ("networkx", lambda tree: tree.to_networkx(), "graphs"),
        ("matplotlib", lambda tree: tree.plot(), "plot"),
        ("matplotlib", lambda tree: tree.plot_heights(), "plot"),
        ("matplotlib", lambda tree: tree.path().plot(), "plot"),
        ("ipywidgets", lambda tree: tree.explore(SMALL), "notebooks"),
    ],
)
def test_what_is_missing_is_told(package, call, extra, monkeypatch):
    import importlib

    true_import = importlib.import_module

    def without(name, *rest):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install .*fastrbhc\[{extra}\]"):
        call(small_tree())
