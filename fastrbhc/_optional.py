"""Packages that only some functions need, imported when one of them is called."""

from __future__ import annotations

import importlib
from typing import Any

# The extra of this package that brings each of them along.
_EXTRAS = {
    "anndata": "anndata",
    "dask": "distributed",
    "distributed": "distributed",
    "ipywidgets": "notebooks",
    "matplotlib": "plot",
    "networkx": "graphs",
    "pandas": "frames",
    "pyarrow": "distributed",
    "pynndescent": "approximate",
}


def require(module: str, purpose: str) -> Any:
    """A module of an optional package, or an error that says what to install for the purpose."""
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{purpose} needs {package}: pip install {package}, or "fastrbhc[{_EXTRAS[package]}]"'
        ) from error
