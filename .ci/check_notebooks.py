"""Tell which notebooks were not executed from top to bottom before they were saved.

The names of the files are the arguments. Needs nothing but Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def complaints(path: Path) -> list[str]:
    """What is wrong with a notebook, a line each."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"])]
    counts = [cell.get("execution_count") for cell in code]
    found = []
    if counts != list(range(1, len(code) + 1)):
        found.append(f"{path}: cells were not executed from top to bottom, once each: {counts}")
    if any(output["output_type"] == "error" for cell in code for output in cell["outputs"]):
        found.append(f"{path}: a cell ended with an error")
    return found


if __name__ == "__main__":
    lines = [line for name in sys.argv[1:] for line in complaints(Path(name))]
    if lines:
        sys.exit("\n".join([*lines, "`make notebooks` executes and saves all of them."]))
