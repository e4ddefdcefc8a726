"""The command ``fastrbhc``: its parser, its errors, and which command runs.

Slow imports are inside the commands, so that help, and a mistake, is shown at once.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO

from fastrbhc import __version__
from fastrbhc._interrupts import importing, raise_again
from fastrbhc.cli import bhc, cluster, compile, completion, cut, info, predict, reproduce
from fastrbhc.cli.families import one_option_each
from fastrbhc.cli.outputs import check_drawing, check_writable


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments, without the name of the program; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 for invalid input, 130 when interrupted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fastrbhc.cli import main
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y\\n0,0\\n1,0\\n9,9\\n9,8\\n")
    >>> main(["cluster", str(path), "--family", "ward", "--clusters", "5"])
    2
    """
    try:
        raise_again()
        words = sys.argv[1:] if argv is None else argv
        arguments = _parser(words).parse_args(one_option_each(words))
        with _warnings_as_lines(silent=getattr(arguments, "quiet", False)):
            arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except (ValueError, TypeError, ArithmeticError) as error:
        return _fail(str(error))
    except MemoryError as error:
        return _fail(f"not enough memory. {error}")
    return 0


def _fail(message: str) -> int:
    print(f"fastrbhc: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


@contextmanager
def _warnings_as_lines(*, silent: bool) -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        print(f"fastrbhc: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not silent:
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = show
        yield


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, like all others, and say what may have been meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return found, unknown

    def _meant(self, unknown: list[str]) -> str:
        """The options nearest to unknown ones, as the end of a sentence."""
        words = [word.partition("=")[0].replace("_", "-") for word in unknown if word[:2] == "--"]
        near = [
            option
            for word in words
            for option in difflib.get_close_matches(
                word, self._option_string_actions, n=1, cutoff=0.75
            )
        ]
        return f". Did you mean {' and '.join(near)}?" if near else ""

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else "."
        self.exit(_fail(f"{message}{stop} See {self.prog} --help"))


def whole_parser() -> argparse.ArgumentParser:
    """The parser with all commands and all that is below them."""
    return _parser([reproduce.NAME])


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; the experiments, which are slow to import, are there if the words name them."""
    parser = _Parser(
        prog="fastrbhc",
        description="Relaxed Bayesian hierarchical clustering with exponential families.",
    )
    parser.add_argument("--version", action="version", version=f"fastrbhc {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (cluster, cut, predict, info, bhc):
        module.add_command(commands.add_parser)
    _add_demo(commands.add_parser)
    reproduce.add_command(commands.add_parser, whole=reproduce.NAME in words)
    compile.add_command(commands.add_parser)
    completion.add_command(commands.add_parser)
    return parser


def _add_demo(add: Callable[..., argparse.ArgumentParser]) -> None:
    command = add(
        "demo",
        help="cluster handwritten digits that come with the package",
        description="Cluster 1,500 handwritten digits that come with the package, compare with "
        "the truth and draw a picture.",
    )
    command.add_argument(
        "--output",
        default="fastrbhc-demo.png",
        metavar="PICTURE",
        help="where to write the picture (default fastrbhc-demo.png)",
    )
    command.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> None:
    check_writable(arguments.output)
    check_drawing(arguments.output, required=False)
    with importing():
        from fastrbhc.cli.demo import run

    run(arguments.output)


if __name__ == "__main__":
    sys.exit(main())
