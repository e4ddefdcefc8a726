"""What the command line is told about an experiment, and where the experiments are.

An experiment is a module of this package without a leading underscore. It has a record
``EXPERIMENT``, the function that this names, ``report(result)``, and ``draw(result, path)`` if it
draws.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class Option(NamedTuple):
    """An argument of an experiment's function, as argparse takes it."""

    name: str
    settings: dict[str, Any]
    # From what argparse has read to what the function takes.
    convert: Callable[[Any], Any] = lambda given: given


class Experiment(NamedTuple):
    """A function of its module, and its options on the command line.

    ``amount`` is the option that says how much work there is, with its default and its meaning;
    ``options`` are further arguments of the function.
    """

    function: str
    help: str
    description: str
    example: str
    amount: tuple[str, int, str]
    options: tuple[Option, ...] = ()
    draws: bool = False


def experiments() -> dict[str, ModuleType]:
    """The modules with experiments, by name."""
    package = __name__.rpartition(".")[0]
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {
        name: importlib.import_module(f"{package}.{name}")
        for name in names
        if not name.startswith("_")
    }
