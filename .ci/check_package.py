"""Build the source distribution and the wheel, and use the wheel in an empty environment.

Needs the packages build and twine. Prints what was done, and stops at the first fault.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a wheel has beside Python files.
DATA = ("py.typed", "data/README.md", "data/mnist_7x7.npz", "data/optdigits.npz")


def run(*words: object, folder: Path, **environment: str) -> str:
    """The output of a program in a folder, without the checkout on Python's path."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def contents(wheel: Path) -> dict[str, str]:
    """The files of a wheel with a hash of each; RECORD, the list of these, follows from them."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if not name.endswith("/RECORD")
        }


def build(folder: Path) -> Path:
    """The wheel of the source distribution, which is that of the checkout, file by file."""
    python = sys.executable
    run(python, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    run(python, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT, folder=folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    (direct,) = (folder / "direct").glob("*.whl")
    found, others = contents(wheel), contents(direct)
    if found != others:
        names = ", ".join(sorted({name for name, _ in found.items() ^ others.items()}))
        sys.exit(f"the wheel of the source distribution differs from that of the checkout: {names}")
    tracked = run("git", "ls-files", "fastrbhc", folder=ROOT).split()
    missing = {name for name in tracked if (ROOT / name).exists()} - set(found)
    missing |= {f"fastrbhc/{name}" for name in DATA} - set(found)
    if missing:
        sys.exit(f"the wheel lacks {', '.join(sorted(missing))}")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "pyproject.toml"}
    if not expected <= names:
        sys.exit(f"the source distribution lacks {', '.join(sorted(expected - names))}")
    run(python, "-m", "twine", "check", "--strict", wheel, source, folder=folder)
    print(f"{source.name}: {len(names):,} files; {wheel.name}: {len(found):,} files, the same")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """An environment with nothing but the wheel and what it depends on."""
    run(sys.executable, "-m", "venv", folder, folder=folder.parent)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", wheel, folder=folder)
    run(scripts / "python", "-m", "pip", "check", folder=folder)
    return scripts


def use(scripts: Path, folder: Path) -> None:
    """What somebody who has just installed the package tries."""
    python = scripts / "python"
    version = run(python, "-c", "import fastrbhc; print(fastrbhc.__version__)", folder=folder)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}" not in cited:
        sys.exit(f"CITATION.cff does not name version {version.strip()}")
    print(run(python, "-c", "import fastrbhc; fastrbhc.show_versions()", folder=folder))
    # Compiled kernels have a place of their own, so that the demonstration has to compile.
    cache = str(folder / "kernels")
    print(run(scripts / "fastrbhc", "demo", folder=folder, NUMBA_CACHE_DIR=cache))
    table = folder / "counts.csv"
    table.write_text("name,a,b\n" + "".join(f"r{i},{i % 5},{9 * (i % 2)}\n" for i in range(40)))
    words = ["cluster", table, "--id", "name", "--family", "poisson", "--clusters", "2"]
    tree = folder / "tree.json"
    options = ["--tree", tree, "--quiet"]
    run(scripts / "fastrbhc", *words, *options, folder=folder, NUMBA_CACHE_DIR=cache)
    print(run(scripts / "fastrbhc", "info", tree, folder=folder))
    run(scripts / "fastrbhc", "completion", "bash", folder=folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder to put the files in")
    kept = parser.parse_args().keep
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for item in ("description", "readme", "license", "classifiers", "keywords", "requires-python"):
        if not project.get(item):
            sys.exit(f"pyproject.toml has no {item}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel = build(folder)
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("fastrbhc*"):
                (kept / path.name).write_bytes(path.read_bytes())
        place = folder / "place"
        place.mkdir()
        use(install(wheel, folder / "environment"), place)
