"""Pages as a browser shows them: elements, and Chromium without network."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

INSTALL = "apt-get update && apt-get install -y --no-install-recommends chromium"


class Elements(HTMLParser):
    """All elements of a page: name, attributes and the text inside."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append({"tag": tag, "text": "", **dict(attributes)})
        self._open.append(self.found[-1])

    def handle_endtag(self, tag):
        while self._open and self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def of(self, tag, **attributes):
        """Elements with these attributes, the class being one of several."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.found
            if element["tag"] == tag
            and all(value in (element.get(name) or "").split() for name, value in wanted.items())
        ]


def chromium():
    """The program, or the test is skipped; continuous integration has to have it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        message = f"no chromium to look at the page with; on Debian: {INSTALL}"
        # Continuous integration has to have one, unless it says that it need not.
        usual = "required" if os.environ.get("CI") == "true" else "optional"
        if os.environ.get("FASTRBHC_BROWSER", usual) != "optional":
            pytest.fail(message)
        pytest.skip(message)
    return program


def opened(program, profile, path, where="", window="1400,1000"):
    """What the browser makes of a file, with a profile folder and an address within the page."""
    told = subprocess.run(
        [
            *(program, "--headless", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", f"--user-data-dir={profile}"),
            *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"),
            *(f"--window-size={window}", "--virtual-time-budget=5000", "--dump-dom"),
            f"{path.as_uri()}{where}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert told.returncode == 0, told.stderr
    return Elements(told.stdout)
