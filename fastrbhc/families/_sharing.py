"""Methods that a family has from another one of which it is a special case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

AnyClass = TypeVar("AnyClass", bound=type)


def sharing(base: Any, *names: str) -> Callable[[AnyClass], AnyClass]:
    """Give a class methods of ``base``; goes below ``@family``.

    The class has what these read, as fields or as properties. Methods that run inside kernels read
    fields alone.
    """

    def share(cls: AnyClass) -> AnyClass:
        for name in names:
            setattr(cls, name, vars(base)[name])
        return cls

    return share
