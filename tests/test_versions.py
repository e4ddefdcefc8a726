"""What `show_versions` prints; that it compiles nothing and imports nothing optional."""

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import fastrbhc
from fastrbhc import _versions
from fastrbhc._cores import available_cores

PACKAGE = Path(fastrbhc.__file__).parent


def sections(text):
    """The printed text as {title: {name: value}}."""
    found = {}
    for block in text.split("\n\n"):
        title, *lines = block.strip("\n").split("\n")
        pairs = (line.split(":", 1) for line in lines)
        found[title] = {name.strip(): value.strip() for name, value in pairs}
    return found


@pytest.fixture
def printed(capsys):
    def ask():
        fastrbhc.show_versions()
        return sections(capsys.readouterr().out)

    return ask


@pytest.fixture
def compiled(monkeypatch):
    """The settings if no variable is set."""
    for name in _versions._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


def test_versions_are_those_installed(printed):
    found = printed()
    assert list(found) == ["System", "Packages", "Kernels", "Environment variables"]
    assert found["System"]["Python"].split()[0] == platform.python_version()
    assert found["System"]["platform"] == platform.platform()
    assert found["System"]["CPU"]
    assert found["System"]["CPU features"]
    assert found["Packages"]["fastrbhc"] == fastrbhc.__version__
    assert found["Packages"]["numba"] == numba.__version__
    for package in ("numpy", "llvmlite", "scipy", "scikit-learn", "threadpoolctl", "tqdm"):
        assert found["Packages"][package] == importlib.metadata.version(package)
    assert found["Kernels"]["threads"] == str(available_cores())


def test_required_packages_are_all_there(printed):
    lines = [line for line in importlib.metadata.requires("fastrbhc") if "extra ==" not in line]
    required = {re.match(r"[\w.-]+", line)[0] for line in lines}
    assert required
    assert required <= set(printed()["Packages"])


def test_version_is_the_same_everywhere():
    citation = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (.+)$", citation, re.MULTILINE)
    (date,) = re.findall(r"^date-released: (.+)$", citation, re.MULTILINE)
    assert version == fastrbhc.__version__
    changelog = (PACKAGE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {version} - {date}\n" in changelog


def test_missing_package_is_told(printed, monkeypatch):
    monkeypatch.setattr(_versions, "_OPTIONAL", ("no-such-package",))
    assert printed()["Packages"]["no-such-package"] == "not installed"


def test_unknown_cpu_is_no_error(printed, monkeypatch):
    def unable():
        raise RuntimeError("no such information")

    monkeypatch.setattr(_versions.binding, "get_host_cpu_features", unable)
    monkeypatch.setattr(_versions.binding, "get_host_cpu_name", lambda: "")
    system = printed()["System"]
    assert (system["CPU"], system["CPU features"]) == ("unknown", "unknown")


def test_cache_is_beside_the_modules_by_default(printed, compiled):
    found = printed()
    assert set(found["Environment variables"].values()) == {"not set"}
    if not os.access(PACKAGE, os.W_OK):
        pytest.skip("the package cannot be written to, so that Numba takes another folder")
    assert found["Kernels"]["cache"].startswith(f"{PACKAGE / '__pycache__'}, ")


def test_cache_in_a_folder_of_its_own(printed, compiled, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # read when Numba is imported
    found = printed()
    assert found["Kernels"]["cache"] == str(tmp_path)
    assert found["Environment variables"]["NUMBA_CACHE_DIR"] == str(tmp_path)


def test_no_cache_is_explained(printed, compiled, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert printed()["Kernels"]["cache"] == "none, because NUMBA_DISABLE_JIT is set"
    monkeypatch.setenv("FASTRBHC_NUMBA_CACHE", "0")
    assert printed()["Kernels"]["cache"] == "none, because FASTRBHC_NUMBA_CACHE is 0"


def test_no_folder_to_write_to_is_no_error(printed, compiled, monkeypatch):
    def unable(function):
        raise RuntimeError("cannot cache: no locator available")

    monkeypatch.setattr(_versions, "KernelCacheImpl", unable)
    assert printed()["Kernels"]["cache"] == "none, because no folder can be written"


def test_nothing_is_compiled_and_nothing_optional_imported(tmp_path):
    code = """if True:
        import sys, fastrbhc
        before = set(sys.modules)
        fastrbhc.show_versions()
        added = {name.split(".")[0] for name in set(sys.modules) - before}
        assert not added & {"matplotlib", "pandas", "networkx", "ipywidgets", "anndata"}, added
    """
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)},
        timeout=300,
        check=True,
    )
    assert not list(tmp_path.rglob("*.nb[ic]"))
