"""Descriptions of experiments for the command line, and the list of experiments.

An experiment is a module of this package without a leading underscore. It has a record
``EXPERIMENT``, the function named there, ``report(result)``, and ``draw(result, path)`` if there is
a figure.
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
    # Converts the value of argparse to the argument of the function.
    convert: Callable[[Any], Any] = lambda given: given


class Experiment(NamedTuple):
    """A function of its module, and its options on the command line.

    ``amount`` is the option for the amount of work, with its default and its meaning;
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
