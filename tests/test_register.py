"""The register of families and models: names, suggestions, and modules found by themselves."""

from __future__ import annotations

import pytest

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
