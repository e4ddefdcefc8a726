"""What a report of a bug has to say about where it happened."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding

from fastrbhc._cores import available_cores
from fastrbhc._engine.kernel_cache import KernelCacheImpl

# Numba's own annotations are recent and partial.
_config: Any = numba.config

_REQUIRED = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "threadpoolctl", "tqdm")
_OPTIONAL = ("matplotlib", "pandas", "networkx", "ipywidgets", "anndata", "pynndescent")
# The CPU features that determine how kernels are vectorised, out of about a hundred.
_FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512vl", "neon", "sve")
_VARIABLES = (
    "FASTRBHC_NUMBA_CACHE",
    "NUMBA_CACHE_DIR",
    "NUMBA_NUM_THREADS",
    "NUMBA_DISABLE_JIT",
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
)


def show_versions() -> None:
    """Print the versions and settings that a report of a bug should contain.

    These are Python, the platform and the CPU as Numba sees it; the packages that fastrbhc uses;
    the number of threads; the folder in which compiled kernels are kept; and the environment
    variables that change any of this. Nothing is compiled, and optional packages are not imported.

    See Also
    --------
    linkage : Uses as many threads as are printed here, unless `n_jobs` says otherwise.

    Examples
    --------
    >>> import fastrbhc
    >>> fastrbhc.show_versions()  # doctest: +ELLIPSIS
    System
      Python:       3...
      platform:     ...
      CPU:          ...
    <BLANKLINE>
    Packages
      fastrbhc:      ...
      numpy:         ...
    """
    sections = {
        "System": _system(),
        "Packages": _packages(),
        "Kernels": {"threads": str(available_cores()), "cache": described_cache()},
        "Environment variables": {name: os.environ.get(name, "not set") for name in _VARIABLES},
    }
    print("\n\n".join(_section(title, facts) for title, facts in sections.items()))


def _section(title: str, facts: dict[str, str]) -> str:
    width = 1 + max(map(len, facts))
    return "\n".join(
        [title, *(f"  {name + ':':<{width}} {value}" for name, value in facts.items())]
    )


def _system() -> dict[str, str]:
    return {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "CPU": binding.get_host_cpu_name() or "unknown",
        "CPU features": _features(),
    }


def _features() -> str:
    try:
        known = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on every platform
        return "unknown"
    return " ".join(name for name in _FEATURES if known.get(name)) or "none of those looked for"


def _packages() -> dict[str, str]:
    from fastrbhc import __version__

    return {"fastrbhc": __version__, **{name: _version(name) for name in _REQUIRED + _OPTIONAL}}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def described_cache() -> str:
    """The folder with the compiled kernels, or why there is none."""
    try:
        folder = cache_folder()
    except OSError as error:
        return f"none, because {error}"
    if folder.name == "__pycache__":
        return f"{folder}, and the same in each subfolder of the package"
    return str(folder.parent)


def cache_folder() -> Path:
    """A folder with compiled kernels of this package; raises OSError if there can be none."""
    if os.environ.get("FASTRBHC_NUMBA_CACHE", "1") == "0":
        raise OSError("FASTRBHC_NUMBA_CACHE is 0")
    if _config.DISABLE_JIT:
        raise OSError("NUMBA_DISABLE_JIT is set")
    try:
        locator = KernelCacheImpl(show_versions).locator  # where this one would be
        locator.ensure_cache_path()
        return Path(locator.get_cache_path())
    except (OSError, RuntimeError):
        raise OSError("no folder can be written") from None
