"""A register of classes by name, for families and for Bayesian models."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable


class Register(dict[str, type]):
    """Classes by their names and aliases.

    Parameters
    ----------
    kind, kinds : str
        What one class, and several of them, are called in messages.
    """

    def __init__(self, kind: str, kinds: str) -> None:
        super().__init__()
        self._kind, self._kinds = kind, kinds

    def add(self, cls: type, *names: str) -> None:
        """Add a class, or replace one of the same module: notebooks execute cells again."""
        for name in names:
            taken = self.get(name)
            if taken is not None and taken.__module__ != cls.__module__:
                raise ValueError(f"the name {name!r} belongs to {taken.__module__}: choose another")
            self[name] = cls

    def find(self, name: str) -> type:
        """The class of that name; capitals, hyphens and spaces do not matter."""
        found = self.get(name.lower().replace("-", "_").replace(" ", "_"))
        if found is None:
            near = difflib.get_close_matches(name.lower(), self, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            known = ", ".join(map(repr, sorted(self)))
            raise ValueError(f"unknown {self._kind} {name!r}: {hint}The {self._kinds} are {known}")
        return found


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import all modules of a package, so that they register their classes."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
