"""Sphinx configuration: `make docs` builds the pages with warnings as errors, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import fastrbhc

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from inventories import write_inventories  # noqa: E402

from notebooks import copy_notebooks  # noqa: E402

project = "fastrbhc"
author = "The fastrbhc developers"
copyright = "The fastrbhc developers"
release = version = fastrbhc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "mathml",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "data"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "fastrbhc"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = True
html_show_sourcelink = True
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "show_nav_level": 2,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages that are alone in their section have no neighbours to list.
html_sidebars = {name: [] for name in ("index", "getting-started", "release-notes")}

# Notebooks are saved with their outputs; `make test-notebooks` is what executes them. Pages with
# code cells are executed with every build, so that their pictures are those of this version.
nb_execution_mode = "force"
nb_execution_excludepatterns = ["notebooks/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # on a busy machine, with all kernels still to be compiled
nb_merge_streams = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output) > div.highlight pre"

default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

intersphinx_mapping = write_inventories(HERE / "_inventories", HERE / "_build" / "inventories")

copy_notebooks(HERE.parent / "notebooks", HERE / "notebooks")
