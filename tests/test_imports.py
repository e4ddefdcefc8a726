"""What importing the package loads, and that every name of it is there."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import fastrbhc
import fastrbhc.bhc

# Slow to import, and not needed by trees of arrays.
SLOW = ("sklearn", "pandas", "scipy.stats", "scipy.optimize", "matplotlib", "pyarrow", "dask")


def loaded_by(program, *, of):
    """Those of some modules that a new process has loaded after a program."""
    asking = f"{program}\nimport sys; print(*[m for m in {of!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_the_package_alone_loads_nothing():
    assert loaded_by("import fastrbhc", of=("numpy", "scipy", "numba", *SLOW)) == []


@pytest.mark.parametrize(
    "program",
    [
        "from fastrbhc import linkage, Dendrogram, suggest_family, predictive_threshold",
        "from fastrbhc import families, bhc, bhc_linkage, reducibility",
        "import fastrbhc.distributed",
        "import numpy, fastrbhc\nfastrbhc.linkage(numpy.eye(3), 'ward').cut(n_clusters=2)",
    ],
)
def test_trees_of_arrays_need_no_slow_imports(program):
    assert loaded_by(program, of=SLOW) == []


@pytest.mark.parametrize("command", [[], ["cluster"], ["cut"], ["bhc"], ["predict"], ["compile"]])
def test_help_loads_no_numbers(command):
    words = [*command, "--help"]
    program = f"from fastrbhc.cli import main\ntry: main({words})\nexcept SystemExit: print()"
    assert loaded_by(program, of=("numpy", "scipy", "numba", *SLOW)) == []


def public_imports(module):
    """The names that type checkers see in a package, with the modules they come from."""
    tree = ast.parse(Path(module.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(blocks[0].test) == "TYPE_CHECKING"
    return {
        alias.name: statement.module for statement in blocks[0].body for alias in statement.names
    }


def test_type_checkers_see_what_is_there():
    declared = public_imports(fastrbhc)
    modules = {name for name, home in declared.items() if home == "fastrbhc"}
    assert modules == fastrbhc._MODULES
    assert {name: declared[name] for name in declared if name not in modules} == fastrbhc._HOMES
    assert set(fastrbhc.__all__) <= set(declared)
    assert set(declared) <= set(dir(fastrbhc))


@pytest.mark.parametrize("package", [fastrbhc, fastrbhc.bhc], ids=lambda package: package.__name__)
def test_every_name_is_there(package):
    for name, home in public_imports(package).items():
        if name == "anndata":  # it needs a package that tests do without
            continue
        if home == package.__name__:
            assert getattr(package, name) is importlib.import_module(f"{home}.{name}")
        else:
            assert getattr(package, name) is getattr(importlib.import_module(home), name)
    names = {}
    exec(f"from {package.__name__} import *", names)
    assert set(package.__all__) <= set(names)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'likage'"):
        _ = package.likage


def test_pickles_know_their_modules():
    for name in ("linkage", "RBHC", "BHC", "Dendrogram"):
        found = getattr(fastrbhc, name)
        assert pickle.loads(pickle.dumps(found)) is found
