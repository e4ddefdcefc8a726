"""The garbage collector, while millions of objects are made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def nothing_to_collect() -> Iterator[None]:
    """Keep the garbage collector from repeatedly traversing millions of new objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
