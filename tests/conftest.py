"""Settings for every test: repeatable Hypothesis runs, and the marker of the small tests."""

from __future__ import annotations

import functools
import importlib.util
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

_COMMON = {
    "derandomize": True,
    "deadline": None,  # the first example may compile
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("compiled", max_examples=25, **_COMMON)
settings.register_profile("interpreted", max_examples=4, **_COMMON)
settings.register_profile("thorough", max_examples=500, **_COMMON)

# Whether kernels run as plain Python.
_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
settings.load_profile("interpreted" if _INTERPRETED else "compiled")


def pytest_configure(config):
    config.addinivalue_line("markers", "fast: small enough to run with NUMBA_DISABLE_JIT=1")
    if _INTERPRETED:
        # Empty boxes are infinite, free slots NaN; compiled code does not warn about them either.
        ignored = "ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"
        config.addinivalue_line("filterwarnings", ignored)


def pytest_collection_modifyitems(items):
    """Tests build trees of rows at the edges of a family on purpose; examples in docs do not.

    Examples with an AnnData need a package that the tests do without: `make test-anndata` has it.
    """
    missing = importlib.util.find_spec("anndata") is None
    for item in items:
        if missing and item.path.parts[-2:] == ("fastrbhc", "anndata.py"):
            item.add_marker(pytest.mark.skip(reason="could not import 'anndata'"))
        if "tests" in item.path.parts and "test_advice" not in item.path.name:
            ignored = "ignore::fastrbhc._advice.MisfitWarning"
            item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A function that opens a page without network and returns what the browser made of it."""
    from pages import chromium, opened

    program = chromium()  # skips the test if there is none
    return functools.partial(opened, program, tmp_path_factory.mktemp("profile"))


@pytest.fixture
def ctrl_c_counts():
    """Processes that the test starts answer Ctrl-C, even if this one was told to ignore it.

    A script that starts the tests in the background tells them so, and processes inherit it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
