"""Trees as pages: what they hold, and what a browser without network makes of them."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from trees import chain, forest_with_ties

from fastrbhc import Dendrogram, linkage
from fastrbhc.plotting._style import HUES, hues_on, luminance
from fastrbhc.plotting.interactive import _PAPERS

RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1, 2], [20, 12, 8])
FRAME = pd.DataFrame(
    RNG.poisson(np.array([[3.0, 20.0], [30.0, 2.0], [14.0, 14.0]])[GROUPS]),
    columns=["ants", "bees"],
)
TREE = linkage(FRAME, "poisson")
NAMES = [f"heap {row}" for row in range(40)]


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


# ---- what is written -----------------------------------------------------------------------------


def test_the_page_refers_to_nothing_outside():
    page = TREE.to_html(X=FRAME, names=NAMES)
    assert not re.findall(r"(?:https?:|ftp:)?//[a-z0-9.-]+\.[a-z]{2,}", page.replace(SVG, ""))
    assert not re.findall(r"\bsrc\s*=|@import|url\(|\bfetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


SVG = "http://www.w3.org/2000/svg"  # the name of a format, not an address


def test_nodes_are_those_of_the_tree():
    data = data_of(TREE.to_html(names=NAMES))
    n = TREE.n_leaves
    assert data["rows"] == n
    assert data["below"] is None
    assert data["node"][:n] == TREE.leaves_order().tolist()
    assert data["name"][:n] == [NAMES[row] for row in TREE.leaves_order()]
    for place, pair in enumerate(data["pairs"], start=n):
        row = data["node"][place] - n
        assert {data["node"][child] for child in pair} == set(TREE.merges[row])
        assert data["height"][place] == TREE.heights[row]
        assert data["size"][place] == data["weight"][place] == TREE.weights[row]
        assert data["row"][place] == TREE.members(n + row).min()


def test_large_trees_are_cut_off_below():
    tree = chain(200_000)
    page = tree.to_html(max_leaves=500)
    assert len(page) < 200_000
    data = data_of(page)
    assert len(data["size"]) == 999
    assert data["below"] == tree.heights[-500]
    assert sum(data["size"][:500]) == 200_000


def test_of_very_many_trees_the_largest_are_drawn():
    forest = linkage(RNG.uniform(size=(400, 2)), "ward", threshold=1e-3)
    data = data_of(forest.to_html(max_leaves=40))
    assert len(data["size"]) - 2 * len(data["pairs"]) == 20
    assert data["threshold"] == 1e-3


def test_columns_and_labels_of_nodes():
    page = TREE.to_html(X=FRAME, labels=np.array(["a", "b", "c"])[GROUPS], n_clusters=3)
    data = data_of(page)
    labels = TREE.cut(n_clusters=3)
    for place, node in enumerate(data["node"]):
        rows = TREE.members(node)
        counts = np.bincount(GROUPS[rows], minlength=3)
        order = np.argsort(-counts, kind="stable")
        expected = ", ".join(f"{'abc'[k]} {counts[k]}" for k in order if counts[k])
        assert data["labels"][place] == expected
        if len(rows) == 40:
            assert (data["more"][place], data["less"][place]) == ("", "")
        if node >= 40 and (labels[rows] == 1).all() and len(rows) == (labels == 1).sum():
            ratio = FRAME["ants"][labels == 1].mean() / FRAME["ants"][labels != 1].mean()
            assert f"ants {ratio:.2g}×" in data["more"][place] + data["less"][place]


def test_many_labels_are_put_together():
    tree = linkage(np.arange(500.0)[:, None], "ward")
    root = data_of(tree.to_html(labels=[f"row {row}" for row in range(500)]))["labels"][-1]
    assert root.startswith("others 300, row 0 1")


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "tree.html"
    assert TREE.to_html(path, title="Heaps") is None
    before = path.read_text()
    assert before == TREE.to_html(title="Heaps")
    with pytest.raises(ValueError, match="labels have shape"):
        TREE.to_html(path, labels=[1, 2])
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tree.html"]


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="scale has to be one of"):
        TREE.to_html(scale="cubic")
    with pytest.raises(ValueError, match="max_leaves has to be at least 2"):
        TREE.to_html(max_leaves=1)
    with pytest.raises(ValueError, match="39 names, expected 40"):
        TREE.to_html(names=NAMES[1:])
    with pytest.raises(ValueError, match="39 rows and the tree has 40"):
        TREE.to_html(X=FRAME[1:])


def test_colours_suit_the_backgrounds_of_the_page():
    page = TREE.to_html()
    papers = {"light": re.search(r"--paper: (#\w+)", page)[1]}
    papers["dark"] = re.search(r'data-theme="dark"\] \{.*?--paper: (#\w+)', page, re.DOTALL)[1]
    assert papers == _PAPERS
    for theme, paper in papers.items():
        assert data_of(page)["hues"][theme] == hues_on(paper)
        for colour in data_of(page)["hues"][theme]["text"]:
            low, high = sorted([luminance(colour), luminance(paper)])
            assert (high + 0.05) / (low + 0.05) >= 4.5
    assert data_of(page)["hues"]["light"]["lines"] == list(HUES)


# ---- what the browser makes of it ----------------------------------------------------------------


def shown(browser, tmp_path, page, actions=""):
    """The page after some actions, which are JavaScript."""
    path = tmp_path / "page.html"
    helpers = """
      const svg = document.getElementById("tree");
      const frame = () => svg.getBoundingClientRect();
      const at = (type, x, y) => svg.dispatchEvent(new PointerEvent(type, {
        bubbles: true, pointerId: 1, clientX: frame().left + x, clientY: frame().top + y }));
      const press = (key) =>
        svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const drawn = () => new Promise((go) => setTimeout(go, 20));
      await drawn();
    """
    script = f'<script type="module">{helpers}{actions}</script></body>'
    path.write_text(page.replace("</body>", script), encoding="utf-8")
    return browser(path)


def clusters_of_rows(elements, n):
    """The cluster of each row, by the branches of the leaves; −1 for others."""
    found = np.full(n, -1)
    for branch in elements.of("path", class_="branch"):
        if int(branch["data-node"]) < n:
            found[int(branch["data-node"])] = int(branch["data-cluster"])
    return found


ALONE = Dendrogram(np.empty((0, 2), np.int64), np.empty(0), np.empty(0), 1)


@pytest.mark.parametrize(
    ("tree", "cut"),
    [
        (TREE, {"n_clusters": 3}),
        (TREE, {"threshold": 7.0}),
        (forest_with_ties(), {}),
        (linkage(np.random.default_rng(4).normal(size=(25, 2)), "gaussian"), {"n_clusters": 4}),
        (linkage([[0.0], [1.0]], "ward"), {"n_clusters": 1}),
        (ALONE, {"n_clusters": 1}),
        (linkage([[0.0], [1.0]], "ward", threshold=0.1), {}),
    ],
)
def test_clusters_have_the_numbers_of_the_cut(browser, tmp_path, tree, cut):
    elements = shown(browser, tmp_path, tree.to_html(**cut))
    reference = tree.cut(**cut) if cut else tree.cut(threshold=tree.threshold)
    np.testing.assert_array_equal(clusters_of_rows(elements, tree.n_leaves), reference)
    assert len(elements.of("path", class_="branch")) == tree.n_leaves + len(tree.merges)
    k = reference.max() + 1
    assert elements.of("code")[0]["text"] == f"tree.cut(n_clusters={k})"
    sizes = [cell["text"] for cell in elements.of("td", class_="number")]
    assert sizes == [str(size) for size in np.bincount(reference)]


def test_clusters_of_some_of_many_trees(browser, tmp_path):
    forest = linkage(RNG.uniform(size=(400, 2)), "ward", threshold=1e-3)
    elements = shown(browser, tmp_path, forest.to_html(max_leaves=40))
    assert elements.of("code")[0]["text"] == "tree.cut(threshold=0.001)"
    said = elements.of("p", id="summary")[0]["text"]
    assert f"the 20 largest of {forest.n_trees} trees, among which clusters are numbered" in said
    sizes = np.sort(np.bincount(forest.cut(threshold=1e-3)))[::-1][:20]
    cells = [cell["text"] for cell in elements.of("td", class_="number")]
    assert cells == [str(size) for size in sizes]


def test_dragging_the_line_cuts(browser, tmp_path):
    actions = """
      const grip = document.getElementById("grip");
      const y = Number(grip.getAttribute("y1"));
      at("pointerdown", 300, y);
      at("pointermove", 300, 60);
      at("pointerup", 300, 60);
      await drawn();
      document.body.dataset.line = document.getElementById("grip").getAttribute("y1");
    """
    elements = shown(browser, tmp_path, TREE.to_html(n_clusters=8), actions)
    found = clusters_of_rows(elements, 40)
    k = found.max() + 1
    assert 1 < k < 8
    np.testing.assert_array_equal(found, TREE.cut(n_clusters=k))
    assert abs(float(elements.of("body")[0]["data-line"]) - 60) < 1
    (slider,) = elements.of("line", role="slider")
    assert slider["aria-valuenow"] == str(k)
    assert slider["aria-valuetext"].startswith(f"{k} clusters, λ = ")


def test_keys(browser, tmp_path):
    actions = """
      svg.focus();
      press("ArrowDown");
      const selected = () => document.getElementById("selected").textContent;
      document.body.dataset.left = selected();
      press("ArrowRight");
      document.body.dataset.right = selected();
      press("Enter");
      press("PageDown");
      await drawn();
    """
    elements = shown(browser, tmp_path, TREE.to_html(n_clusters=3), actions)
    (body,) = elements.of("body")
    left, right = TREE.merges[-1]
    order = TREE.leaves_order().tolist()
    left, right = sorted((left, right), key=lambda node: order.index(TREE.members(node)[0]))
    assert f"node{left}" in body["data-left"]
    assert f"node{right}" in body["data-right"]
    # What is collapsed is a triangle, and nothing below it is drawn.
    assert [fold["data-fold"] for fold in elements.of("path", class_="fold")] == [str(right)]
    size = len(TREE.members(right))
    assert len(elements.of("path", class_="branch")) == 79 - 2 * (size - 1)
    assert f"({size})" in [text["text"] for text in elements.of("text")]
    assert elements.of("code")[0]["text"] == "tree.cut(n_clusters=4)"


def test_zoom_and_what_the_pointer_shows(browser, tmp_path):
    actions = """
      const branch = svg.querySelector('path[data-node="0"]').getAttribute("d");
      const [, x, y] = branch.match(/M([\\d.]+) ([\\d.]+)V/).map(Number);
      at("pointermove", x, y + 8);
      document.body.dataset.tip = document.getElementById("tip").textContent;
      svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -900, bubbles: true, cancelable: true,
        clientX: frame().left + x, clientY: frame().top + y }));
      await drawn();
      document.body.dataset.seen = svg.querySelectorAll("path[data-node='0']").length;
      document.body.dataset.drawn = svg.querySelectorAll("path.branch").length;
      press("0");
      await drawn();
    """.replace("\\\\", "\\")
    elements = shown(browser, tmp_path, TREE.to_html(names=NAMES, X=FRAME, labels=GROUPS), actions)
    (body,) = elements.of("body")
    assert "heap 0" in body["data-tip"]
    assert "labels0 1" in body["data-tip"]
    assert body["data-seen"] == "1"
    assert int(body["data-drawn"]) < 60
    assert len(elements.of("path", class_="branch")) == 79


def test_names_are_text(browser, tmp_path):
    wicked = ["</script><script>document.title = 'gone'</script>", "<img src=x>", "<!--"]
    tree = linkage([[0.0], [1.0], [5.0]], "ward")
    elements = shown(browser, tmp_path, tree.to_html(names=wicked, title="<i>Three</i> $data"))
    assert elements.of("title")[0]["text"] == "<i>Three</i> $data"
    assert not elements.of("img") + elements.of("i")
    assert any(text["text"].startswith("</script><script>") for text in elements.of("text"))
