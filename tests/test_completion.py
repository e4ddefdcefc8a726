"""Scripts for completion, run by the shells that are here."""

from __future__ import annotations

import argparse
import shutil
import subprocess

import pytest

from fastrbhc import cli
from fastrbhc.cli.main import whole_parser

# A line up to the cursor, and some of what may follow, and what may not.
LINES = [
    (["cl"], {"cluster"}, {"cut"}),
    (["c"], {"cluster", "cut", "compile", "completion"}, {"info"}),
    (["cut", "tree.json", "--c"], {"--clusters"}, {"--connect", "--threshold"}),
    (["cluster", "--missing", ""], {"error", "ignore"}, {"cluster"}),
    (["cluster", "--family", "neg"], {"negative_binomial"}, {"poisson"}),
    (["bhc", "--model", "diag"], {"diagonal_gaussian"}, {"gaussian"}),
    (["reproduce", "tab"], {"table1", "table2", "table3"}, {"thresholds"}),
    (["reproduce", "figure1", "--pl"], {"--plot"}, {"--progress"}),
    (["completion", ""], {"bash", "zsh", "fish"}, {"cluster"}),
]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Scripts by shell, each in a file."""

    def written(shell):
        path = tmp_path_factory.mktemp("scripts") / "_fastrbhc"
        command = ["fastrbhc", "completion", shell]
        with path.open("w") as file, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", file)
            assert cli.main(command[1:]) == 0
        return path

    return written


def shell(name, program):
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    done = subprocess.run([name, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split("\n")) - {""}


def test_bash(script):
    path = script("bash")
    for words, expected, others in LINES:
        line = " ".join(f"'{word}'" for word in ["fastrbhc", *words])
        program = (
            f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _fastrbhc; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        found = shell("bash", program)
        assert expected <= found, words
        assert not others & found, words


def test_fish(script):
    path = script("fish")
    for words, expected, others in LINES:
        line = " ".join(["fastrbhc", *words])
        found = shell("fish", f"source {path}; complete -C '{line}'")
        found = {each.split("\t")[0] for each in found}
        assert expected <= found, words
        assert not others & found, words


def test_zsh(script):
    path = script("zsh")
    shell("zsh", f"zsh -n {path}")
    # The functions that show what is found belong to its editor: these print it.
    stubs = (
        "compadd() { shift; printf '%s\\n' $@ }; _files() { }; compdef() { }; "
        "_describe() { printf '%s\\n' ${${(P)2}%%:*} }"
    )
    for words, expected, others in LINES:
        line = " ".join(f"'{word}'" for word in ["fastrbhc", *words])
        program = f"{stubs}; source {path}; words=({line}); CURRENT={len(words) + 1}; _fastrbhc"
        found = {each for each in shell("zsh", program) if each.startswith(words[-1])}
        assert expected <= found, words
        assert not others & found, words


def parsers(parser, path=""):
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from parsers(below, f"{path} {name}".strip())


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_there(script, name):
    text = script(name).read_text()
    for path, parser in parsers(whole_parser()):
        assert all(word in text for word in path.split())
        for option in parser._option_string_actions:
            if name == "fish":
                option = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            assert option in text


def test_shells_that_are_not_known(capsys):
    with pytest.raises(SystemExit):
        cli.main(["completion", "tcsh"])
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
