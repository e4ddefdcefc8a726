"""Sphinx configuration: `make docs` builds the pages with warnings as errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import fastrbhc

HERE = Path(__file__).parent

project = "fastrbhc"
author = "The fastrbhc developers"
copyright = "The fastrbhc developers"
release = version = fastrbhc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "fastrbhc"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

# Notebooks are saved with their outputs; `make test-notebooks` is what executes them.
nb_execution_mode = "off"
nb_merge_streams = True

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def copy_notebooks() -> None:
    """Copy the notebooks into the documentation: Sphinx reads only files inside it."""
    target = HERE / "notebooks"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, target)


copy_notebooks()
