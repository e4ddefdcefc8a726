"""A process that runs cases of benchmarks with the package of one tree, sample by sample.

It imports everything once and then forks for each case, so that every case has its own process and
starts at once. Commands come through a connection, whose file descriptor is the first argument:

- ``("list", None)``: answers with asv's descriptions of all benchmarks;
- ``("case", identifier)``: a fork sets the case up and answers "ready", "skipped" or "failed";
- ``("sample", None)``: the fork runs it once and answers with the value;
- ``("done", None)``: the fork ends.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# One call per sample: then it is the other tree's turn.
ONE_CALL = {"number": 1, "repeat": 1, "rounds": 1, "warmup_time": 0.0, "min_run_count": 1}


def main() -> None:
    """Serve until the connection is closed."""
    descriptor, tree, benchmarks = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    sys.path[0] = str(tree)  # before anything that is installed; asv finds the benchmarks itself
    from asv_runner.discovery import disc_benchmarks, update_sys_path

    connection: Any = Connection(descriptor)
    update_sys_path(str(benchmarks))
    described = [_described(found) for found in disc_benchmarks(str(benchmarks))]
    _check_origin(tree)
    while True:
        try:
            command, argument = connection.recv()
        except EOFError:
            return
        if command == "list":
            connection.send(described)
        elif command == "case":
            _serve_in_fork(connection, benchmarks, argument)


def _described(benchmark: Any) -> dict[str, Any]:
    return {name: getattr(benchmark, name) for name in ("name", "type", "unit", "params")}


def _check_origin(tree: Path) -> None:
    """Check that the package measured is the one in the tree."""
    import fastrbhc

    if not Path(fastrbhc.__file__).resolve().is_relative_to(tree.resolve()):
        raise SystemExit(f"fastrbhc of {tree} was wanted, and {fastrbhc.__file__} imported")


def _serve_in_fork(connection: Any, benchmarks: Path, identifier: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            _serve(connection, str(benchmarks), identifier)
        except BaseException:
            connection.send(("failed", traceback.format_exc()))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        connection.send(("failed", f"the process ended with status {status}"))


def _serve(connection: Any, benchmarks: str, identifier: str) -> None:
    """Run one case, in its own process and directory."""
    from asv_runner.discovery import get_benchmark_from_name

    os.dup2(2, 1)  # what benchmarks print is no answer
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        benchmark = get_benchmark_from_name(benchmarks, identifier, extra_params=ONE_CALL)
        benchmark.set_cache(benchmark.do_setup_cache())
        if benchmark.do_setup():
            connection.send(("skipped", None))
            return
        connection.send(("ready", None))
        while connection.recv()[0] == "sample":
            result = benchmark.do_run()
            connection.send(("value", result["samples"][0] if isinstance(result, dict) else result))
        os.chdir(benchmarks)


if __name__ == "__main__":
    main()
