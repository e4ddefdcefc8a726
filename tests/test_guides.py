"""Examples in the README and in the pages of the guide."""

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from fastrbhc import cli, families
from fastrbhc.families import _interface

ROOT = Path(__file__).parents[1]
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```pycon" in page.read_text("utf-8")
]


# Dask calls functions of pandas that the newest one deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")
@pytest.mark.parametrize("name", PAGES)
def test_examples_of_a_page(name):
    blocks = re.findall(r"```pycon\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
    if "FASTRBHC_DATA" not in os.environ:  # where real data are
        blocks = [block for block in blocks if "FASTRBHC_DATA" not in block]
    examples = doctest.DocTestParser().get_doctest("\n\n".join(blocks), {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples).failed == 0


def printed(command):
    """What a command of the command line prints, on standard output and standard error."""
    words, _, source = command.partition(" < ")
    out = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(out))
        if source:
            file = stack.enter_context(open(source))
            stack.enter_context(pytest.MonkeyPatch.context()).setattr(sys, "stdin", file)
        with contextlib.suppress(SystemExit):
            cli.main(shlex.split(words)[1:])
    return out.getvalue()


def as_everywhere(text):
    """Without times, and without digits that depend on the logarithms of a processor."""
    text = re.sub(r"\d+\.\d+ s\b|\"seconds\": [\d.]+", "", text)
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def test_commands_of_the_page_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, family in families.registered().items():
        if not family.__module__.startswith("fastrbhc."):  # of another test
            monkeypatch.delitem(_interface._REGISTER, name)
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = session.partition("\n")
            assert as_everywhere(printed(command)) == as_everywhere(expected), command
