"""The program of a process that times one call, the first and later ones: see processes.py."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from .datasets import blobs, counts, normal
from .yardstick import set_numba_up

LATER_CALLS = 3
ROWS = {"blobs": blobs, "counts": counts, "normal": normal}


def main() -> None:
    """Print the seconds of the first call and of the quickest of some later ones, as JSON."""
    call, package = json.loads(sys.argv[2]), Path(sys.argv[3])
    import fastrbhc

    if not Path(fastrbhc.__file__).resolve().is_relative_to(package.resolve()):
        raise SystemExit(f"fastrbhc of {package} was wanted, and {fastrbhc.__file__} imported")
    clock = getattr(time, sys.argv[1])
    function, family, options = getattr(fastrbhc, call["function"]), call["family"], call["options"]
    if call["numba_is_set_up"]:
        set_numba_up()
    X = ROWS[call["rows"]](call["n"], call["d"])

    def seconds() -> float:
        begin = clock()
        function(X, family, **options)
        return clock() - begin

    first = seconds()
    print(json.dumps({"first": first, "later": min(seconds() for _ in range(LATER_CALLS))}))


if __name__ == "__main__":
    main()
