"""Examples in the README and in the pages of the guide."""

import doctest
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```pycon" in page.read_text("utf-8")
]


# Dask calls functions of pandas that the newest one deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page(name):
    blocks = re.findall(r"```pycon\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
    if "FASTRBHC_DATA" not in os.environ:  # where real data are
        blocks = [block for block in blocks if "FASTRBHC_DATA" not in block]
    examples = doctest.DocTestParser().get_doctest("\n\n".join(blocks), {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples).failed == 0
