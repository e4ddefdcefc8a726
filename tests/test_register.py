"""The register of families and models: names, suggestions, and modules found by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import fastrbhc.bhc.models
from fastrbhc import families
from fastrbhc._register import Register

pytestmark = pytest.mark.fast


@pytest.fixture
def register():
    register = Register("shape", "shapes")
    register.add(Square, "square")
    register.add(Circle, "round_thing", "circle")
    return register


class Square:
    pass


class Circle:
    pass


@pytest.mark.parametrize("name", ["round_thing", "Round-Thing", "round thing", "circle"])
def test_names_and_aliases_however_they_are_spelled(register, name):
    assert register.find(name) is Circle


def test_an_unknown_name_brings_those_that_are_near_and_all(register):
    message = "unknown shape 'squares': did you mean 'square'? The shapes are 'circle', "
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        register.find("squares")
    with pytest.raises(ValueError, match="unknown shape 'xyz': The shapes are"):
        register.find("xyz")


def test_a_taken_name_stays_where_it_is(register):
    elsewhere = type("Other", (), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match=f"the name 'square' belongs to {__name__}"):
        register.add(elsewhere, "square")
    assert register.find("square") is Square


def test_a_class_written_again_replaces_itself(register):
    again = type("Square", (), {"__module__": __name__})
    register.add(again, "square")
    assert register.find("square") is again


NEW_FAMILY = """
from typing import NamedTuple
from fastrbhc.families._interface import Domain, family

@family("found", separable=True, reducible=False, domain=Domain())
class Found(NamedTuple):
    def divergence(family, value, mean, step):
        return step * step
"""
NEW_MODEL = """
from typing import NamedTuple
from fastrbhc.bhc._interface import model
from fastrbhc.families import Domain

@model("found", domain=Domain(), tunable=())
class Found(NamedTuple):
    with_defaults = check = likelihood = log_base_measure = None
"""


@pytest.mark.parametrize(
    ("package", "source", "interface"),
    [
        (families, NEW_FAMILY, families._interface),
        (fastrbhc.bhc.models, NEW_MODEL, fastrbhc.bhc._interface),
    ],
    ids=["family", "model"],
)
def test_a_new_file_is_found_by_itself(package, source, interface, tmp_path, monkeypatch):
    (tmp_path / "found.py").write_text(source)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    try:
        exec(Path(package.__file__).read_text(), dict(vars(package)))
        assert interface.registered()["found"].__module__ == f"{package.__name__}.found"
    finally:
        interface._REGISTER.pop("found", None)
        sys.modules.pop(f"{package.__name__}.found", None)
        vars(package).pop("found", None)
