"""Notebooks beside the pages: Sphinx reads only files inside its folder."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path


def copy_notebooks(source: Path, target: Path) -> None:
    """Copy the notebooks of a folder, each with its last picture as `thumbnails/<name>.png`."""
    shutil.rmtree(target, ignore_errors=True)
    thumbnails = target / "thumbnails"
    thumbnails.mkdir(parents=True)
    for notebook in sorted(source.glob("*.ipynb")):
        shutil.copy(notebook, target)
        pictures = pictures_of(json.loads(notebook.read_text("utf-8")))
        if pictures:
            (thumbnails / f"{notebook.stem}.png").write_bytes(pictures[-1])


def pictures_of(notebook: dict) -> list[bytes]:
    """The PNG pictures among the outputs of a notebook, in their order."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    found = [output.get("data", {}).get("image/png") for output in outputs]
    return [base64.b64decode("".join(picture)) for picture in found if picture]
