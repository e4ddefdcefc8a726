"""The version of the package that wrote a pickle or a file."""

from __future__ import annotations

import re
import warnings
from typing import Any

_KEY = "_fastrbhc_version"


def version() -> str:
    """The version of the package."""
    from fastrbhc import __version__

    return __version__


def warn_of(written: Any, what: str, stacklevel: int = 3) -> None:
    """Warn if another major version wrote it; what has no version is older than versions."""
    majors = [re.match(r"\d+", str(text)) for text in (written, version())]
    if all(majors) and len({int(major.group()) for major in majors if major}) > 1:
        warnings.warn(
            f"this {what} was written by fastrbhc {written} and is read by {version()}: between "
            "major versions its meaning may change. Build it again if in doubt.",
            UserWarning,
            stacklevel=stacklevel,
        )


class Stamped:
    """A base class whose pickles hold the version of the package."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**(state or {}), _KEY: version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = dict(state)
        warn_of(content.pop(_KEY, None), type(self).__name__)
        inherited: Any = getattr(super(), "__setstate__", None)
        if inherited is None:
            self.__dict__.update(content)  # also of a class whose attributes are fixed
        else:
            inherited(content)
