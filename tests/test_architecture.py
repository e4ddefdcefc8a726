"""Imports: the engine imports nothing public, no layer imports a higher one, and no cycles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import fastrbhc

ROOT = Path(fastrbhc.__file__).parent.parent
ENGINE = "fastrbhc._engine."
# The engine from the ground up: modules and packages import from their own layer and those below.
LAYERS = [
    {"compilations", "compiler", "interrupts", "jit", "kernel_cache", "records"},
    {"ancestors", "leaf_ordering", "math", "prefetch", "simd", "team", "threads", "traversal"},
    {"clusters", "geometry", "neighbors"},
    {"agglomeration"},
    {"planning"},
]


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): ast.parse(path.read_text()) for path in ROOT.glob("fastrbhc/**/*.py")}


def imports(node, everywhere):
    """Import statements: those that run when the module is imported, or all."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        later = isinstance(child, ast.FunctionDef) or "TYPE_CHECKING" in ast.unparse(
            getattr(child, "test", ast.Pass())
        )
        if everywhere or not later:
            yield from imports(child, everywhere)


def imported(module, everywhere):
    """Modules of the package that another module names, except its own parent packages."""
    for statement in imports(MODULES[module], everywhere):
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{module} has a relative import"
            inner = [f"{statement.module}.{name}" for name in names]
            names = [name if name in MODULES else statement.module for name in inner]
        yield from (name for name in names if name in MODULES and not is_above(name, module))


def is_above(package, module):
    return f"{module}.".startswith(f"{package}.")


def test_engine_imports_nothing_public():
    found = {
        (module, other)
        for module in MODULES
        if module.startswith(ENGINE)
        for other in imported(module, everywhere=True)
        if not other.startswith(ENGINE)
    }
    assert not found


def test_no_layer_of_the_engine_imports_from_those_above():
    layers = {name: layer for layer, names in enumerate(LAYERS) for name in names}

    def layer_of(module):
        return layers[module.removeprefix(ENGINE).split(".")[0]]

    found = {
        (module, other)
        for module in MODULES
        if module.startswith(ENGINE)
        for other in imported(module, everywhere=True)
        if layer_of(other) > layer_of(module)
    }
    assert not found


def test_mathematics_knows_nothing_of_clusters():
    found = {
        (module, other)
        for module in MODULES
        if module.startswith(f"{ENGINE}math.")
        for other in imported(module, everywhere=True)
        if not other.startswith((f"{ENGINE}math.", f"{ENGINE}jit", f"{ENGINE}records"))
    }
    assert not found


def test_no_cycles():
    graph = {}
    for module in MODULES:
        named = set(imported(module, everywhere=False))
        # Importing a module also imports its parent packages.
        packages = {package for package in MODULES for name in named if is_above(package, name)}
        graph[module] = {name for name in packages | named if not is_above(name, module)}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules
