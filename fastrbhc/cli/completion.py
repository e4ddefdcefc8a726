"""``fastrbhc completion``: scripts with which shells complete commands and options."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

SHELLS = ("bash", "zsh", "fish")
_WORDS_OF_HELP = 10


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "completion",
        help="print a script for completion in bash, zsh or fish",
        description="Print a script with which a shell completes commands, options and their "
        'values. bash: eval "$(fastrbhc completion bash)" in ~/.bashrc. zsh: write it to a file '
        "_fastrbhc in a folder of $fpath. fish: write it to "
        "~/.config/fish/completions/fastrbhc.fish.",
        epilog="Example: fastrbhc completion fish > ~/.config/fish/completions/fastrbhc.fish",
    )
    command.add_argument("shell", choices=SHELLS, help="the shell to print a script for")
    command.set_defaults(run=run)


class Option(NamedTuple):
    """An option as a shell completes it."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...]  # that it may have, as far as they are known
    takes_value: bool


class Command(NamedTuple):
    """A command, or the program itself, whose path is empty."""

    path: str
    words: dict[str, str]  # what may follow, such as commands, with their help
    options: tuple[Option, ...]


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    from fastrbhc.cli.main import whole_parser

    commands = list(_commands(whole_parser(), "", _known_values()))
    print("\n".join({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](commands)))


def _known_values() -> dict[str, tuple[str, ...]]:
    """Values of options that admit others too."""
    from fastrbhc import bhc, families
    from fastrbhc._options import ALGORITHM_NAMES, NEIGHBOR_NAMES

    named = [name for name in families.registered() if name != "product"]
    models = [name for name in bhc.registered() if name != "product"]
    return {
        "family": ("auto", *named),
        "model": tuple(models),
        "bhc": tuple(models),
        "algorithm": ALGORITHM_NAMES,
        "neighbors": NEIGHBOR_NAMES,
        "threshold": ("predictive", "gap", "evidence"),
        "alpha": ("evidence",),
    }


def _commands(
    parser: argparse.ArgumentParser, path: str, known: dict[str, tuple[str, ...]]
) -> Iterator[Command]:
    """The commands of a parser from its own description, with all below them."""
    words: dict[str, str] = {}
    options: list[Option] = []
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            words |= {each.dest: _short(each.help) for each in action._choices_actions}
        elif action.option_strings:
            values = tuple(map(str, action.choices or known.get(action.dest, ())))
            names = tuple(action.option_strings)
            options.append(Option(names, _short(action.help), values, action.nargs != 0))
        elif action.choices:
            words |= dict.fromkeys(map(str, action.choices), _short(action.help))
    yield Command(path, words, tuple(options))
    for name, parser_below in below.items():
        yield from _commands(parser_below, f"{path} {name}".strip(), known)


def _short(text: Any) -> str:
    """The beginning of a help text."""
    words = str(text or "").split()
    return " ".join(words[:_WORDS_OF_HELP]).rstrip(",;:.(")


def _steps(commands: list[Command]) -> list[str]:
    """Cases of a shell that follow the words of a line to the command that they name."""
    paths = [command.path for command in commands if command.path]
    return [
        f"            {shlex.quote(_step(path))}) command={shlex.quote(path)} ;;" for path in paths
    ]


def _step(path: str) -> str:
    above, _, name = path.rpartition(" ")
    return f"{above}/{name}"


def _with_values(command: Command) -> Iterator[tuple[str, Option]]:
    """Patterns of the words before a value, and the options it belongs to."""
    for option in command.options:
        if option.takes_value:
            patterns = "|".join(shlex.quote(f"{command.path}/{name}") for name in option.names)
            yield patterns, option


def _bash(commands: list[Command]) -> list[str]:
    values, words = [], []
    for command in commands:
        for pattern, option in _with_values(command):
            # An option without known values names a file, or a value that only its user knows.
            known = shlex.quote(" ".join(option.values))
            then = f"words={known}" if option.values else "compopt -o default 2>/dev/null; return"
            values.append(f"        {pattern}) {then} ;;")
        options = " ".join(name for option in command.options for name in option.names)
        words.append(
            f"            {shlex.quote(command.path)}) options={shlex.quote(options)}; "
            f"words={shlex.quote(' '.join(command.words))} ;;"
        )
    return [
        "_fastrbhc() {",
        '    local command="" options="" words="" word i',
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        "    COMPREPLY=()",
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "$command/${COMP_WORDS[i]}" in',
        *_steps(commands),
        "        esac",
        "    done",
        '    case "$command/$previous" in',
        *values,
        "    esac",
        '    if [[ -z "$words" ]]; then',
        '        case "$command" in',
        *words,
        "        esac",
        '        if [[ "$current" == -* ]]; then words="$options"; fi',
        "    fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default 2>/dev/null; fi",
        "}",
        "complete -F _fastrbhc fastrbhc",
    ]


def _zsh(commands: list[Command]) -> list[str]:
    def described(pairs: list[tuple[str, str]]) -> str:
        return " ".join(
            shlex.quote(f"{name.replace(':', chr(92) + ':')}:{text}") for name, text in pairs
        )

    values, words = [], []
    for command in commands:
        for pattern, option in _with_values(command):
            names = " ".join(map(shlex.quote, option.values))
            then = f"compadd -- {names}" if option.values else "_files"
            values.append(f"        {pattern}) {then}; return ;;")
        options = described([(name, o.help) for o in command.options for name in o.names])
        words.append(
            f"        {shlex.quote(command.path)}) options=({options}); "
            f"follow=({described(list(command.words.items()))}) ;;"
        )
    return [
        "#compdef fastrbhc",
        "_fastrbhc() {",
        '    local command="" word',
        "    local -a options follow",
        "    for word in ${words[2,CURRENT-1]}; do",
        '        case "$command/$word" in',
        *_steps(commands),
        "        esac",
        "    done",
        '    case "$command/${words[CURRENT-1]}" in',
        *values,
        "    esac",
        '    case "$command" in',
        *words,
        "    esac",
        '    if [[ "${words[CURRENT]}" == -* ]]; then _describe option options; return; fi',
        "    if (( ${#follow} )); then _describe command follow; else _files; fi",
        "}",
        'if [[ "${funcstack[1]}" == _fastrbhc ]]; then _fastrbhc "$@"; '
        "else compdef _fastrbhc fastrbhc; fi",
    ]


def _fish(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        path = command.path.split()
        conditions = [f"__fish_seen_subcommand_from {name}" for name in path]
        if command.words:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(command.words)}")
        condition = shlex.quote("; and ".join(conditions))
        start = f"complete -c fastrbhc -n {condition}" if conditions else "complete -c fastrbhc"
        for name, text in command.words.items():
            lines.append(f"{start} -f -a {name} -d {_fish_quoted(text)}")
        for option in command.options:
            flags = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = ""
            if option.takes_value:
                known = _fish_quoted(" ".join(option.values))
                value = f" -x -a {known}" if option.values else " -r"
            lines.append(f"{start} {flags}{value} -d {_fish_quoted(option.help)}")
    return lines


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
