"""Ctrl-C while modules are being imported for the command line, which takes a second or two.

Importing this module is enough for the first imports, and it has to come first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def _leave_quietly() -> None:
    """Until `raise_again`, Ctrl-C ends the command ``fastrbhc`` without a traceback.

    In any other program nothing changes.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and _is_command() and _handler() is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_again() -> None:
    """From here on, Ctrl-C is a KeyboardInterrupt again."""
    if _handler() is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def importing() -> Iterator[None]:
    """While a command imports what it needs, Ctrl-C ends it without a traceback, too.

    A KeyboardInterrupt inside of an import may be caught by the module that is being imported.
    """
    _leave_quietly()
    try:
        yield
    finally:
        raise_again()


def _is_command() -> bool:
    # While a package is imported for `python -m`, its name is not in sys.argv yet.
    as_module = sys.argv[:1] == ["-m"] and "fastrbhc" in sys.orig_argv
    return as_module or Path(*sys.argv[:1]).stem == "fastrbhc"


def _handler() -> Any:
    return signal.getsignal(signal.SIGINT)


def _leave(number: int, frame: Any) -> None:
    os._exit(130)


_leave_quietly()
