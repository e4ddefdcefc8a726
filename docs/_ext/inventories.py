"""Inventories of other documentation for links to it, written from short lists: no network."""

from __future__ import annotations

import zlib
from pathlib import Path


def write_inventories(lists: Path, target: Path) -> dict[str, tuple[str, str]]:
    """The value of ``intersphinx_mapping`` for a folder of lists.

    A list has the address of the documentation in its first line. Every other line has the pattern
    of an address, with ``*`` for the name, or a role and a name at the address of the last pattern.
    """
    target.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for path in sorted(lists.glob("*.txt")):
        address, *lines = path.read_text("utf-8").split("\n")
        entries, pattern = [], ""
        for line in filter(None, lines):
            if "*" in line:
                pattern = line
            else:
                role, name = line.split()
                entries.append(f"{name} py:{role} 1 {pattern.replace('*', name)} -")
        head = f"# Sphinx inventory version 2\n# Project: {path.stem}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        written = target / f"{path.stem}.inv"
        written.write_bytes(head.encode() + zlib.compress("\n".join(entries).encode()))
        mapping[path.stem] = (address, str(written))
    return mapping
